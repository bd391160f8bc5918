"""The Pods API, spoken to as the kubelet's: recorded lists and watches, and watches that break."""

import asyncio
import struct
import time
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime

import pytest
from grpclib.const import Status

from podgpu.kube._gen.pods_pb2 import ListResponse, Metadata, PodMessage, PodStatus, WatchEvent
from podgpu.kube.kubelet import pods_api
from podgpu.kube.kubelet.pods_api import LIST, WATCH, PodsApi
from podgpu.model import Pod, PodContainer
from podgpu.model.ports import PodSource
from tests.fakekubelet.kubelet import PODS_API, FakeKubelet, Reply, kubelet_root
from tests.fakekubelet.rig import Clock, reason, recorded
from tests.patience import PATIENCE

ADDED, MODIFIED, DELETED, SYNCED = 1, 2, 3, 4
DRA_PODS = {
    "kube-system/static-probe-gpu-node-1",
    "team-a/chat-584ddf76fc-chpsw",
    "team-a/rank-0",
    "team-b/finetune-mjcqc",
    "team-b/nightly-manual-22spb",
    "team-b/probe-b8xdx",
    "team-b/share-1",
    "team-c/dra-mig",
    "team-c/dra-own",
    "team-c/dra-shared-1",
    "team-c/dra-shared-2",
}


class Sleeper:
    """Takes no time, so that tests are quick, and remembers how long it should have taken."""

    def __init__(self) -> None:
        self.slept: list[float] = []

    async def __call__(self, seconds: float) -> None:
        self.slept.append(seconds)
        await asyncio.sleep(0.005)


@pytest.fixture
async def kubelet() -> AsyncIterator[FakeKubelet]:
    with kubelet_root() as root:
        async with FakeKubelet(root, sockets=(PODS_API,)) as fake:
            yield fake


@pytest.fixture
def sleeper() -> Sleeper:
    return Sleeper()


@asynccontextmanager
async def running(
    kubelet: FakeKubelet, sleeper: Sleeper, clock: Callable[[], float] = time.monotonic
) -> AsyncIterator[PodsApi]:
    part = PodsApi(kubelet.root, deadline=PATIENCE, sleep=sleeper, clock=clock)
    task = asyncio.create_task(part.run())
    try:
        yield part
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        assert task.cancelled(), task


async def until(condition: Callable[[], bool]) -> None:
    async with asyncio.timeout(PATIENCE):
        while not condition():  # noqa: ASYNC110, what is waited for is the product's, which has no event
            await asyncio.sleep(0.005)


def message(uid: str, name: str = "p", phase: str = "Running") -> bytes:
    metadata = Metadata(namespace="n", name=name, uid=uid)
    return PodMessage(metadata=metadata, status=PodStatus(phase=phase)).SerializeToString()


def listing(*pods: bytes) -> bytes:
    return ListResponse(pods=pods).SerializeToString()


def event(kind: int, pod: bytes = b"") -> bytes:
    return WatchEvent(type=kind, pod=pod).SerializeToString()


def watching(*pods: bytes) -> Reply:
    """A watch that begins with the pods and goes on."""
    return Reply(*(event(ADDED, pod) for pod in pods), event(SYNCED), hangs=True)


def uids(part: PodsApi) -> list[str]:
    return [pod.uid for pod in part.pods() or ()]


def names(part: PodsApi) -> set[str]:
    return {f"{pod.namespace}/{pod.name}" for pod in part.pods() or ()}


def counts(part: PodsApi) -> dict[str, int]:
    return dict(part.errors)


def recorded_events() -> Iterator[bytes]:
    data = recorded("kubernetes-1.36.4-dra", "podsapi-watch")
    while data:
        (size,) = struct.unpack_from("<I", data)
        yield data[4 : 4 + size]
        data = data[4 + size :]


async def test_a_recorded_watch_ends_with_the_pod_deleted(kubelet: FakeKubelet, sleeper: Sleeper) -> None:
    events = list(recorded_events())
    synced = events.index(event(SYNCED)) + 1
    kubelet.replies[LIST] = Reply(recorded("kubernetes-1.36.4-dra", "podsapi-list"))
    kubelet.replies[WATCH] = watch = Reply(*events[:synced], hangs=True)
    async with running(kubelet, sleeper) as part:
        source: PodSource = part
        assert source.pods() is None
        assert part.status().age_seconds is None
        await until(lambda: part.status().age_seconds == 0.0)
        assert names(part) == DRA_PODS
        rank = next(pod for pod in part.pods() or () if pod.name == "rank-0")
        phases = []
        for each in events[synced:]:
            watch.push(each)
            watch.push(event(0))  # counted, which shows that the event before it has been applied
            applied = counts(part).get("unknown_event", 0) + 1
            await until(lambda applied=applied: counts(part).get("unknown_event") == applied)  # type: ignore[misc]
            phases += [pod.phase for pod in part.pods() or () if pod.uid == rank.uid]
        assert phases == ["Running", "Failed", "Failed"]
        assert names(part) == DRA_PODS - {"team-a/rank-0"}
        assert part.status().up
    assert counts(part) == {"unknown_event": len(events) - synced}
    assert sleeper.slept == []


async def test_the_recorded_h200(kubelet: FakeKubelet, sleeper: Sleeper) -> None:
    kubelet.replies[LIST] = Reply(recorded("h200-kubelet-1.36.4", "podsapi-list"))
    kubelet.replies[WATCH] = Reply(hangs=True)
    async with running(kubelet, sleeper) as part:
        await until(lambda: part.pods() is not None)
        chat, batch, idle = part.pods() or ()
    assert chat == Pod(
        namespace="team-a",
        name="chat-gpu-node-h200",
        uid="85bec38f25412cdcb410457a072a3498",
        phase="Running",
        started_at=datetime(2026, 11, 15, 4, 2, 12, tzinfo=UTC).timestamp(),
        static_hash="85bec38f25412cdcb410457a072a3498",
        qos="besteffort",
        labels={"app": "chat"},
        containers=(
            PodContainer(
                name="main",
                container_id="a276863f81c3cb902e3b162c0c87de048bab07294b5e868c543c69f944562ab8",
                image="docker.io/library/bb:1",
                running=True,
                devices=(("nvidia.com/gpu.shared", "GPU-f64319d0-0dde-3ea0-1a6c-316823782584::0"),),
                limits={"nvidia.com/gpu.shared": "1"},
            ),
        ),
    )
    assert [len(pod.containers[0].devices) for pod in (batch, idle)] == [2, 1]


async def test_two_pods_of_one_name_are_two_pods(kubelet: FakeKubelet, sleeper: Sleeper) -> None:
    kubelet.replies[LIST] = Reply(listing(message("1")))
    kubelet.replies[WATCH] = watch = watching(message("1"))
    async with running(kubelet, sleeper) as part:
        watch.push(event(ADDED, message("2")))
        await until(lambda: uids(part) == ["1", "2"])
        watch.push(event(DELETED, message("1")))
        await until(lambda: uids(part) == ["2"])


async def test_a_pod_that_went_before_the_watch_began_is_forgotten(kubelet: FakeKubelet, sleeper: Sleeper) -> None:
    kubelet.replies[LIST] = Reply(listing(message("1"), message("2")))
    kubelet.replies[WATCH] = watching(message("2"), message("3"))
    async with running(kubelet, sleeper) as part:
        await until(lambda: uids(part) == ["2", "3"])


async def test_what_cannot_be_understood_is_counted_and_skipped(kubelet: FakeKubelet, sleeper: Sleeper) -> None:
    kubelet.replies[LIST] = Reply(listing(message("1"), b"\xff", message("")))
    kubelet.replies[WATCH] = watch = watching(message("1"))
    async with running(kubelet, sleeper) as part:
        for each in (event(0), event(99, message("8")), event(ADDED, b"\xff"), event(MODIFIED, message("9"))):
            watch.push(each)
        await until(lambda: uids(part) == ["1", "9"])
        assert part.status().up
        assert counts(part) == {"bad_pod": 3, "unknown_event": 2}


async def test_a_watch_that_breaks_is_followed_by_a_new_list(kubelet: FakeKubelet, sleeper: Sleeper) -> None:
    async with running(kubelet, sleeper) as part:
        for uid in "123":
            kubelet.replies.get(WATCH, Reply()).end()
            kubelet.replies[LIST] = Reply(listing(message(uid)))
            kubelet.replies[WATCH] = watching(message(uid))
            await until(lambda uid=uid: uids(part) == [uid] and part.status().age_seconds == 0.0)  # type: ignore[misc]
    assert kubelet.calls == [LIST, WATCH] * 3
    assert len(sleeper.slept) == 2 and all(1 <= slept <= 2 for slept in sleeper.slept)
    assert counts(part) == {"unavailable": 2}


async def test_what_is_known_ages_from_the_moment_the_watch_is_lost(kubelet: FakeKubelet, sleeper: Sleeper) -> None:
    clock = Clock()
    kubelet.replies[LIST] = Reply(listing(message("1")))
    kubelet.replies[WATCH] = watch = watching(message("1"))
    async with running(kubelet, sleeper, clock) as part:
        watch.push(event(ADDED, message("2")))
        await until(lambda: uids(part) == ["1", "2"])
        clock.now += 100
        assert part.status().age_seconds == 0.0
        await kubelet.stop()
        await until(lambda: not part.status().up)
        clock.now += 7
        assert part.status().age_seconds == 7.0


async def test_an_event_that_is_none_costs_the_watch(kubelet: FakeKubelet, sleeper: Sleeper) -> None:
    kubelet.replies[LIST] = Reply(listing(message("1")))
    kubelet.replies[WATCH] = watch = watching(message("1"))
    async with running(kubelet, sleeper) as part:
        await until(lambda: part.status().age_seconds == 0.0)
        watch.push(b"\x0a\xff")
        await until(lambda: kubelet.calls.count(WATCH) == 2)
        assert counts(part) == {"garbage": 1}


async def test_a_kubelet_restart_keeps_the_pods_and_finds_the_new_socket(
    kubelet: FakeKubelet, sleeper: Sleeper
) -> None:
    kubelet.replies[LIST] = Reply(listing(message("1")))
    kubelet.replies[WATCH] = watching(message("1"))
    async with running(kubelet, sleeper) as part:
        await until(lambda: part.status().age_seconds == 0.0)
        await kubelet.stop()
        await until(lambda: reason(part.status()) == "no_socket")
        assert uids(part) == ["1"]
        kubelet.replies[LIST] = Reply(status=Status.FAILED_PRECONDITION)
        await kubelet.start()
        await until(lambda: reason(part.status()) == "not_synced")
        assert uids(part) == ["1"]
        kubelet.replies[LIST] = Reply(listing(message("2")))
        kubelet.replies[WATCH] = watching(message("2"))
        await until(lambda: uids(part) == ["2"] and part.status().up)


async def test_a_socket_that_is_not_there_is_looked_for_and_found_soon(kubelet: FakeKubelet, sleeper: Sleeper) -> None:
    await kubelet.stop()
    async with running(kubelet, sleeper) as part:
        await until(lambda: len(sleeper.slept) >= 3)
        assert reason(part.status()) == "no_socket"
        assert part.pods() is None
        assert part.errors["no_socket"] == 1
        assert set(sleeper.slept) == {2.0}
        kubelet.replies = {LIST: Reply(listing(message("1"))), WATCH: watching(message("1"))}
        await kubelet.start()
        await until(lambda: uids(part) == ["1"])


async def test_pauses_grow_to_half_a_minute_and_differ(kubelet: FakeKubelet, sleeper: Sleeper) -> None:
    kubelet.replies[LIST] = Reply(status=Status.RESOURCE_EXHAUSTED)
    async with running(kubelet, sleeper) as part:
        await until(lambda: len(sleeper.slept) >= 8)
        assert reason(part.status()) == "rate_limited"
    most = [2, 4, 8, 16, 30, 30, 30, 30]
    assert all(top / 2 <= slept <= top for top, slept in zip(most, sleeper.slept, strict=False))
    assert len(set(sleeper.slept)) == len(sleeper.slept)


async def test_a_list_that_hangs_is_given_up(kubelet: FakeKubelet, sleeper: Sleeper) -> None:
    kubelet.replies[LIST] = Reply(hangs=True)
    part = PodsApi(kubelet.root, deadline=0.05, sleep=sleeper)
    task = asyncio.create_task(part.run())
    await until(lambda: reason(part.status()) == "deadline")
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)
    fault = part.status().fault
    assert fault and fault.call == "ListPods"


async def test_a_watch_that_never_tells_its_pods_is_given_up(
    kubelet: FakeKubelet, sleeper: Sleeper, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pods_api, "SYNC_SECONDS", 0.05)
    kubelet.replies[LIST] = Reply(listing(message("1")))
    kubelet.replies[WATCH] = Reply(hangs=True)
    async with running(kubelet, sleeper) as part:
        await until(lambda: reason(part.status()) == "deadline")
        fault = part.status().fault
        assert fault and fault.call == "WatchPods"
        assert uids(part) == ["1"]


async def test_a_watch_is_checked_by_a_list_now_and_then(
    kubelet: FakeKubelet, sleeper: Sleeper, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pods_api, "RELIST_SECONDS", 0.1)
    kubelet.replies[LIST] = Reply(listing(message("1")))
    kubelet.replies[WATCH] = watching(message("1"))
    async with running(kubelet, sleeper) as part:
        await until(lambda: part.status().age_seconds == 0.0)
        kubelet.replies[LIST] = Reply(listing(message("2")))
        kubelet.replies[WATCH] = watching(message("2"))
        await until(lambda: uids(part) == ["2"])
        assert part.status().up
    assert sleeper.slept == []
    assert counts(part) == {}


async def test_an_event_that_changes_nothing_keeps_the_same_tuple(kubelet: FakeKubelet, sleeper: Sleeper) -> None:
    kubelet.replies[LIST] = Reply(listing(message("1"), message("2")))
    kubelet.replies[WATCH] = watch = watching(message("2"), message("1"))
    async with running(kubelet, sleeper) as part:
        await until(lambda: part.status().age_seconds == 0.0)
        before = part.pods()
        watch.push(event(MODIFIED, message("1")))
        watch.push(event(DELETED, message("9")))
        watch.push(event(0))
        await until(lambda: counts(part) == {"unknown_event": 1})
        assert part.pods() is before
        watch.push(event(ADDED, message("3")))
        await until(lambda: part.pods() is not before)
        assert uids(part) == ["1", "2", "3"]
