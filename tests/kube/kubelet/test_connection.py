"""One connection for many calls, and what happens when it is lost."""

import asyncio
import contextlib
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from grpclib.const import Status
from grpclib.exceptions import GRPCError, StreamTerminatedError
from grpclib.server import Stream

from podgpu.kube.kubelet.podresources import LIST
from podgpu.kube.kubelet.rpc import AnswerRejected, KubeletConnection
from tests.fakekubelet.kubelet import POD_RESOURCES, FakeKubelet, Reply, kubelet_root
from tests.patience import PATIENCE, LoopClock, until


class Broken(Reply):
    """Breaks the connection in the middle of a call, a number of times."""

    def __init__(self, *messages: bytes, times: int) -> None:
        super().__init__(*messages)
        self._times = times

    async def send(self, stream: Stream[bytes, bytes]) -> None:
        if self._times:
            self._times -= 1
            stream._stream._transport.abort()
        await super().send(stream)


@pytest.fixture
async def kubelet() -> AsyncIterator[FakeKubelet]:
    with kubelet_root() as root:
        async with FakeKubelet(root, sockets=(POD_RESOURCES,)) as fake:
            fake.replies[LIST] = Reply(b"first")
            yield fake


@pytest.fixture
async def connection(kubelet: FakeKubelet) -> AsyncIterator[KubeletConnection]:
    opened = KubeletConnection(kubelet.root / POD_RESOURCES)
    yield opened
    opened.close()


async def test_many_calls_share_one_connection(kubelet: FakeKubelet, connection: KubeletConnection) -> None:
    assert [await connection.answer(LIST) for _ in range(5)] == [b"first"] * 5
    assert (len(kubelet.calls), kubelet.connections) == (5, 1)


async def test_a_refusal_by_the_kubelet_keeps_the_connection(
    kubelet: FakeKubelet, connection: KubeletConnection
) -> None:
    await connection.answer(LIST)
    kubelet.replies[LIST] = Reply(status=Status.RESOURCE_EXHAUSTED)
    with pytest.raises(GRPCError):
        await connection.answer(LIST)
    kubelet.replies[LIST] = Reply(b"later")
    assert await connection.answer(LIST) == b"later"
    assert (len(kubelet.calls), kubelet.connections) == (3, 1)


async def test_a_connection_that_broke_between_two_calls_is_replaced(
    kubelet: FakeKubelet, connection: KubeletConnection
) -> None:
    await connection.answer(LIST)
    kubelet.break_connections()
    assert await connection.answer(LIST) == b"first"
    assert kubelet.connections == 2


async def test_a_kept_connection_that_breaks_during_a_call_costs_no_answer(
    kubelet: FakeKubelet, connection: KubeletConnection
) -> None:
    await connection.answer(LIST)
    kubelet.replies[LIST] = Broken(b"second", times=1)
    assert await connection.answer(LIST) == b"second"
    assert (len(kubelet.calls), kubelet.connections) == (3, 2)


async def test_a_kubelet_that_always_breaks_is_asked_twice_and_no_more(
    kubelet: FakeKubelet, connection: KubeletConnection
) -> None:
    await connection.answer(LIST)
    kubelet.replies[LIST] = Broken(b"never", times=9)
    with pytest.raises(StreamTerminatedError):
        await connection.answer(LIST)
    assert len(kubelet.calls) == 3
    with pytest.raises(StreamTerminatedError):
        await connection.answer(LIST)
    assert len(kubelet.calls) == 4


async def test_a_call_that_hangs_ends_with_the_callers_patience_and_is_not_repeated(
    kubelet: FakeKubelet, connection: KubeletConnection
) -> None:
    clock = LoopClock()
    await connection.answer(LIST)
    kubelet.replies[LIST] = Reply(hangs=True)
    answer = asyncio.create_task(asyncio.wait_for(connection.answer(LIST), 2 * PATIENCE))
    await until(lambda: len(kubelet.calls) == 2)
    clock.set_ahead(2 * PATIENCE)
    with pytest.raises(TimeoutError):
        await answer
    assert len(kubelet.calls) == 2
    kubelet.replies[LIST] = Reply(b"later")
    assert await connection.answer(LIST) == b"later"
    assert kubelet.connections == 2


async def test_the_new_owner_of_the_socket_is_asked_though_the_old_still_answers(
    kubelet: FakeKubelet, connection: KubeletConnection
) -> None:
    assert await connection.answer(LIST) == b"first"
    (kubelet.root / POD_RESOURCES).unlink()
    async with FakeKubelet(kubelet.root, sockets=(POD_RESOURCES,)) as successor:
        successor.replies[LIST] = Reply(b"successor")
        assert await connection.answer(LIST) == b"successor"
        assert len(kubelet.calls) == 1
        connection.close()


async def test_without_a_socket_an_open_connection_is_not_used(
    kubelet: FakeKubelet, connection: KubeletConnection
) -> None:
    await connection.answer(LIST)
    (kubelet.root / POD_RESOURCES).unlink()
    with pytest.raises(FileNotFoundError):
        await connection.answer(LIST)


def descriptors() -> int:
    return len(list(Path("/proc/self/fd").iterdir()))


async def test_no_descriptor_stays_open(kubelet: FakeKubelet) -> None:
    before = descriptors()
    connection = KubeletConnection(kubelet.root / POD_RESOURCES)
    for reply in (
        Reply(b"fine"),
        Broken(b"fine", times=1),
        Reply(status=Status.INTERNAL),
        Reply(),
        Reply(b"\x00" * (17 << 20)),
        Reply(b"fine"),
    ):
        kubelet.replies[LIST] = reply
        with contextlib.suppress(GRPCError, AnswerRejected):
            await connection.answer(LIST)
    assert kubelet.connections > 2
    connection.close()
    await until(lambda: descriptors() <= before)  # the fake kubelet closes its end a moment later
