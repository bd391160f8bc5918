"""A kubelet or an API server that sends too much, over real sockets: bounded, named, and nobody else waits for it.

What is handled in one turn of the event loop is counted, so that the tests do not depend on the machine's speed.
"""

import asyncio
import gc
import threading
import tracemalloc
from collections.abc import AsyncIterator, Iterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager, contextmanager
from itertools import count
from math import ceil
from pathlib import Path
from types import SimpleNamespace

import pytest

from podgpu.kube import throttle
from podgpu.kube._gen.pods_pb2 import ContainerSpec, ListResponse, Metadata, PodMessage, PodSpec, WatchEvent
from podgpu.kube.api import ApiServer
from podgpu.kube.kubelet import podresources, rpc
from podgpu.kube.kubelet.podresources import LIST as DEVICES
from podgpu.kube.kubelet.podresources import PodResources
from podgpu.kube.kubelet.pods_api import LIST, WATCH, PodsApi
from podgpu.kube.limits import MOST_CONTAINERS, MOST_LISTED, MOST_PODS, name_crowded_pod
from podgpu.kube.object_watch import PodWatch, WatchTiming
from podgpu.model import PartStatus, Pod
from tests.fakeapi.recorded import NODE, changed, pod
from tests.fakeapi.server import PODS, FakeApi
from tests.fakekubelet._gen.podresources_pb2 import ContainerEntry, DeviceEntry, PodEntry
from tests.fakekubelet._gen.podresources_pb2 import ListResponse as DeviceList
from tests.fakekubelet.kubelet import POD_RESOURCES, PODS_API, FakeKubelet, Reply, kubelet_root
from tests.fakekubelet.rig import reason
from tests.kube.turns import Turns, running
from tests.patience import PATIENCE, until

MIB = 1 << 20
ADDED, SYNCED = 1, 4
NOTES = ("note/",)
UNIT_SECONDS = 2**-12  # that an event takes by the throttle's clock
MOST_IN_A_TURN = ceil(throttle.SLICE_SECONDS / UNIT_SECONDS)  # events: then a slice of time is full
MOST_IDS = 30_000  # not as many as the bound is, for the sake of time


@pytest.fixture
def counted_events(monkeypatch: pytest.MonkeyPatch) -> Turns:
    """Count the work that is throttled. Every piece takes the same time by the throttle's clock."""
    turns = Turns()
    work = throttle.CpuThrottle.work

    def counted(self: throttle.CpuThrottle) -> AbstractAsyncContextManager[None]:
        turns.count()
        return work(self)

    ticks = count()
    monkeypatch.setattr(throttle.CpuThrottle, "work", counted)
    monkeypatch.setattr(throttle, "time", SimpleNamespace(monotonic=lambda: next(ticks) * UNIT_SECONDS))
    return turns


@pytest.fixture
def read_in_threads(monkeypatch: pytest.MonkeyPatch) -> list[bool]:
    """Say of each list of devices whether it was read beside the event loop."""
    found: list[bool] = []
    read_list = podresources.read_list

    def noted(answer: bytes) -> podresources.Listed:
        found.append(threading.current_thread() is not threading.main_thread())
        return read_list(answer)

    monkeypatch.setattr(podresources, "read_list", noted)
    return found


@pytest.fixture
def numbers_read(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Note the place of each number that is read of a protobuf message: two of each field."""
    found: list[int] = []
    varint = rpc._varint

    def noted(data: memoryview, at: int) -> tuple[int, int]:
        found.append(at)
        return varint(data, at)

    monkeypatch.setattr(rpc, "_varint", noted)
    return found


@contextmanager
def memory_below(most: int) -> Iterator[None]:
    """Python's own memory, at its peak."""
    gc.collect()
    tracemalloc.start()
    try:
        yield
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < most, f"{peak / MIB:.0f} MiB"


@asynccontextmanager
async def kubelet(*sockets: str) -> AsyncIterator[FakeKubelet]:
    with kubelet_root() as root:
        async with FakeKubelet(root, sockets=sockets) as fake:
            yield fake


@asynccontextmanager
async def pods_of(root: Path) -> AsyncIterator[PodsApi]:
    part = PodsApi(root, deadline=PATIENCE, annotations=NOTES)
    task = asyncio.create_task(part.run())
    try:
        yield part
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


@asynccontextmanager
async def watching(fake: FakeApi) -> AsyncIterator[PodWatch]:
    api = ApiServer(fake.url)
    watch = PodWatch(api, NODE, timing=WatchTiming(first_pause=0.02, longest_pause=0.05), annotations=NOTES)
    task = asyncio.create_task(watch.run())
    try:
        yield watch
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        await api.close()


def message(uid: str, junk: int = 0) -> bytes:
    notes = {"note/cards": "0"} | ({"junk": "x" * junk} if junk else {})
    return PodMessage(metadata=Metadata(namespace="n", name=uid, uid=uid, annotations=notes)).SerializeToString()


def event(kind: int, data: bytes = b"") -> bytes:
    return WatchEvent(type=kind, pod=data).SerializeToString()


def uid(number: int) -> str:
    return f"{number:08}-da73-45a0-91d1-4b3469bce212"


async def test_fat_pods_blind_nobody_on_the_kubelets_socket() -> None:
    """65 pods of 256 KiB are more than a list may have. The watch has them one by one."""
    fat = [message(f"p{n:02}", 256 << 10) for n in range(65)]
    async with kubelet(PODS_API) as fake, pods_of(fake.root) as part:
        fake.replies[LIST] = Reply(ListResponse(pods=fat).SerializeToString())
        fake.replies[WATCH] = Reply(*(event(ADDED, data) for data in fat), event(SYNCED), hangs=True)
        await until(lambda: len(part.pods() or ()) == 65)
        await until(lambda: part.status().up)
        assert part.errors == {"too_large": 1}
        assert all(found.annotations == {"note/cards": "0"} for found in part.pods() or ())


async def test_a_fat_pod_is_seen_by_the_api_servers_list_and_watch() -> None:
    fat = {"junk": "<" * (3 * MIB), "note/cards": "0"}
    first, second = (changed(pod("p", uid(n), 5 + n), annotations=fat) for n in range(2))
    async with FakeApi(pods=[first], version=5) as fake, watching(fake) as watch:
        await until(lambda: fake.open_watches)
        fake.event("ADDED", second)
        await until(lambda: len(watch.pods() or ()) == 2)
        assert watch.errors == {}
        assert [found.annotations for found in watch.pods() or ()] == [{"note/cards": "0"}] * 2


async def test_what_nobody_reads_of_many_pods_is_not_kept() -> None:
    """110 pods with a quarter of a MiB of annotations, which is as much as Kubernetes takes."""
    gc.collect()
    junk = [message(f"p{n}", MIB // 4) for n in range(110)]
    async with kubelet(PODS_API) as fake, pods_of(fake.root) as part:
        fake.replies[LIST] = Reply(b"")
        fake.replies[WATCH] = watch = Reply(event(SYNCED), hangs=True)
        await until(lambda: part.status().up)
        tracemalloc.start()
        try:
            while junk:
                watch.push(event(ADDED, junk.pop()))
            await until(lambda: len(part.pods() or ()) == 110)
            gc.collect()
            kept, _ = tracemalloc.get_traced_memory()
        finally:
            tracemalloc.stop()
    assert kept < 4 * MIB


async def test_sixteen_mib_of_empty_pods_are_not_taken_for_pods(counted_events: Turns, numbers_read: list[int]) -> None:
    empty = b"\x0a\x00" * (8 * MIB - 1)
    async with kubelet(PODS_API) as fake, pods_of(fake.root) as part, running(counted_events):
        fake.replies[LIST] = Reply(empty)
        fake.replies[WATCH] = Reply(event(ADDED, message("p")), event(SYNCED), hangs=True)
        await until(lambda: [found.uid for found in part.pods() or ()] == ["p"])
        assert part.errors["bad_pod"] == MOST_PODS
        assert len(numbers_read) <= 2 * MOST_LISTED
        assert counted_events.most <= MOST_IN_A_TURN


async def test_a_list_with_more_fields_than_there_can_be_is_named_while_the_watch_has_the_pods(
    numbers_read: list[int],
) -> None:
    strange = b"\x12\x00" * (8 * MIB - 1)
    async with kubelet(PODS_API) as fake, pods_of(fake.root) as part:
        fake.replies[LIST] = Reply(strange)
        fake.replies[WATCH] = Reply(event(ADDED, message("p")), event(SYNCED), hangs=True)
        await until(lambda: [found.uid for found in part.pods() or ()] == ["p"])
        fault = part.status().fault
        assert fault and (fault.reason, fault.call) == ("too_many", "ListPods")
        assert part.errors == {"too_many": 1}
        assert len(numbers_read) <= 2 * MOST_LISTED
        fake.replies[LIST] = Reply(ListResponse(pods=[message("p")]).SerializeToString())
        fake.break_connections()
        await until(lambda: part.status().up and part.status().fault is None)


async def test_a_pod_with_too_many_containers_is_named_by_the_kubelets_watch() -> None:
    specs = [ContainerSpec(name=f"c{n}") for n in range(MOST_CONTAINERS + 7)]
    crowded = PodMessage(metadata=Metadata(namespace="n", name="p", uid="u"), spec=PodSpec(containers=specs))
    events = [event(ADDED, crowded.SerializeToString()), event(ADDED, message("q")), event(SYNCED)]
    async with kubelet(PODS_API) as fake, pods_of(fake.root) as part:
        fake.replies[LIST] = Reply(b"")
        fake.replies[WATCH] = Reply(*events, hangs=True)
        await until(lambda: len(part.pods() or ()) == 2)
        status = part.status()
        assert status.up and status.fault
        assert (status.fault.reason, status.fault.detail.split()[0]) == ("too_many_containers", "n/p")
        assert status.fault.detail.endswith("; 7 are left out")


@pytest.mark.parametrize(
    ("count", "end"),
    [(1, "; 1 are left out"), (2, "; 1 more pod has too many, too"), (3, "; 2 more pods have too many, too")],
)
def test_the_first_of_several_pods_with_too_many_containers_is_named(count: int, end: str) -> None:
    pods = [Pod(namespace="n", name=f"p{n}", uid=f"u{n}", left_out=1) for n in range(count)]
    fault = name_crowded_pod(PartStatus(name="pods-api", up=True), pods).fault
    assert fault and fault.detail.startswith("n/p0 has more than") and fault.detail.endswith(end)


async def test_a_pod_with_too_many_containers_is_named_by_the_api_servers_list() -> None:
    crowded = pod("p", uid(0))
    crowded["spec"]["containers"] = [{"name": f"c{n}"} for n in range(MOST_CONTAINERS + 7)]
    async with FakeApi(pods=[crowded, pod("q", uid(1))], version=5) as fake, watching(fake) as watch:
        await until(lambda: reason(watch.status()) == "too_many_containers")
        assert watch.status().up
        assert watch.errors == {"too_many_containers": 7}


async def test_an_endless_list_of_devices_is_given_up(read_in_threads: list[bool]) -> None:
    async with kubelet(POD_RESOURCES) as fake:
        part = PodResources(fake.root, deadline=PATIENCE)
        fake.replies[DEVICES] = Reply(b"\x0a\x00" * (8 * MIB - 1))
        assert (await part.read()).devices == ()
        assert reason(part.status()) == "too_many"
        assert read_in_threads == [True]
        await part.close()


async def test_more_ids_than_a_node_has_are_named(monkeypatch: pytest.MonkeyPatch, read_in_threads: list[bool]) -> None:
    monkeypatch.setattr(podresources, "MOST_IDS", MOST_IDS)
    devices = [DeviceEntry(resource=b"nvidia.com/gpu", ids=[b"GPU-1::%d" % n]) for n in range(MOST_IDS + 9)]
    holder = PodEntry(name=b"p", namespace=b"n", containers=[ContainerEntry(name=b"c", devices=devices)])
    async with kubelet(POD_RESOURCES) as fake:
        part = PodResources(fake.root, deadline=PATIENCE)
        fake.replies[DEVICES] = Reply(DeviceList(pods=[holder]).SerializeToString())
        assert len((await part.read()).devices) == MOST_IDS
        fault = part.status().fault
        assert fault and (fault.reason, fault.detail.split()[0]) == ("too_many", "9")
        assert part.errors["too_many"] == 1
        fake.replies[DEVICES] = Reply(b"")
        assert (await part.read()).devices == ()
        assert part.status().up
        assert read_in_threads == [True, False]
        await part.close()


async def test_pods_that_never_end_to_come_are_taken_up_to_a_bound_by_the_kubelets_watch(
    counted_events: Turns,
) -> None:
    async with kubelet(PODS_API) as fake, pods_of(fake.root) as part, running(counted_events):
        fake.replies[LIST] = Reply(ListResponse(pods=[message("a")]).SerializeToString())
        events = [event(ADDED, message(f"p{n}")) for n in range(MOST_PODS + 500)]
        fake.replies[WATCH] = Reply(event(ADDED, message("a")), event(SYNCED), *events, hangs=True)
        await until(lambda: reason(part.status()) == "too_many")
        found = part.pods() or ()
        assert len(found) == MOST_PODS and found[0].uid == "a"
        assert counted_events.most <= MOST_IN_A_TURN


async def test_pods_that_never_end_to_come_are_taken_up_to_a_bound_by_the_api_servers_watch(
    counted_events: Turns,
) -> None:
    async with FakeApi(pods=[pod("p", uid(0))]) as fake, watching(fake) as watch:
        await until(lambda: fake.open_watches)
        async with running(counted_events):
            for n in range(1, MOST_PODS + 500):
                fake.event("ADDED", pod("p", uid(n), 10 + n))
            await until(lambda: reason(watch.status()) == "too_many")
            assert counted_events.most <= MOST_IN_A_TURN
        assert len(watch.pods() or ()) == MOST_PODS
        assert watch.errors == {"too_many": 1}


async def test_pages_without_an_end_are_read_up_to_a_bound(counted_events: Turns) -> None:
    bulk = [pod("p", uid(n)) for n in range(MOST_PODS + 700)]
    async with FakeApi(pods=bulk, version=5) as fake, watching(fake) as watch, running(counted_events):
        await until(lambda: reason(watch.status()) == "too_many")
        assert len(watch.pods() or ()) == MOST_PODS
        assert len(fake.lists) < 6
        assert counted_events.most <= MOST_IN_A_TURN


async def test_a_list_of_nothing_but_brackets_is_refused_before_it_fills_the_memory() -> None:
    body = b'{"metadata":{"resourceVersion":"7"},"items":[' + b"{}," * (5 * MIB) + b"{}]}"
    async with FakeApi(pods=[pod("p", uid(0))]) as fake:
        fake.refuse(200, times=1, body=body, wanted=lambda seen: seen.path == PODS and not seen.is_watch)
        with memory_below(64 * MIB):
            async with watching(fake) as watch:
                await until(lambda: len(watch.pods() or ()) == 1)
