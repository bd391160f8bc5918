"""Device ids become claims: of the right card, with the right share, for the right pod."""

from collections.abc import Sequence

import pytest
from msgspec.structs import replace

from podgpu.model import Allocation, Claim, Device, Gpu, Instance, MigInstance, Pod, Reading
from podgpu.sharing import claims, statuses, unclaimed, unplaced
from podgpu.sharing.inventory import Inventory

ONE, TWO, SLICE = "GPU-1", "GPU-2", "MIG-1"
GIB = 1 << 30
DEVICES = (
    Device(
        gpu=Gpu(uuid=ONE, index=0, minor=3),
        instances=(Instance(mig=MigInstance(uuid=SLICE, gpu_instance_id=1, compute_instance_id=0)),),
    ),
    Device(gpu=Gpu(uuid=TWO, index=1, minor=2), readings=(Reading("memory_total_bytes", 80.5 * GIB),)),
    Device(gpu=Gpu(uuid="GPU-3", index=2)),
)


def given(*ids: str, resource: str = "nvidia.com/gpu", pod: str = "p") -> list[Allocation]:
    return [
        Allocation(namespace="ns", pod=pod, container="c", resource=resource, device_id=device_id) for device_id in ids
    ]


def inventory(allocations: Sequence[Allocation], *pods: Pod, offered: Sequence[tuple[str, str]] = ()) -> Inventory:
    return Inventory(DEVICES, allocations, offered, pods)


def found(allocations: Sequence[Allocation], *pods: Pod, offered: Sequence[tuple[str, str]] = ()) -> list[Claim]:
    return list(claims(inventory(allocations, *pods, offered=offered)))


def pod(name: str = "p", uid: str = "uid", phase: str = "Running", **annotations: str) -> Pod:
    return Pod(namespace="ns", name=name, uid=uid, phase=phase, annotations=annotations)


@pytest.mark.parametrize(
    ("device_id", "gpu", "mig", "system"),
    [
        (ONE, ONE, "", "exclusive"),
        (SLICE, ONE, SLICE, "mig"),
        (f"{TWO}::0", TWO, "", "time-slicing"),
        (f"{SLICE}::3", ONE, SLICE, "time-slicing"),
        (f"{TWO}-_-7", TWO, "", "gpushare"),
    ],
)
def test_each_id_is_one_systems(device_id: str, gpu: str, mig: str, system: str) -> None:
    resource = "aliyun.com/gpu-mem" if system == "gpushare" else "nvidia.com/gpu"
    (claim,) = found(given(device_id, resource=resource), pod(), offered=[(resource, device_id)])
    assert (claim.gpu, claim.mig, claim.system, claim.container.pod_uid) == (gpu, mig, system, "uid")


@pytest.mark.parametrize("device_id", ["GPU-9", "MIG-9", f"{ONE}::", f"{ONE}::x", "GPU-9::0", ""])
def test_an_id_of_no_card_is_no_claim_and_is_named(device_id: str) -> None:
    """So it is with an instance that is no longer there."""
    unknown = given(device_id)
    assert found(unknown) == []
    assert unclaimed(inventory(unknown)) == tuple(unknown)


def test_other_devices_are_nobodys_business() -> None:
    assert unclaimed(inventory(given("mlx5_0", resource="rdma/hca"))) == ()


def test_a_pod_that_has_ended_holds_nothing() -> None:
    """Kubelets before 1.34 still list it, on a card that a running pod was given meanwhile."""
    listed = given(ONE, pod="done") + given(ONE, pod="runs")
    (claim,) = found(listed, pod("done", "1", "Succeeded"), pod("runs", "2"))
    assert (claim.container.pod, claim.container.pod_uid) == ("runs", "2")


def test_of_two_pods_with_one_id_the_one_that_is_known_to_live_has_it() -> None:
    node = inventory(given(ONE, pod="gone") + given(ONE, pod="runs"), pod("runs", "2"))
    (claim,) = claims(node)
    assert claim.container.pod == "runs"
    assert [(allocation.pod, allocation.disputed) for allocation in unclaimed(node)] == [("gone", True)]


def test_if_nobody_knows_which_of_them_lives_neither_has_it() -> None:
    node = inventory(given(ONE, TWO, pod="one") + given(ONE, pod="other"))
    (claim,) = claims(node)
    assert (claim.container.pod, claim.gpu) == ("one", TWO), "the other card is not in doubt"
    assert sorted(allocation.pod for allocation in unclaimed(node)) == ["one", "other"]


def test_a_pod_made_again_is_the_one_that_lives() -> None:
    (claim,) = found(given(ONE), pod(uid="old", phase="Failed"), pod(uid="new"))
    assert claim.container.pod_uid == "new"


def test_of_two_living_pods_of_one_name_neither_is_named() -> None:
    (claim,) = found(given(ONE), pod(uid="a"), pod(uid="b"))
    assert claim.container.pod_uid == ""


def test_a_pod_that_is_not_known_claims_by_its_name() -> None:
    (claim,) = found(given(ONE))
    assert (claim.container.pod, claim.container.pod_uid) == ("p", "")


@pytest.mark.parametrize("resource", ["nvidia.com/gpu", "nvidia.com/gpu.half"])
def test_all_is_every_card_of_the_node(resource: str) -> None:
    """So NVIDIA's plugin calls them under WSL, where one id stands for all."""
    made = found(given("all", resource=resource))
    assert [(claim.gpu, claim.share, claim.system) for claim in made] == [
        (device.gpu.uuid, 1.0, "exclusive") for device in DEVICES
    ]


def test_tegra_is_the_card_that_is_built_in() -> None:
    (claim,) = claims(Inventory(DEVICES[1:2], given("tegra")))
    assert (claim.gpu, claim.device_id) == (TWO, "tegra")


def test_tegra_is_no_claim_where_it_could_be_any_of_several() -> None:
    assert found(given("tegra")) == []


def test_another_plugins_all_is_no_gpu() -> None:
    assert found(given("all", resource="example.com/fpga")) == []


def test_gpushare_believes_the_scheduler_not_the_id() -> None:
    ids = given(f"{ONE}-_-1", f"{TWO}-_-5", resource="aliyun.com/gpu-mem")
    noted = pod(ALIYUN_COM_GPU_MEM_IDX="1", ALIYUN_COM_GPU_MEM_DEV="8")
    (claim,) = found(ids, noted)
    assert (claim.gpu, claim.share, claim.memory_limit_bytes) == (TWO, 0.25, 2 * GIB)


@pytest.mark.parametrize("minor", ["7", "-1", "None", "", "２"])  # noqa: RUF001 - a digit, but no ASCII one
def test_gpushare_claims_no_card_that_the_note_does_not_name(minor: str) -> None:
    ids = given(f"{ONE}-_-1", resource="aliyun.com/gpu-mem")
    assert found(ids, pod(ALIYUN_COM_GPU_MEM_IDX=minor)) == []


def test_gpushare_counts_the_units_of_a_card_by_its_memory_where_nobody_tells() -> None:
    """After a kubelet's restart nothing is offered: ten units are not the whole card for that."""
    ids = [f"{TWO}-_-{n}" for n in range(10)]
    (claim,) = found(given(*ids, resource="aliyun.com/gpu-mem"), pod(ALIYUN_COM_GPU_MEM_IDX="1"))
    assert (claim.share, claim.memory_limit_bytes) == (0.125, 10 * GIB)


def test_gpushare_units_may_be_mebibytes() -> None:
    ids = [f"{TWO}-_-{n}" for n in range(8192)]
    (claim,) = found(given(*ids, resource="aliyun.com/gpu-mem"), pod(ALIYUN_COM_GPU_MEM_IDX="1"))
    assert claim.share == pytest.approx(0.1, rel=1e-2)
    assert claim.memory_limit_bytes == 8 * GIB


def statuses_of(
    allocations: Sequence[Allocation], *pods: Pod, offered: Sequence[tuple[str, str]] = ()
) -> dict[str, tuple[int, bool]]:
    stock = inventory(allocations, *pods, offered=offered)
    found = statuses(stock, claims(stock), ())
    return {status.system: (status.claims, bool(status.missing)) for status in found}


def test_a_system_with_claims_misses_nothing() -> None:
    assert statuses_of(given(ONE, TWO)) == {"exclusive": (2, False)}


def test_a_sign_without_a_claim_says_what_is_missing() -> None:
    offered = [("aliyun.com/gpu-mem", "GPU-9-_-0")]
    assert statuses_of((), offered=offered) == {"gpushare": (0, True)}


def test_a_resource_that_another_system_claims_by_is_no_sign() -> None:
    """Replicas of an instance bear the instance's resource name."""
    found = statuses_of(given(f"{SLICE}::0", resource="nvidia.com/mig-1g.18gb.shared"))
    assert found == {"time-slicing": (1, False)}


def test_a_note_says_nothing_about_a_card_that_another_pod_was_given_as_a_whole() -> None:
    """Whoever may make a pod may write that note, on any cluster."""
    part = '{"gpu":[{"minor":2,"resources":{"koordinator.sh/gpu-core":"100"}}]}'
    note = {"scheduling.koordinator.sh/device-allocated": part}
    forged = Pod(namespace="ns", name="mallory", uid="m", phase="Running", annotations=note)
    assert [claim.container.pod for claim in found(given(TWO), forged)] == ["p"]
    assert [claim.container.pod for claim in found((), forged)] == ["mallory"]


def test_an_id_is_understood_once_processes_show_the_card() -> None:
    ids = given(f"{TWO}-_-1", resource="aliyun.com/gpu-mem")
    node = inventory([*ids, *given("strange", resource="example.com/gpu")], pod())
    (nowhere,) = unplaced(node, claims(node))
    assert ids[0] in unclaimed(node, claims(node))
    assert ids[0] not in unclaimed(node, claims(node), [nowhere]), "its system is known, and its card is not"
    settled = claims(node, seen={nowhere.container: frozenset({TWO})})
    assert [allocation.device_id for allocation in unclaimed(node, settled)] == ["strange"]


@pytest.mark.parametrize("resource", ["tencent.com/vcuda-core", "tencent.com/vcuda-memory"])
def test_an_id_is_understood_while_the_card_of_a_removed_annotation_is_kept(resource: str) -> None:
    ids = given(*(f"tencent.com/vcuda-core-{n}" for n in range(50)), resource="tencent.com/vcuda-core")
    ids += given("tencent.com/vcuda-memory-268435456-0", resource="tencent.com/vcuda-memory")
    managed = replace(pod(), annotations={"tencent.com/gpu-assigned": "true", "tencent.com/predicate-gpu-idx-0": "2"})
    before = claims(inventory(ids, managed))
    bare = inventory(ids, pod())
    assert resource in {allocation.resource for allocation in unclaimed(bare)}
    assert unclaimed(bare, claims(bare, before=before)) == ()
