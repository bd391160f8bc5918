"""Where HAMi's note and the kubelet's ids name different cards, either may be right."""

import pytest

from podgpu.model import Allocation, Device, Gpu, Instance, MigInstance, Pod, PodContainer, Reading
from podgpu.sharing import ambiguous_claims, claims
from podgpu.sharing.hami.annotation import DEVICES_ALLOCATED, MIG_ALLOCATIONS
from podgpu.sharing.inventory import Inventory

ONE, TWO, THREE = (f"GPU-00000000-0000-4000-8000-00000000000{n}" for n in range(3))
MIB = 1 << 20


def node(note: str, *ids: str, migs: str = "[]") -> Inventory:
    """The third card is half as large, and in MIG mode."""
    mig = Instance(mig=MigInstance(uuid="MIG-1", gpu_instance_id=1, compute_instance_id=0))
    sizes = {ONE: 1000.0, TWO: 1000.0, THREE: 500.0}
    devices = [
        Device(
            gpu=Gpu(uuid=uuid, index=index),
            readings=(Reading("memory_total_bytes", size * MIB),),
            instances=(mig,) if uuid == THREE else (),
        )
        for index, (uuid, size) in enumerate(sizes.items())
    ]
    held = [
        Allocation(namespace="ns", pod="p", container="c", resource="nvidia.com/gpu", device_id=device_id)
        for device_id in ids
    ]
    pod = Pod(
        namespace="ns",
        name="p",
        uid="uid",
        phase="Running",
        annotations={DEVICES_ALLOCATED: note, MIG_ALLOCATIONS: migs},
        containers=(PodContainer(name="c"),),
    )
    return Inventory(devices, held, (), [pod])


def test_the_ids_are_the_other_reading_with_the_notes_limits() -> None:
    seen = node(f"{ONE},NVIDIA,100,0:;", f"{THREE}-4")
    (either,) = ambiguous_claims(seen)
    assert [list(cards) for cards in either.cards] == [[ONE], [THREE]]
    (usual,) = claims(seen)
    assert (usual.gpu, usual.share, usual.ruled_out) == (ONE, 0.1, None)
    (right,) = claims(seen, {either: 1})
    assert (right.gpu, right.share, right.memory_limit_bytes) == (THREE, 0.2, 100 * MIB)
    assert (right.device_id, right.source, right.ruled_out, right.index) == (
        f"{THREE}-4",
        "annotation",
        (ONE,),
        0,
    )


def test_several_cards_that_overlap() -> None:
    seen = node(f"{ONE},NVIDIA,100,30:{TWO},NVIDIA,100,30:;", f"{TWO}-0", f"{THREE}-0")
    (either,) = ambiguous_claims(seen)
    found = claims(seen, {either: 1})
    assert [(claim.gpu, claim.share, claim.core_limit_ratio, claim.ruled_out) for claim in found] == [
        (TWO, 0.3, 0.3, (ONE,)),
        (THREE, 0.3, 0.3, (ONE,)),
    ]


@pytest.mark.parametrize(
    ("note", "ids"),
    [
        (f"{ONE},NVIDIA,100,30:;", [f"{ONE}-7"]),  # they agree
        (f"{ONE},NVIDIA,100,30:{TWO},NVIDIA,100,30:;", [f"{TWO}-0", f"{ONE}-0"]),
        (f"{ONE},NVIDIA,100,30:{TWO},NVIDIA,200,30:;", [f"{TWO}-0", f"{THREE}-0"]),  # whose part is whose?
        (
            f"{ONE},NVIDIA,100,30:{TWO},NVIDIA,100,30:;",
            [f"{THREE}-0", f"{THREE}-1"],
        ),  # no plugin prefers that
        (f"{ONE},NVIDIA,100,30:;", ["GPU-ffffffff-0000-4000-8000-00000000000f-0"]),  # not of this node
    ],
)
def test_ids_that_cannot_be_meant_are_no_alternative(note: str, ids: list[str]) -> None:
    assert ambiguous_claims(node(note, *ids)) == ()


def test_ids_name_no_instance() -> None:
    note = '[{"containerIndex":0,"deviceIndex":0,"migUUID":"MIG-1"}]'
    seen = node(f"{THREE},NVIDIA,100,0:;", f"{ONE}-0", migs=note)
    assert [claim.mig for claim in claims(seen)] == ["MIG-1"]
    assert ambiguous_claims(seen) == ()
