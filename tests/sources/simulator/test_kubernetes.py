"""The demo's Kubernetes fits the simulator's cards and processes."""

import pytest

from podgpu.sharing import claims, systems, unclaimed
from podgpu.sharing.inventory import Inventory
from podgpu.sources.simulator.cast import CARDS
from podgpu.sources.simulator.kubernetes import DemoKubelet, DemoPods, _ids, script
from podgpu.sources.simulator.source import Simulator

TENANTS = {
    process.tenant for card in CARDS for process in card.processes if not process.tenant.startswith("host:")
}


async def inventory() -> Inventory:
    given = await DemoKubelet().read()
    report = await Simulator(seed=1, clock=lambda: 0.0).read()
    return Inventory(report.devices, given.devices, given.allocatable, DemoPods().pods())


async def test_exactly_the_pods_on_a_card_hold_a_part_of_it() -> None:
    node = await inventory()
    index = {device.gpu.uuid: device.gpu.index for device in node.devices}
    held = {
        (index[one.gpu], one.container.namespace, one.container.pod, one.container.container)
        for one in claims(node, systems())
    }
    on = {
        (card.index, *one.tenant.split("/"))
        for card in CARDS
        for one in card.processes
        if one.tenant in TENANTS
    }
    assert held == on


async def test_every_device_that_was_given_is_understood() -> None:
    assert unclaimed(await inventory(), systems()) == ()


async def test_several_sharing_systems_can_be_seen_side_by_side() -> None:
    assert len({claim.system for claim in claims(await inventory(), systems())}) >= 5


async def test_nothing_is_scripted_for_a_pod_that_is_not_there() -> None:
    pods = {tenant.rpartition("/")[0] for tenant in TENANTS}
    assert script().pods.keys() <= pods
    assert {one.to for one in script().given} <= TENANTS


async def test_pods_belong_to_workloads_and_those_made_by_hand_to_themselves() -> None:
    pods = DemoPods()
    found = await pods.resolve(pods.pods())
    named = {pod.name: found[pod.uid] for pod in pods.pods()}
    assert (named["ocr-0"].kind, named["ocr-0"].name) == ("StatefulSet", "ocr")
    assert (named["notebook-5"].kind, named["notebook-5"].name) == ("Pod", "notebook-5")


@pytest.mark.parametrize(
    ("pattern", "ids"),
    [
        ("{card 2}", [CARDS[2].uuid]),
        ("{card 3 instance 7}", [CARDS[3].slice_uuid(7)]),
        ("{card 4}::{0..2}", [f"{CARDS[4].uuid}::{n}" for n in range(3)]),
        ("plain", ["plain"]),
    ],
)
def test_a_pattern_stands_for_ids(pattern: str, ids: list[str]) -> None:
    assert list(_ids(pattern)) == ids
