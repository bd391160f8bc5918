"""The pod-resources socket, spoken to as the kubelet's: recorded answers and what is made of them."""

import pytest
from grpclib.const import Status

from podgpu.kube.kubelet.podresources import (
    ALLOCATABLE,
    ALLOCATABLE_SECONDS,
    AWAITED_SECONDS,
    LIST,
    OLD_LIST,
    PodResourceLists,
    PodResources,
)
from podgpu.model import Allocation
from tests.fakekubelet._gen.podresources_pb2 import (
    AllocatableResponse,
    ClaimDevice,
    ClaimEntry,
    ContainerEntry,
    DeviceEntry,
    ListResponse,
    PodEntry,
)
from tests.fakekubelet.kubelet import FakeKubelet, Reply
from tests.fakekubelet.rig import Clock, given, ids, reading, reason, recorded

EXCLUSIVE = "GPU-7f3c9a1{n}-52d4-4b8e-9c60-1a2b3c4d5e6{n}"
MIG = "MIG-0a1b2c3d-1111-5111-8111-00000000000{n}"
H200 = "GPU-f64319d0-0dde-3ea0-1a6c-316823782584::{n}"


def rows(allocated: PodResourceLists) -> list[tuple[str, ...]]:
    return [
        (f"{each.namespace}/{each.pod}", each.container, each.resource, each.device_id) for each in allocated.devices
    ]


KUBERNETES_1_36 = [
    ("team-a/chat-584ddf76fc-6lg2w", "server", "nvidia.com/gpu.shared", EXCLUSIVE.format(n=3) + "::2"),
    ("team-a/chat-584ddf76fc-chpsw", "server", "nvidia.com/gpu.shared", EXCLUSIVE.format(n=3) + "::1"),
    ("team-a/rank-0", "ps", "nvidia.com/gpu", EXCLUSIVE.format(n=2)),
    ("team-b/finetune-mjcqc", "tune", "nvidia.com/gpu", EXCLUSIVE.format(n=0)),
    ("team-b/nightly-manual-22spb", "tune", "nvidia.com/mig-1g.18gb", MIG.format(n=1)),
    ("team-b/nightly-manual-22spb", "tune", "nvidia.com/mig-1g.18gb", MIG.format(n=2)),
    ("team-b/share-1", "app", "aliyun.com/gpu-mem", EXCLUSIVE.format(n=4) + "-_-10"),
    ("team-b/share-1", "app", "aliyun.com/gpu-mem", EXCLUSIVE.format(n=4) + "-_-2"),
    ("team-b/share-1", "app", "aliyun.com/gpu-mem", EXCLUSIVE.format(n=4) + "-_-6"),
    ("team-b/share-1", "app", "aliyun.com/gpu-mem", EXCLUSIVE.format(n=4) + "-_-9"),
]


async def test_every_device_of_a_recorded_node_is_its_containers(kubelet: FakeKubelet, part: PodResources) -> None:
    kubelet.replies[LIST] = Reply(recorded("kubernetes-1.36.4", "podresources-v1-list"))
    kubelet.replies[ALLOCATABLE] = Reply(recorded("kubernetes-1.36.4", "podresources-v1-allocatable"))
    allocated = await part.read()
    assert rows(allocated) == KUBERNETES_1_36
    assert allocated.dynamic == ()
    per_resource = [resource for resource, _ in allocated.allocatable]
    assert {each: per_resource.count(each) for each in per_resource} == {
        "aliyun.com/gpu-mem": 11,
        "nvidia.com/gpu": 3,
        "nvidia.com/gpu.shared": 4,
        "nvidia.com/mig-1g.18gb": 3,
    }
    assert ("nvidia.com/gpu", EXCLUSIVE.format(n=1)) in allocated.allocatable
    status = part.status()
    assert (status.name, status.up, status.fault, status.age_seconds) == ("podresources", True, None, 0.0)


async def test_a_kubelet_without_v1_is_asked_in_v1alpha1(kubelet: FakeKubelet, part: PodResources) -> None:
    kubelet.replies[OLD_LIST] = Reply(recorded("kubernetes-1.36.4", "podresources-v1alpha1-list"))
    assert rows(await part.read()) == KUBERNETES_1_36
    assert kubelet.calls == [LIST, OLD_LIST]
    assert part.status().up


async def test_a_kubelet_with_neither_says_so(kubelet: FakeKubelet, part: PodResources) -> None:
    assert await part.read() == PodResourceLists()
    assert reason(part.status()) == "unimplemented"
    assert part.status().age_seconds is None


async def test_dynamic_resources_are_listed_under_each_container_of_the_claim(
    kubelet: FakeKubelet, part: PodResources
) -> None:
    kubelet.replies[LIST] = Reply(recorded("kubernetes-1.36.4-dra", "podresources-v1-list"))
    allocated = await part.read()
    assert [(each.pod, each.container, each.claim_name, each.device) for each in allocated.dynamic] == [
        ("dra-mig", "left", "two-migs", "gpu-7-mig-1g18gb-19-0"),
        ("dra-mig", "left", "two-migs", "gpu-7-mig-1g18gb-19-1"),
        ("dra-mig", "right", "two-migs", "gpu-7-mig-1g18gb-19-0"),
        ("dra-mig", "right", "two-migs", "gpu-7-mig-1g18gb-19-1"),
        ("dra-own", "a", "dra-own-g-5mrbx", "gpu-6"),
        ("dra-own", "b", "dra-own-g-5mrbx", "gpu-6"),
        ("dra-shared-1", "a", "shared-gpu", "gpu-5"),
        ("dra-shared-2", "a", "shared-gpu", "gpu-5"),
    ]
    whole = {(each.namespace, each.claim_namespace, each.driver, each.pool) for each in allocated.dynamic}
    assert whole == {("team-c", "team-c", "gpu.nvidia.com", "gpu-node-1")}
    assert rows(allocated) == KUBERNETES_1_36[1:]
    assert allocated.allocatable == ()


async def test_the_recorded_h200(kubelet: FakeKubelet, part: PodResources) -> None:
    kubelet.replies[LIST] = Reply(recorded("h200-kubelet-1.36.4", "podresources-v1-list"))
    kubelet.replies[ALLOCATABLE] = Reply(recorded("h200-kubelet-1.36.4", "podresources-v1-allocatable"))
    allocated = await part.read()
    assert rows(allocated) == [
        ("team-a/chat-gpu-node-h200", "main", "nvidia.com/gpu.shared", H200.format(n=0)),
        ("team-b/batch-gpu-node-h200", "main", "nvidia.com/gpu.shared", H200.format(n=1)),
        ("team-b/batch-gpu-node-h200", "main", "nvidia.com/gpu.shared", H200.format(n=2)),
        ("team-b/idle-gpu-node-h200", "main", "nvidia.com/gpu.shared", H200.format(n=3)),
    ]
    assert allocated.allocatable == tuple(("nvidia.com/gpu.shared", H200.format(n=n)) for n in range(4))


async def test_a_device_on_two_numa_nodes_is_one_device(kubelet: FakeKubelet, part: PodResources) -> None:
    kubelet.replies[LIST] = Reply(given(b"GPU-b", b"GPU-a", b"GPU-b"))
    assert ids(await part.read()) == ["GPU-a", "GPU-b"]
    assert not part.errors


@pytest.mark.parametrize("bad", [b"", b"GPU a", b"GPU\n", b"GPU-\xff", "GPU-ü".encode(), b"G" * 254])
async def test_an_id_that_can_be_none_is_counted_and_skipped(
    kubelet: FakeKubelet, part: PodResources, bad: bytes
) -> None:
    kubelet.replies[LIST] = Reply(given(b"GPU-a", bad))
    assert ids(await part.read()) == ["GPU-a"]
    assert part.status().up
    assert part.errors == {"bad_id": 1}


async def test_a_pod_without_a_name_gets_nothing(kubelet: FakeKubelet, part: PodResources) -> None:
    kubelet.replies[LIST] = Reply(given(b"GPU-a", pod=b""))
    assert await part.read() == PodResourceLists()


async def test_a_claim_without_devices_is_no_allocation(kubelet: FakeKubelet, part: PodResources) -> None:
    """A kubelet before 1.31 names the claim alone."""
    claim = ClaimEntry(name=b"c", namespace=b"n", devices=[ClaimDevice()])
    pod = PodEntry(name=b"p", namespace=b"n", containers=[ContainerEntry(name=b"c", claims=[claim])])
    kubelet.replies[LIST] = Reply(ListResponse(pods=[pod]).SerializeToString())
    assert await part.read() == PodResourceLists()
    assert not part.errors


async def test_parts_of_a_device_are_told_apart(kubelet: FakeKubelet, part: PodResources) -> None:
    """Kubelets before 1.35 do not name them."""
    devices = [ClaimDevice(driver=b"d", pool=b"p", device=b"gpu-0", share_id=share) for share in (b"1", b"2", b"")]
    claim = ClaimEntry(name=b"c", namespace=b"n", devices=devices)
    pod = PodEntry(name=b"p", namespace=b"n", containers=[ContainerEntry(name=b"c", claims=[claim])])
    kubelet.replies[LIST] = Reply(ListResponse(pods=[pod]).SerializeToString())
    allocated = await part.read()
    assert [(entry.device, entry.share_id) for entry in allocated.dynamic] == [
        ("gpu-0", ""),
        ("gpu-0", "1"),
        ("gpu-0", "2"),
    ]
    assert not part.errors


async def test_fields_of_a_later_kubelet_are_passed_over(kubelet: FakeKubelet, part: PodResources) -> None:
    later = b"\xfa\x3f\x03new\xf0\x3f\x01"  # number 1023 as bytes, 1022 as a varint
    kubelet.replies[LIST] = Reply(given(b"GPU-a") + later)
    assert ids(await part.read()) == ["GPU-a"]


async def test_what_can_be_given_is_asked_for_rarely(kubelet: FakeKubelet, part: PodResources, clock: Clock) -> None:
    async def asked() -> int:
        clock.now += 10
        await part.read()
        return kubelet.calls.count(ALLOCATABLE)

    kubelet.replies[LIST] = Reply(given(b"GPU-a"))
    kubelet.replies[ALLOCATABLE] = Reply(offered(b"GPU-a", b"GPU-b"))
    assert [await asked() for _ in range(8)] == [1, 1, 1, 1, 1, 1, 2, 2]
    kubelet.replies[LIST] = Reply(given(b"GPU-b"))
    assert [await asked() for _ in range(2)] == [3, 3]


async def test_without_the_list_of_what_can_be_given_the_map_is_up(kubelet: FakeKubelet, part: PodResources) -> None:
    kubelet.replies[LIST] = Reply(given(b"GPU-a"))
    kubelet.replies[ALLOCATABLE] = Reply(status=Status.UNIMPLEMENTED)
    assert ids(await part.read()) == ["GPU-a"]
    assert part.status().up
    assert list(part.errors) == ["unimplemented"]


async def test_5000_pods_are_read_whole(kubelet: FakeKubelet) -> None:
    async with reading(kubelet) as part:
        pods = [
            PodEntry(
                name=b"pod-%d" % number,
                namespace=b"team",
                containers=[
                    ContainerEntry(name=b"c", devices=[DeviceEntry(resource=b"r/gpu", ids=[b"GPU-%d" % number])])
                ],
            )
            for number in range(5000)
        ]
        kubelet.replies[LIST] = Reply(ListResponse(pods=pods).SerializeToString())
        devices = (await part.read()).devices
        assert len(devices) == 5000
        assert devices[0] == Allocation(
            namespace="team", pod="pod-0", container="c", resource="r/gpu", device_id="GPU-0"
        )


async def test_what_a_plugin_offered_stands_until_it_registers_again(
    kubelet: FakeKubelet, part: PodResources, clock: Clock
) -> None:
    """A restarted kubelet knows what was given out at once, but not yet of how many: a share must not grow for that."""
    kubelet.replies[LIST] = Reply(given(b"GPU-1::0"))
    kubelet.replies[ALLOCATABLE] = Reply(offered(b"GPU-1::0", b"GPU-1::1"))
    before = await part.read()
    kubelet.replies[ALLOCATABLE] = Reply(b"")
    clock.now += ALLOCATABLE_SECONDS
    assert (await part.read()).allocatable == before.allocatable
    kubelet.replies[LIST] = Reply(b"")
    assert (await part.read()).allocatable == ()


@pytest.mark.parametrize("silent", [Reply(b""), Reply(status=Status.UNAVAILABLE)], ids=["nothing", "a failure"])
async def test_a_plugin_that_has_not_registered_is_asked_after_soon(
    kubelet: FakeKubelet, part: PodResources, clock: Clock, silent: Reply
) -> None:
    kubelet.replies[LIST] = Reply(given(b"GPU-1::0"))
    kubelet.replies[ALLOCATABLE] = silent
    assert (await part.read()).allocatable == ()
    kubelet.replies[ALLOCATABLE] = Reply(offered(b"GPU-1::0", b"GPU-1::1"))
    assert (await part.read()).allocatable == ()
    clock.now += AWAITED_SECONDS
    assert len((await part.read()).allocatable) == 2
    clock.now += AWAITED_SECONDS
    await part.read()
    assert kubelet.calls.count(ALLOCATABLE) == 2


async def test_another_kubelet_is_asked_what_can_be_given_at_once(kubelet: FakeKubelet, part: PodResources) -> None:
    kubelet.replies[LIST] = Reply(given(b"GPU-1::0"))
    kubelet.replies[ALLOCATABLE] = Reply(offered(b"GPU-1::0", b"GPU-1::1"))
    await part.read()
    await kubelet.stop()
    await kubelet.start()
    kubelet.replies[ALLOCATABLE] = Reply(offered(b"GPU-1::0", b"GPU-1::1", b"GPU-1::2"))
    assert len((await part.read()).allocatable) == 3


def offered(*ids: bytes) -> bytes:
    entries = [DeviceEntry(resource=b"nvidia.com/gpu", ids=[each]) for each in ids]
    return AllocatableResponse(devices=entries).SerializeToString()


def listed(*names: bytes) -> bytes:
    """Return an answer with a pod for each name, in this order."""
    return b"".join(given(b"GPU-" + name, pod=name) for name in names)


async def test_an_unchanged_answer_is_the_same_object_in_any_order(kubelet: FakeKubelet, part: PodResources) -> None:
    kubelet.replies[LIST] = Reply(listed(b"a", b"b"))
    before = await part.read()
    assert await part.read() is before
    kubelet.replies[LIST] = Reply(listed(b"b", b"a"))
    assert await part.read() is before
    kubelet.replies[LIST] = Reply(listed(b"b", b"c"))
    after = await part.read()
    assert ids(after) == ["GPU-b", "GPU-c"]
    assert await part.read() is after


async def test_what_can_be_given_makes_a_new_object_only_if_it_changed(
    kubelet: FakeKubelet, part: PodResources, clock: Clock
) -> None:
    kubelet.replies[LIST] = Reply(given(b"GPU-a"))
    kubelet.replies[ALLOCATABLE] = Reply(offered(b"GPU-a", b"GPU-b"))
    before = await part.read()
    clock.now += ALLOCATABLE_SECONDS
    kubelet.replies[ALLOCATABLE] = Reply(offered(b"GPU-b", b"GPU-a"))
    assert await part.read() is before
    assert kubelet.calls.count(ALLOCATABLE) == 2
    clock.now += ALLOCATABLE_SECONDS
    kubelet.replies[ALLOCATABLE] = Reply(offered(b"GPU-a"))
    assert (await part.read()).allocatable == (("nvidia.com/gpu", "GPU-a"),)


async def test_a_failure_between_two_equal_answers_changes_nothing(kubelet: FakeKubelet, part: PodResources) -> None:
    kubelet.replies[LIST] = Reply(given(b"GPU-a"))
    before = await part.read()
    kubelet.replies[LIST] = Reply(b"\x0a\xff")
    assert await part.read() is before
    assert reason(part.status()) == "garbage"
    kubelet.replies[LIST] = Reply(given(b"GPU-a"))
    assert await part.read() is before
    assert part.status().up


async def test_a_bad_id_is_counted_once_for_as_long_as_it_is_listed(kubelet: FakeKubelet, part: PodResources) -> None:
    bad = given(b"GPU bad")
    for answer in (bad, bad, bad + given(b"GPU-a"), given(b"GPU-a"), bad):
        kubelet.replies[LIST] = Reply(answer)
        await part.read()
    assert part.errors == {"bad_id": 2}
