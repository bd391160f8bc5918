"""The demo's Kubernetes fits the simulator's cards and processes."""

import pytest

from podgpu.sharing import claims, unclaimed
from podgpu.sharing.inventory import Inventory
from podgpu.sources.simulator.kubernetes import DemoKubelet, DemoPods, _ids, script
from podgpu.sources.simulator.scenario import CARDS
from podgpu.sources.simulator.source import Simulator

TENANTS = {resident.tenant for card in CARDS for resident in card.processes if not resident.tenant.startswith("host:")}


async def inventory() -> Inventory:
    given = await DemoKubelet().read()
    report = await Simulator(seed=1, clock=lambda: 0.0).read()
    return Inventory(report.devices, given.devices, given.allocatable, DemoPods().pods())


async def test_who_is_on_a_card_holds_a_part_of_it_and_so_does_one_who_idles() -> None:
    node = await inventory()
    index = {device.gpu.uuid: device.gpu.index for device in node.devices}
    held = {
        (index[claim.gpu], claim.container.namespace, claim.container.pod, claim.container.container)
        for claim in claims(node)
    }
    on = {
        (card.index, *process.tenant.split("/"))
        for card in CARDS
        for process in card.processes
        if process.tenant in TENANTS
    }
    assert held - on == {(6, "speech", "asr-2", "server")}
    assert on < held


async def test_every_device_that_was_given_is_understood() -> None:
    assert unclaimed(await inventory()) == ()


async def test_several_sharing_systems_can_be_seen_side_by_side() -> None:
    assert len({claim.system for claim in claims(await inventory())}) >= 5


async def test_every_pod_is_scripted_and_was_given_a_device() -> None:
    given = {device.to for device in script().allocated}
    assert script().pods.keys() == {tenant.rpartition("/")[0] for tenant in given}
    assert given >= TENANTS


async def test_pods_belong_to_workloads_and_those_made_by_hand_to_themselves() -> None:
    pods = DemoPods()
    found = await pods.resolve(pods.pods())
    named = {pod.name: found[pod.uid] for pod in pods.pods()}
    assert (named["camera-0"].kind, named["camera-0"].name) == ("StatefulSet", "camera")
    assert (named["notebook-5"].kind, named["notebook-5"].name) == ("Pod", "notebook-5")


def test_teams_and_namespaces_differ() -> None:
    pods = DemoPods().pods()
    teams = {pod.labels["team"] for pod in pods}
    assert len(teams) >= 4
    assert len({(pod.namespace, pod.labels["team"]) for pod in pods}) > max(
        len(teams), len({pod.namespace for pod in pods})
    )


def test_some_pods_have_just_started_and_some_run_for_days() -> None:
    ages = sorted(-(pod.started_at or 0.0) for pod in DemoPods(lambda: 0.0).pods())
    assert ages[0] < 1800
    assert ages[-1] > 7 * 86400


@pytest.mark.parametrize(
    ("pattern", "ids"),
    [
        ("{card 2}", [CARDS[2].uuid]),
        ("{card 3 instance 7}", [CARDS[3].instance_uuid(7)]),
        ("{card 4}::{0..2}", [f"{CARDS[4].uuid}::{n}" for n in range(3)]),
        ("plain", ["plain"]),
    ],
)
def test_a_pattern_stands_for_ids(pattern: str, ids: list[str]) -> None:
    assert list(_ids(pattern)) == ids
