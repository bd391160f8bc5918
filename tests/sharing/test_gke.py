"""GKE's ids: the number is the /dev minor, and replicas share a card or an instance."""

from collections.abc import Sequence

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from podgpu.model import Allocation, Claim, Device, Gpu, Instance, MigInstance, Pod, Process, Reading
from podgpu.sharing import gke
from podgpu.sharing.inventory import Inventory

PLAIN, CUT = "GPU-plain", "GPU-cut"
DEVICES = (
    Device(gpu=Gpu(uuid=PLAIN, index=0, minor=4)),
    Device(
        gpu=Gpu(uuid=CUT, index=1, minor=0),
        instances=tuple(
            Instance(mig=MigInstance(uuid=f"MIG-{gi}-{ci}", gpu_instance_id=gi, compute_instance_id=ci))
            for gi, ci in [(3, 0), (7, 1), (7, 0), (9, 2)]
        ),
    ),
    Device(gpu=Gpu(uuid="GPU-nameless", index=2)),
)


def held(*ids: str, pod: str = "p", resource: str = gke.RESOURCE) -> list[Allocation]:
    return [
        Allocation(namespace="ns", pod=pod, container="c", resource=resource, device_id=device_id) for device_id in ids
    ]


def inventory(allocations: Sequence[Allocation], *offered: str, pods: Sequence[Pod] = ()) -> Inventory:
    return Inventory(DEVICES, allocations, [(gke.RESOURCE, device_id) for device_id in offered], pods)


def found(allocations: Sequence[Allocation], *offered: str, pods: Sequence[Pod] = ()) -> list[Claim]:
    return list(gke.claims(inventory(allocations, *offered, pods=pods)))


@pytest.mark.parametrize(
    ("device_id", "gpu", "mig"),
    [
        ("nvidia4", PLAIN, ""),
        ("nvidia0", CUT, ""),
        ("nvidia0/gi3", CUT, "MIG-3-0"),
        ("nvidia0/gi7", CUT, "MIG-7-0"),
        ("nvidia4/vgpu1", PLAIN, ""),
        ("nvidia0/gi3/vgpu0", CUT, "MIG-3-0"),
    ],
)
def test_an_id_names_a_card_by_its_minor_and_an_instance_by_its_gpu_instance(
    device_id: str, gpu: str, mig: str
) -> None:
    (claim,) = found(held(device_id))
    assert (claim.gpu, claim.mig, claim.device_id) == (gpu, mig, device_id)
    assert (claim.system, claim.source) == ("gke", "podresources")


@pytest.mark.parametrize(
    "device_id",
    [
        "nvidia1",  # an index, but no minor
        "nvidia",
        "nvidiaNone",
        "nvidia04",
        "nvidia٤",
        "nvidia4/gi3",
        "nvidia0/gi9",  # no compute instance 0, which is all that the plugin hands out
        "nvidia0/gi",
        "nvidia0/gi03",
        "nvidia4/vgpu",
        "nvidia4/vgpu1/gi3",
        "nvidia4\n",
        "/dev/nvidia4",
    ],
)
def test_what_this_node_lacks_is_no_claim_and_stays_visible(device_id: str) -> None:
    (allocation,) = held(device_id)
    assert found([allocation]) == []
    assert not gke.explains(allocation, inventory([allocation]))


def test_another_resource_is_another_system() -> None:
    (allocation,) = held("nvidia4", resource="example.com/gpu")
    assert found([allocation]) == []
    assert not gke.explains(allocation, inventory([allocation]))


def test_a_share_is_what_is_held_of_all_replicas_of_that_device() -> None:
    cards = [f"nvidia4/vgpu{n}" for n in range(4)]
    slices = [f"nvidia0/gi3/vgpu{n}" for n in range(2)]
    claims = found(held("nvidia4/vgpu0", "nvidia4/vgpu3", "nvidia0/gi3/vgpu1"), *cards, *slices)
    assert [(claim.gpu, claim.mig, claim.share) for claim in claims] == [
        (PLAIN, "", 0.25),
        (PLAIN, "", 0.25),
        (CUT, "MIG-3-0", 0.5),
    ]


@pytest.mark.parametrize("device_id", ["nvidia4", "nvidia0/gi3"])
def test_what_is_no_replica_is_held_as_a_whole(device_id: str) -> None:
    (claim,) = found(held(device_id), f"{device_id}/vgpu0", f"{device_id}/vgpu1")
    assert claim.share == 1.0


def test_while_nothing_is_offered_a_share_is_not_known() -> None:
    claims = found(held("nvidia4/vgpu0") + held("nvidia4/vgpu1", pod="q"))
    assert [(claim.gpu, claim.share) for claim in claims] == [(PLAIN, 0.0)] * 2


def test_a_pod_that_has_ended_holds_nothing() -> None:
    ended = Pod(namespace="ns", name="p", uid="u", phase="Succeeded")
    assert found(held("nvidia4"), pods=[ended]) == []


IDS = st.text() | st.from_regex(r"nvidia[0-9]{0,5}(/gi[0-9]{0,3})?(/vgpu[0-9]{0,3})?", fullmatch=True)


@given(st.lists(IDS, unique=True), st.lists(IDS))
@example(["nvidia" + "9" * 5000], [])
def test_no_id_brings_more_than_there_is(ids: list[str], offered: list[str]) -> None:
    allocations = held(*ids)
    node = inventory(allocations, *offered)
    claims = list(gke.claims(node))
    explained = [allocation.device_id for allocation in allocations if gke.explains(allocation, node)]
    assert sorted(explained) == sorted(claim.device_id for claim in claims)
    for claim in claims:
        assert claim.gpu in (PLAIN, CUT)
        shared = [
            other for other in claims if "vgpu" in other.device_id and (other.gpu, other.mig) == (claim.gpu, claim.mig)
        ]
        assert sum(other.share for other in shared) < 1 + 1e-9


# --- MPS ---

MIB = 1 << 20
CLIENT, SERVER, OTHER = ("mps",), ("compute",), ("compute",)


def shared_card(*kinds: tuple[str, ...], mode: float | None = None) -> Device:
    readings = [Reading("memory_total_bytes", 1000.5 * MIB)]
    readings += [] if mode is None else [Reading("compute_mode", mode)]
    processes = tuple(Process(pid=pid, kinds=found) for pid, found in enumerate(kinds, 1))
    return Device(gpu=Gpu(uuid=PLAIN, index=0, minor=4), readings=tuple(readings), processes=processes)


def of_three(*ids: str, device: Device) -> Inventory:
    offered = [(gke.RESOURCE, f"nvidia4/vgpu{number}") for number in range(3)]
    return Inventory([device], held(*ids), offered)


@pytest.mark.parametrize("device", [shared_card(SERVER, CLIENT), shared_card(mode=3.0)])
def test_mps_limits_a_container_to_all_its_parts_in_whole_mib_and_per_cent(device: Device) -> None:
    (claim,) = gke.claims(of_three("nvidia4/vgpu0", "nvidia4/vgpu2", device=device))
    assert claim.share == pytest.approx(2 / 3)
    assert (claim.memory_limit_bytes, claim.core_limit_ratio) == (667 * MIB, 0.66)


@pytest.mark.parametrize("device", [shared_card(OTHER, OTHER), shared_card(mode=0.0), shared_card()])
def test_time_sharing_limits_nothing(device: Device) -> None:
    claims = list(gke.claims(of_three("nvidia4/vgpu0", "nvidia4/vgpu2", device=device)))
    assert [(claim.memory_limit_bytes, claim.core_limit_ratio) for claim in claims] == [(None, None)] * 2


def test_while_nobody_runs_it_is_not_known_whether_there_are_limits() -> None:
    assert list(gke.doubts(of_three("nvidia4/vgpu0", device=shared_card()))) == [gke.UNLIMITED]
    assert list(gke.doubts(of_three("nvidia4/vgpu0", device=shared_card(OTHER)))) == []
    assert list(gke.doubts(of_three("nvidia4", device=shared_card()))) == []
