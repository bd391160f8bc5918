"""The page of k8s-vgpu-monitor."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from podgpu.config.precedence import load
from podgpu.model import (
    SEES_ALL,
    Booking,
    Card,
    Claim,
    ContainerRef,
    Device,
    Fault,
    Gpu,
    Holder,
    Instance,
    MigInstance,
    Pod,
    Process,
    Reading,
    Snapshot,
    Tenant,
)
from podgpu.views.dialects.vgpu_monitor import DIALECT, TOTAL, USED, UTILIZATION, VgpuMonitorOptions
from tests.conftest import Golden
from tests.tree import card
from tests.views.dialects.rig import NODES, check_series, complaints, joined, played, script, text, values
from tests.views.quirks import SNAPSHOT

DEFAULT = load({}, {}).of(VgpuMonitorOptions)
SLOTS = load({"dialect_vgpu_monitor_gpu_id": ["slot"]}, {}).of(VgpuMonitorOptions)
MULTIPLIED = load({"dialect_vgpu_monitor_utilization": ["multiplied"]}, {}).of(VgpuMonitorOptions)
NAMESPACED = load({"dialect_vgpu_monitor_namespace": ["on"]}, {}).of(VgpuMonitorOptions)
AS_THE_CODE = load(
    {"dialect_vgpu_monitor_gpu_id": ["slot"], "dialect_vgpu_monitor_utilization": ["multiplied"]}, {}
).of(VgpuMonitorOptions)
families = DIALECT.pages["/metrics/vgpu-monitor"]

TOTAL_HELP = "Total GPU memory per pod (Allocated vGPU memory based on ratio, likely in Bytes)"
MIB = 2**20
CARD = Gpu(uuid="GPU-0", index=0, multiprocessors=100)
OTHER = Gpu(uuid="GPU-1", index=1)
MEMORY = (Reading("memory_total_bytes", 24576 * MIB),)
NOTEBOOK = ContainerRef("team-a", "notebook", "main", "uid-1")
DEVICE = Device(gpu=CARD, readings=MEMORY)
PROCESSES = (Process(pid=1, kinds=("compute",)),)


def node(*cards: Card) -> Snapshot:
    return Snapshot(node="n", taken_at=1.0, interval_seconds=5.0, version="t", cards=cards)


def claim(gpu: Gpu = CARD, share: float = 0.5, container: ContainerRef = NOTEBOOK, number: int = 0) -> Claim:
    return Claim(gpu=gpu.uuid, container=container, share=share, device_id=f"{gpu.uuid}-{number}")


def idle(*claims: Claim, gpu: Gpu = CARD) -> Card:
    """A card of 24 GiB that is held, and that nobody uses."""
    return joined(Device(gpu=gpu, readings=MEMORY), claims)


def used(*claims: Claim, ratio: float | None = 0.5, memory: int | None = 4096 * MIB, gpu: Gpu = CARD) -> Card:
    """A card of 24 GiB that the notebook uses."""
    return card(Device(gpu=gpu, readings=MEMORY), tenants=[tenant(*claims, ratio=ratio, memory=memory)])


def tenant(*claims: Claim, ratio: float | None = 0.5, memory: int | None = 4096 * MIB, **facts: object) -> Tenant:
    booking = Booking(processes=1, sm_ratio=ratio, memory_bytes=memory)
    plain = Tenant(container=NOTEBOOK, claims=claims, processes=PROCESSES, booking=booking, idle=False)
    return replace(plain, **facts)


def shown(snapshot: Snapshot, config: VgpuMonitorOptions = DEFAULT) -> dict[str, dict[str, float]]:
    page = families(snapshot, config)
    return {name: found for name in (UTILIZATION, USED, TOTAL) if (found := values(page, name))}


@pytest.mark.parametrize(("name", "config"), [("default", DEFAULT), ("as-the-code", AS_THE_CODE)])
def test_the_page(name: str, config: VgpuMonitorOptions, golden: Golden) -> None:
    golden(f"dialects/vgpu-monitor/{name}.txt", text(families(SNAPSHOT, config)))


@pytest.mark.parametrize("scenario", ["ratio", "mig"])
@pytest.mark.parametrize(("name", "config"), [("default", DEFAULT), ("as-the-code", AS_THE_CODE)])
async def test_the_page_of_a_scenario(
    scenario: str, name: str, config: VgpuMonitorOptions, tmp_path: Path, golden: Golden
) -> None:
    snapshot = await played(script(scenario), tmp_path)
    golden(f"dialects/vgpu-monitor/{scenario}-{name}.txt", text(families(snapshot, config)))


def test_the_lines_of_the_readme() -> None:
    lines = text(families(node(used(claim())), DEFAULT)).splitlines()
    assert lines == [
        "# HELP pod_gpu_sm_util GPU SM utilization per pod (Aggregated physical utilization)",
        "# TYPE pod_gpu_sm_util gauge",
        'pod_gpu_sm_util{gpu_id="0",pod="notebook"} 50',
        "# HELP pod_gpu_memory_used GPU memory usage per pod (Aggregated physical usage, likely in Bytes)",
        "# TYPE pod_gpu_memory_used gauge",
        'pod_gpu_memory_used{gpu_id="0",pod="notebook"} 4096',
        f"# HELP pod_total_gpu_memory {TOTAL_HELP}",
        "# TYPE pod_total_gpu_memory gauge",
        'pod_total_gpu_memory{gpu_id="0",pod="notebook"} 12288',
    ]


def test_multiplied_utilization_is_part_of_the_share() -> None:
    assert shown(node(used(claim())), MULTIPLIED)[UTILIZATION] == {'{gpu_id="0",pod="notebook"}': 100.0}
    assert UTILIZATION not in shown(node(used()), MULTIPLIED)


def test_with_a_share_of_unknown_size_multiplied_utilization_is_absent() -> None:
    """A share of 0 is not known. Counted as nothing, it would make the others look busier."""
    page = shown(node(used(claim(), claim(share=0.0, number=1))), MULTIPLIED)
    assert UTILIZATION not in page
    assert USED in page


def test_a_ratio_too_large_for_a_number_is_left_out() -> None:
    assert UTILIZATION not in shown(node(used(claim(share=1e-310))), MULTIPLIED)


def test_a_pod_that_is_seen_to_be_idle_uses_nothing() -> None:
    assert shown(node(idle(claim()))) == {
        UTILIZATION: {'{gpu_id="0",pod="notebook"}': 0.0},
        USED: {'{gpu_id="0",pod="notebook"}': 0.0},
        TOTAL: {'{gpu_id="0",pod="notebook"}': 12288.0},
    }


@pytest.mark.parametrize(
    "silent",
    [
        joined(DEVICE, [claim()], knows_owners=False),
        joined(replace(DEVICE, ability=replace(SEES_ALL, sees_all=False)), [claim()]),
        # This one might be the pod's.
        joined(replace(DEVICE, processes=PROCESSES), [claim()]),
    ],
)
def test_what_cannot_be_seen_is_absent(silent: Card) -> None:
    assert shown(node(silent)).keys() == {TOTAL}


def test_a_pod_is_idle_beside_a_process_of_somebody_else() -> None:
    device = Device(gpu=CARD, processes=PROCESSES)
    holder = Holder(pid=1, kind="host")
    assert shown(node(joined(device, [claim()], [holder]))).keys() == {UTILIZATION, USED}


def test_what_is_not_measured_is_absent() -> None:
    assert shown(node(used(claim(), ratio=None, memory=None))).keys() == {TOTAL}


def test_a_card_that_is_down_has_no_series() -> None:
    device = Device(gpu=CARD, fault=Fault(reason="timeout"))
    assert shown(node(joined(device, [claim()]))) == {}


def test_a_pod_that_has_ended_is_gone_at_once() -> None:
    assert shown(node(card(DEVICE, ended=[tenant()]))) == {}


def test_a_pod_that_uses_what_it_was_not_given_has_no_memory_of_its_own() -> None:
    assert shown(node(used())).keys() == {UTILIZATION, USED}


def test_two_containers_of_a_pod_are_added_up() -> None:
    second = replace(NOTEBOOK, container="second")
    tenants = [
        tenant(claim(share=0.25), ratio=0.25),
        tenant(claim(share=0.25, container=second), ratio=0.125, container=second),
    ]
    found = shown(node(card(DEVICE, tenants=tenants)))
    assert [list(series.values()) for series in found.values()] == [[37.5], [8192.0], [12288.0]]


def test_two_cards_with_the_same_index_are_not_added_up() -> None:
    """They come from two pages, each of which counts its cards from 0."""
    twin = replace(OTHER, index=0)
    snapshot = node(used(claim(), ratio=0.25), used(claim(twin), ratio=0.5, gpu=twin))
    assert shown(snapshot)[UTILIZATION] == {
        '{gpu_id="GPU-0",pod="notebook"}': 25.0,
        '{gpu_id="GPU-1",pod="notebook"}': 50.0,
    }


def test_a_limit_is_the_memory_that_a_pod_was_given() -> None:
    limited = replace(claim(), memory_limit_bytes=3000 * MIB)
    assert list(shown(node(idle(limited)))[TOTAL].values()) == [3000.0]


def test_memory_by_a_share_of_unknown_size_is_absent() -> None:
    assert TOTAL not in shown(node(idle(claim(share=0.0))))
    assert TOTAL not in shown(node(idle(claim(share=0.0))), SLOTS)


def test_slots_count_what_a_pod_has_and_share_what_it_uses() -> None:
    """As in the code: a card that a pod has twice is two slots, each with half of the memory and all of the work."""
    twice = used(claim(OTHER, 0.25, number=1), claim(OTHER, 0.25, number=0), gpu=OTHER)
    found = shown(node(idle(claim(CARD, 1.0)), twice), SLOTS)
    labels = [f'{{gpu_id="{slot}",pod="notebook"}}' for slot in range(3)]
    assert found == {
        UTILIZATION: dict(zip(labels, (0.0, 50.0, 50.0), strict=True)),
        USED: dict(zip(labels, (0.0, 2048.0, 2048.0), strict=True)),
        TOTAL: dict(zip(labels, (24576.0, 6144.0, 6144.0), strict=True)),
    }


def test_of_pods_with_the_same_name_the_later_has_its_namespace_as_a_label() -> None:
    """A running series never changes because a namesake came, whatever their namespaces are called."""
    twin = ContainerRef("team-b", "notebook", "main", "uid-2")
    single = ContainerRef("team-b", "single", "main", "uid-3")
    alone = node(idle(claim(container=twin)))
    pods = tuple(
        Pod(namespace=space, name="notebook", uid=uid, started_at=since)
        for space, uid, since in (("team-a", "uid-1", 200.0), ("team-b", "uid-2", 100.0))
    )
    both = replace(node(idle(claim(), claim(container=twin), claim(container=single))), pods=pods)
    later = '{gpu_id="0",namespace="team-a",pod="notebook"}'
    assert list(shown(alone)[TOTAL]) == ['{gpu_id="0",pod="notebook"}']
    assert list(shown(both)[TOTAL]) == [later, '{gpu_id="0",pod="notebook"}', '{gpu_id="0",pod="single"}']
    assert list(shown(both, NAMESPACED)[TOTAL]) == [
        later,
        '{gpu_id="0",namespace="team-b",pod="notebook"}',
        '{gpu_id="0",namespace="team-b",pod="single"}',
    ]


def test_the_activity_of_a_compute_instance_is_that_of_its_gpu_instance() -> None:
    """Both halves share one number, which is the pod's if it is alone there."""
    halves = tuple(
        Instance(
            mig=MigInstance(uuid=f"MIG-{number}", gpu_instance_id=1, compute_instance_id=number, multiprocessors=20)
        )
        for number in range(2)
    )
    booking = Booking(processes=1, sm_ratio=0.1, instance_ratio=0.5)
    on_half = tenant(replace(claim(share=1.0), mig="MIG-0"), mig="MIG-0", booking=booking)
    split = card(replace(DEVICE, instances=halves), tenants=[on_half])
    snapshot = node(split)
    assert list(shown(snapshot)[UTILIZATION].values()) == [20.0]
    assert list(shown(snapshot, MULTIPLIED)[UTILIZATION].values()) == [100.0]
    unsized = replace(split, gpu=replace(CARD, multiprocessors=None))
    assert UTILIZATION not in shown(node(unsized))


def test_promtool_has_no_complaints() -> None:
    assert complaints(families(SNAPSHOT, DEFAULT)) == set()


@given(NODES, st.sampled_from([DEFAULT, AS_THE_CODE, NAMESPACED]))
def test_no_snapshot_gives_a_series_twice(snapshot: Snapshot, config: VgpuMonitorOptions) -> None:
    check_series(families(snapshot, config))
