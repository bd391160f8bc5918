"""HAMi's versions differ in whose an entry is, in names of resources, in modes, and in how they name an instance."""

import pytest

from podgpu.model import Allocation, Device, Gpu, Instance, MigInstance, Pod, PodContainer, VirtualGpu
from podgpu.sharing import claims as all_claims
from podgpu.sharing import hami
from podgpu.sharing.hami.annotation import DEVICES_ALLOCATED
from podgpu.sharing.inventory import Inventory
from tests.sharing.hami.test_annotation import DEVICES, ONE, TWO, allocations, places


def asking(note: str, given: dict[str, int], *containers: PodContainer, resource: str = "nvidia.com/gpu") -> Inventory:
    """A pod whose spec says who asks for GPUs."""
    pod = Pod(
        namespace="ns",
        name="p",
        uid="uid",
        phase="Running",
        annotations={DEVICES_ALLOCATED: note},
        containers=containers,
    )
    return Inventory(DEVICES, allocations(given, resource=resource), (), [pod])


def container(name: str, count: int = 0, *, is_init: bool = False, resource: str = "nvidia.com/gpu") -> PodContainer:
    return PodContainer(name=name, is_init=is_init, limits={resource: str(count)} if count else {})


A, B = f"{ONE},NVIDIA,1,1:;", f"{TWO},NVIDIA,1,1:;"


@pytest.mark.parametrize(
    ("note", "containers"),
    [
        (A + B, [container("side"), container("a", 1), container("b", 1)]),  # 2.10: no entry for who asks for nothing
        (A + B, [container("a", 1), container("side"), container("b", 1)]),
        (f";{A}{B}", [container("side"), container("a", 1), container("b", 1)]),  # 2.9 has an empty one
        (f"{A}{B},,0,0:;", [container("a", 1), container("b", 1), container("side")]),  # 2.5 has one of nothing
        (
            f"{B}{A}{B}",
            [container("init", 1, is_init=True), container("a", 1), container("b", 1)],
        ),  # init containers come first
        (f"{B}{A}{B}", [container("init", 1, is_init=True), container("side"), container("a", 1), container("b", 1)]),
        (A + B, [container("init", is_init=True), container("a", 1), container("b", 1)]),
    ],
)
def test_an_entry_is_of_who_asks_for_a_gpu(note: str, containers: list[PodContainer]) -> None:
    assert places(list(hami.claims(asking(note, {"a": 1, "b": 1}, *containers)))) == {"a": [ONE], "b": [TWO]}


def test_entries_that_no_version_would_write_claim_nothing() -> None:
    """Three ask and were given something, two have an entry."""
    containers = container("init", 1, is_init=True), container("a", 1), container("b", 1)
    assert list(hami.claims(asking(f"{A}{B}", {"init": 1, "a": 1, "b": 1}, *containers))) == []


def test_the_resource_may_have_another_name() -> None:
    """It is a setting of HAMi's; the pod's note gives its ids away."""
    containers = container("side"), container("a", 1, resource="example.com/card")
    seen = asking(A, {"a": 1}, *containers, resource="example.com/card")
    assert places(list(hami.claims(seen))) == {"a": [ONE]}
    assert hami.explains(seen.allocations[0], seen)


@pytest.mark.parametrize(("has_files", "gpu"), [(True, TWO), (False, ONE)])
def test_in_mps_mode_the_note_is_the_truth_and_not_the_replica(*, has_files: bool, gpu: str) -> None:
    """A pod's note alone does not make NVIDIA's ids HAMi's: there must be a file of HAMi's library on the node."""
    given = [Allocation(namespace="ns", pod="p", container="c", resource="nvidia.com/gpu", device_id=f"{ONE}::0")]
    pod = Pod(namespace="ns", name="p", uid="uid", annotations={DEVICES_ALLOCATED: B}, containers=(container("c", 1),))
    files = [VirtualGpu(pod_uid="other", container="x", gpu=ONE)] if has_files else []
    (claim,) = all_claims(Inventory(DEVICES, given, (), [pod], vgpus=files))
    assert (claim.gpu, claim.system) == (gpu, "hami" if has_files else "time-slicing")


@pytest.mark.parametrize(
    ("mib", "place", "mig"),
    [(18432, 1, "MIG-b"), (18432, 0, ""), (18432, 7, ""), (71680, 0, "MIG-a")],
)
def test_an_older_note_names_an_instance_by_its_place(mib: int, place: int, mig: str) -> None:
    """It must be as large as noted."""
    instances = [
        Instance(mig=MigInstance(uuid=uuid, gpu_instance_id=n, compute_instance_id=0, profile=profile))
        for n, (uuid, profile) in enumerate([("MIG-a", "3g.71gb"), ("MIG-b", "1g.18gb"), ("MIG-c", "1g.18gb")])
    ]
    card = Device(gpu=Gpu(uuid=ONE, index=0), instances=tuple(instances))
    note = f"{ONE}[2-{place}],NVIDIA,{mib},14:;"
    pod = Pod(namespace="ns", name="p", uid="uid", annotations={DEVICES_ALLOCATED: note})
    (claim,) = hami.claims(Inventory([card], allocations({"c": 1}), (), [pod]))
    assert (claim.gpu, claim.mig, claim.share) == (ONE, mig, 1.0 if mig else 0.14)
