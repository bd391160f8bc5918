"""A kubelet that fails in every way it can: the last map stays and the status says why."""

import asyncio
import itertools
import socket
from pathlib import Path

import hypothesis
import pytest
from grpclib.const import Status
from hypothesis import strategies as st
from msgspec.structs import replace

from podgpu.kube.kubelet.podresources import (
    ALLOCATABLE,
    LIST,
    SETTLING_SECONDS,
    PodResourceLists,
    PodResources,
)
from podgpu.kube.kubelet.rpc import fault
from tests.fakekubelet.kubelet import POD_RESOURCES, FakeKubelet, Reply, kubelet_root
from tests.fakekubelet.rig import Clock, given, ids, reading, reason, recorded
from tests.kube.kubelet.podresources.test_answers import offered
from tests.patience import PATIENCE, LoopClock, until

MIB = 1024 * 1024


async def test_a_list_survives_a_second_call_that_hangs(kubelet: FakeKubelet) -> None:
    clock = LoopClock()
    async with reading(kubelet) as part:
        kubelet.replies[LIST] = Reply(given(b"GPU-a"))
        kubelet.replies[ALLOCATABLE] = Reply(hangs=True)
        first = asyncio.create_task(part.read())
        await until(lambda: ALLOCATABLE in kubelet.calls)
        clock.set_ahead(PATIENCE)
        assert ids(await first) == ["GPU-a"]
        found = part.status().fault
        assert found and (found.reason, found.call) == ("deadline", "GetAllocatableResources")
        await part.read()
        assert part.status().up


@pytest.mark.parametrize(
    ("reply", "expected"),
    [
        (Reply(status=Status.UNAVAILABLE), "unavailable"),
        (Reply(status=Status.INTERNAL), "unavailable"),
        (Reply(given(b"GPU-x"), status=Status.ABORTED), "unavailable"),
        (Reply(status=Status.DEADLINE_EXCEEDED), "deadline"),
        (Reply(status=Status.PERMISSION_DENIED), "permission"),
        (Reply(status=Status.RESOURCE_EXHAUSTED), "rate_limited"),
        (Reply(), "garbage"),
        (Reply(b"\x0a\xff"), "garbage"),
        (Reply(given(b"GPU-x")[:-1]), "garbage"),
        (Reply(b"\x00" * (20 * MIB)), "too_large"),
    ],
)
async def test_a_failure_keeps_the_map_and_says_why(
    kubelet: FakeKubelet, part: PodResources, clock: Clock, reply: Reply, expected: str
) -> None:
    kubelet.replies[LIST] = Reply(given(b"GPU-a"))
    before = await part.read()
    kubelet.replies[LIST] = reply
    clock.now += 7
    assert await part.read() == before
    assert (part.status().up, reason(part.status()), part.status().age_seconds) == (False, expected, 7.0)
    assert part.errors == {expected: 1}


async def test_up_to_16_mib_are_taken(kubelet: FakeKubelet) -> None:
    async with reading(kubelet) as part:
        padding = b"\x7a\x80\x80\xc0\x07" + b"\x00" * (15 * MIB)  # field 15, a later kubelet's
        kubelet.replies[LIST] = Reply(given(b"GPU-a") + padding)
        assert ids(await part.read()) == ["GPU-a"]


async def test_the_kubelet_gone_and_back_on_a_new_socket(kubelet: FakeKubelet, part: PodResources) -> None:
    kubelet.replies[LIST] = Reply(given(b"GPU-a"))
    before = await part.read()
    inode = (kubelet.root / POD_RESOURCES).stat().st_ino
    keeps_inode = (kubelet.root / POD_RESOURCES).with_name("old")
    keeps_inode.hardlink_to(kubelet.root / POD_RESOURCES)
    await kubelet.stop()
    assert await part.read() == before
    assert reason(part.status()) == "no_socket"
    await kubelet.start()
    assert (kubelet.root / POD_RESOURCES).stat().st_ino != inode
    kubelet.replies[LIST] = Reply(given(b"GPU-b"))
    assert ids(await part.read()) == ["GPU-b"]
    assert part.status().up


async def restarted(kubelet: FakeKubelet, *listed: bytes) -> None:
    """A kubelet of 1.36 answers a second after its start, and lists no pod until it has heard of some."""
    await kubelet.stop()
    await kubelet.start()
    kubelet.replies[LIST] = Reply(b"".join(listed))


async def test_a_kubelet_that_has_just_started_takes_nothing_away(kubelet: FakeKubelet, part: PodResources) -> None:
    late, early = given(b"GPU-a", pod=b"one"), given(b"GPU-b", pod=b"other")
    kubelet.replies[LIST] = Reply(late + early)
    before = await part.read()
    await restarted(kubelet)
    assert await part.read() == replace(before, awaited=frozenset({("n", "one"), ("n", "other")}))
    kubelet.replies[LIST] = Reply(early)
    assert await part.read() == replace(before, awaited=frozenset({("n", "one")}))
    kubelet.replies[LIST] = Reply(late + early)
    assert await part.read() == before
    kubelet.replies[LIST] = Reply(early)
    assert ids(await part.read()) == ["GPU-b"]


async def test_a_pod_that_ended_with_the_kubelet_is_not_waited_for_for_ever(
    kubelet: FakeKubelet, part: PodResources, clock: Clock
) -> None:
    kubelet.replies[LIST] = Reply(given(b"GPU-a"))
    await part.read()
    await restarted(kubelet)
    assert ids(await part.read()) == ["GPU-a"]
    clock.now += SETTLING_SECONDS
    assert ids(await part.read()) == []


async def test_a_device_is_not_kept_for_a_pod_when_another_has_it(kubelet: FakeKubelet, part: PodResources) -> None:
    kubelet.replies[LIST] = Reply(given(b"GPU-a", pod=b"old"))
    await part.read()
    await restarted(kubelet, given(b"GPU-a", pod=b"new"))
    assert [each.pod for each in (await part.read()).devices] == ["new"]


async def test_claims_of_a_pod_wait_for_it_too(kubelet: FakeKubelet, part: PodResources) -> None:
    kubelet.replies[LIST] = Reply(recorded("kubernetes-1.36.4-dra", "podresources-v1-list"))
    before = await part.read()
    assert before.dynamic
    await restarted(kubelet)
    assert (await part.read()).dynamic == before.dynamic


def leave_a_socket(path: Path) -> None:
    """Leave behind what a killed process does: a file that nobody listens on."""
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(path))
        listener.listen()


async def test_a_socket_nobody_listens_on_is_unavailable(kubelet: FakeKubelet, part: PodResources) -> None:
    await kubelet.stop()
    leave_a_socket(kubelet.root / POD_RESOURCES)
    await part.read()
    assert reason(part.status()) == "unavailable"


async def test_the_new_owner_of_the_socket_is_asked_though_the_old_lives_on(kubelet: FakeKubelet) -> None:
    async with reading(kubelet) as part:
        kubelet.replies[LIST] = Reply(given(b"GPU-old"))
        await part.read()
        (kubelet.root / POD_RESOURCES).unlink()
        async with FakeKubelet(kubelet.root, sockets=(POD_RESOURCES,)) as successor:
            successor.replies[LIST] = Reply(given(b"GPU-new"))
            assert ids(await part.read()) == ["GPU-new"]


async def test_a_call_that_hangs_ends_and_leaves_nothing_behind(kubelet: FakeKubelet) -> None:
    clock = LoopClock()
    async with reading(kubelet) as part:
        kubelet.replies[LIST] = Reply(given(b"GPU-a"))
        before = await part.read()
        tasks = len(asyncio.all_tasks())
        kubelet.replies[LIST] = Reply(hangs=True)
        for _ in range(3):
            known, hanging = len(kubelet.calls), asyncio.create_task(part.read())
            await until(lambda known=known: len(kubelet.calls) > known)  # type: ignore[misc]
            clock.set_ahead(PATIENCE)
            assert await hanging == before
            assert reason(part.status()) == "deadline"
        await until(lambda: len(asyncio.all_tasks()) == tasks)
        kubelet.replies[LIST] = Reply(given(b"GPU-b"))
        assert ids(await part.read()) == ["GPU-b"]


async def test_a_kubelet_that_limits_the_rate_is_left_alone_for_longer_and_longer(
    kubelet: FakeKubelet, part: PodResources, clock: Clock
) -> None:
    kubelet.replies[LIST] = Reply(given(b"GPU-a"))
    before = await part.read()
    kubelet.replies[LIST] = Reply(status=Status.RESOURCE_EXHAUSTED)
    kubelet.calls.clear()
    called_at = []
    for _ in range(120):
        clock.now += 1
        known = len(kubelet.calls)
        assert await part.read() == before
        assert reason(part.status()) == "rate_limited"
        if len(kubelet.calls) > known:
            called_at.append(clock.now)
    pauses = [later - earlier for earlier, later in itertools.pairwise(called_at)]
    assert pauses == [1, 2, 4, 8, 16, 30, 30]
    kubelet.replies[LIST] = Reply(given(b"GPU-b"))
    clock.now += 30
    assert ids(await part.read()) == ["GPU-b"]
    assert part.status().up
    kubelet.replies[LIST] = Reply(status=Status.RESOURCE_EXHAUSTED)
    await part.read()
    kubelet.replies[LIST] = Reply(given(b"GPU-c"))
    clock.now += 1
    assert ids(await part.read()) == ["GPU-c"]


def test_a_folder_that_may_not_be_entered_is_told_from_one_that_is_not_there() -> None:
    assert fault(PermissionError(13, "Permission denied"), LIST).reason == "permission"
    assert fault(NotADirectoryError(20, "Not a directory"), LIST).reason == "no_socket"


async def test_a_socket_that_speaks_no_http2(part: PodResources, kubelet: FakeKubelet) -> None:
    async def babble(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.1 400 Bad Request\r\n\r\n")
        await writer.drain()
        writer.close()

    await kubelet.stop()
    server = await asyncio.start_unix_server(babble, kubelet.root / POD_RESOURCES)
    async with server:
        assert await part.read() == PodResourceLists()
        assert reason(part.status()) in ("unavailable", "garbage")


SOUND = recorded("kubernetes-1.36.4", "podresources-v1-list") + recorded(
    "kubernetes-1.36.4-dra", "podresources-v1-list"
)
EDITS = st.lists(st.tuples(st.integers(0, len(SOUND) - 1), st.integers(0, 255)), max_size=8)


@hypothesis.settings(max_examples=150, deadline=None)
@hypothesis.given(cut=st.integers(0, len(SOUND)), edits=EDITS, noise=st.binary(max_size=20))
def test_no_answer_makes_it_raise(cut: int, edits: list[tuple[int, int]], noise: bytes) -> None:
    """Truncated, edited or prolonged: a whole sound map, or the old one and a reason."""
    changed = bytearray(SOUND)
    for place, value in edits:
        changed[place] = value
    asyncio.run(read_twice(bytes(changed[:cut]) + noise))


async def read_twice(answer: bytes) -> None:
    with kubelet_root() as root:
        async with FakeKubelet(root, sockets=(POD_RESOURCES,)) as kubelet, reading(kubelet) as part:
            kubelet.replies[LIST] = Reply(given(b"GPU-a"))
            kubelet.replies[ALLOCATABLE] = Reply(b"")
            before = await part.read()
            kubelet.replies[LIST] = kubelet.replies[ALLOCATABLE] = Reply(answer)
            after = await part.read()
    if not part.status().up:
        assert (reason(part.status()), after) == ("garbage", before)
    for device in after.devices:
        assert device.namespace and device.pod and device.container
        assert device.device_id.isascii() and device.device_id.isprintable()


async def test_it_is_steady_until_the_kubelet_fails_restarts_or_awaits_pods(
    kubelet: FakeKubelet, part: PodResources, clock: Clock
) -> None:
    """Then each cycle must ask."""
    assert not part.is_steady(), "nothing was asked yet"
    held = given(b"GPU-a")
    kubelet.replies[LIST] = Reply(held)
    await part.read()
    assert not part.is_steady(), "the plugin of that device has not registered"
    kubelet.replies[ALLOCATABLE] = Reply(offered(b"GPU-a"))
    clock.now += 2
    await part.read()
    assert part.is_steady()
    await kubelet.stop()
    assert not part.is_steady(), "the socket is gone"
    await kubelet.start()
    assert not part.is_steady(), "it is another socket"
    kubelet.replies[LIST] = Reply(b"")
    await part.read()
    assert not part.is_steady(), "pods that were listed before are not listed yet"
    kubelet.replies[LIST] = Reply(held)
    await part.read()
    assert part.is_steady()
    kubelet.replies[LIST] = Reply(status=Status.UNAVAILABLE)
    await part.read()
    assert not part.is_steady(), "it fails"
