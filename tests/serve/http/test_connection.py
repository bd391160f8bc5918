"""Clients that are slow, silent, many or rude."""

import asyncio
import gc
import logging
import socket
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, suppress
from dataclasses import replace

import pytest
from httptools import HttpRequestParser

from podgpu.serve.http.connection import ServerConnection
from podgpu.serve.http.listener import ListenerGroup
from podgpu.serve.http.request import Request
from podgpu.serve.http.response import Response
from tests.patience import PATIENCE, LoopClock, until
from tests.serve.rig import (
    PATIENT,
    StubNode,
    big_page,
    connected,
    drained,
    fetch,
    freed,
    serving,
    slow_reader,
    taken,
)


async def test_an_answer_that_nobody_reads_takes_no_other_page_s_turn() -> None:
    async with (
        serving(StubNode(), max_requests=1, dialects={"big": big_page()}) as server,
        AsyncExitStack() as stack,
    ):
        for _ in range(2):
            await slow_reader(stack, server.ports[0])
        answers = [await fetch(server, path) for path in ("/metrics", "/metrics/big", "/-/healthy")]
    assert [answer.status for answer in answers] == [200, 200, 200]


async def test_an_unread_answer_makes_room_for_a_probe() -> None:
    async with (
        serving(
            StubNode(),
            max_connections=2,
            limits=replace(PATIENT, settle_seconds=0),
            dialects={"big": big_page()},
        ) as server,
        AsyncExitStack() as stack,
    ):
        for _ in range(2):
            await slow_reader(stack, server.ports[0])
        assert (await fetch(server, "/-/healthy")).status == 200


async def test_unread_answers_share_a_bound() -> None:
    limits = replace(PATIENT, unread_bytes=15_000_000)
    async with (
        serving(StubNode(), limits=limits, dialects={name: big_page() for name in ("big", "other")}) as server,
        AsyncExitStack() as stack,
    ):
        full = len((await fetch(server, "/metrics/big")).body)
        first, second = [await slow_reader(stack, server.ports[0]) for _ in range(2)]  # the same page
        third = await slow_reader(stack, server.ports[0], "/metrics/other")
        assert await drained(first) < full
        assert await drained(second) < full
        assert await taken(third, full) >= full


async def test_a_connection_too_many_is_refused_and_disturbs_no_other() -> None:
    node = StubNode()
    node.let_go.clear()
    async with (
        serving(node, max_connections=2) as server,
        connected(server) as first,
        connected(server) as second,
    ):
        for client in (first, second):
            client.ask("/-/release", "POST")
        await until(lambda: len(node.released) == 2)
        async with connected(server) as third:
            refused = await third.get("/-/healthy")
            assert await third.rest() == b""
        node.let_go.set()
        for client in (first, second):
            assert (await client.answer()).status == 200
            assert (await client.get("/metrics")).status == 200
    assert refused.status == 503
    assert refused.headers["connection"] == "close"
    assert "retry-after" in refused.headers


async def test_a_place_is_free_again_when_its_client_leaves() -> None:
    node = StubNode()
    node.let_go.clear()
    async with serving(node, max_connections=1) as server:
        async with connected(server) as first:
            first.ask("/-/release", "POST")
            await node.asked.wait()
            assert (await fetch(server, "/-/healthy")).status == 503
        assert await freed(server, "/-/healthy")
        node.let_go.set()


async def test_a_silent_connection_takes_no_place() -> None:
    async with (
        serving(StubNode(), max_connections=2, limits=replace(PATIENT, settle_seconds=60)) as server,
        connected(server) as silent,
        connected(server) as other,
    ):
        await other.get("/-/healthy")
        assert (await fetch(server, "/-/healthy")).status == 200
        assert (await other.get("/-/healthy")).status == 200
        assert (await silent.get("/-/healthy")).status == 200


async def test_a_connection_that_was_answered_makes_room_when_it_falls_silent() -> None:
    async with (
        serving(StubNode(), max_connections=1, limits=replace(PATIENT, settle_seconds=0)) as server,
        connected(server) as idle,
    ):
        await idle.get("/-/healthy")
        assert (await fetch(server, "/-/healthy")).status == 200
        assert await idle.rest() == b""


async def test_a_connection_with_a_request_in_progress_makes_no_room() -> None:
    node = StubNode()
    node.let_go.clear()
    async with (
        serving(node, max_connections=1, limits=replace(PATIENT, settle_seconds=0)) as server,
        connected(server) as working,
    ):
        working.ask("/-/release", "POST")
        await node.asked.wait()
        assert (await fetch(server, "/-/healthy")).status == 503
        node.let_go.set()
        assert (await working.answer()).status == 200


@pytest.mark.parametrize("max_connections", [50, 300])
async def test_silent_connections_do_not_stop_a_good_client(max_connections: int) -> None:
    limits = replace(PATIENT, settle_seconds=0)
    async with (
        serving(StubNode(), max_connections=max_connections, limits=limits) as server,
        AsyncExitStack() as stack,
    ):
        for number in range(200):
            client = await stack.enter_async_context(connected(server))
            if number % 2:
                client.send(b"GET /metrics HTTP/1.1\r\nHost:")
        for path in ("/metrics", "/-/healthy"):
            assert (await fetch(server, path)).status == 200


async def test_a_head_too_long_is_refused() -> None:
    async with serving(StubNode()) as server, connected(server) as client:
        client.send(b"GET /metrics HTTP/1.1\r\nHost: test\r\n")
        for number in range(20):
            client.send(f"X-{number}: {'x' * 1000}\r\n".encode())
        assert (await client.answer()).status == 431
        assert await client.rest() == b""


async def test_a_long_head_in_one_piece_is_refused() -> None:
    fields = "".join(f"X-{number}: {'x' * 1000}\r\n" for number in range(20))
    async with serving(StubNode()) as server, connected(server) as client:
        client.send(f"GET /metrics HTTP/1.1\r\nHost: test\r\n{fields}\r\n".encode())
        assert (await client.answer()).status == 431


async def test_many_requests_on_one_connection_are_not_one_long_head() -> None:
    async with serving(StubNode()) as server, connected(server) as client:
        for _ in range(30):
            assert (await client.get("/-/healthy", X_Padding="x" * 1000)).status == 200


async def test_requests_sent_ahead_are_answered_in_order() -> None:
    async with serving(StubNode()) as server, connected(server) as client:
        for path in ("/-/healthy", "/-/ready", "/nowhere", "/-/healthy"):
            client.ask(path)
        assert [(await client.answer()).status for _ in range(4)] == [200, 200, 404, 200]


@pytest.mark.parametrize(
    "rest",
    [
        b"Content-Length: 5\r\n\r\nhello",
        b"Content-Length: 1000000\r\n\r\n",
        b"Transfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n",
    ],
)
@pytest.mark.parametrize("line", [b"GET /metrics", b"POST /-/release"])
async def test_a_body_is_refused(line: bytes, rest: bytes) -> None:
    node = StubNode()
    async with serving(node) as server, connected(server) as client:
        client.send(line + b" HTTP/1.1\r\nHost: test\r\n" + rest)
        answer = await client.answer()
        assert await client.rest() == b""
    assert answer.status == 413
    assert answer.headers["connection"] == "close"
    assert node.released == []


async def test_an_empty_body_is_none() -> None:
    async with serving(StubNode()) as server:
        answer = await fetch(server, "/-/release", "POST", Content_Length="0")
    assert answer.status == 200


@pytest.mark.parametrize(
    "garbage",
    [
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + b"\x00" * 32,
        b"GET\r\n\r\n",
        b"GET / HTTP/1.1\r\nHost : x\r\n\r\n",
        b"GET /" + b"x" * 9000 + b" HTTP/1.1\r\n\r\n",
        b"BREW /coffee HTTP/1.1\r\n\r\n",
    ],
)
async def test_what_is_not_http_is_refused_without_a_word_in_the_log(
    garbage: bytes, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.INFO):
        async with serving(StubNode()) as server, connected(server) as client:
            client.send(garbage)
            answer = await client.answer()
            assert await client.rest() == b""
    assert answer.status == 400
    assert caplog.records == []


async def test_http_1_0_is_answered_and_closed() -> None:
    async with serving(StubNode()) as server, connected(server) as client:
        client.send(b"GET /-/healthy HTTP/1.0\r\n\r\n")
        assert (await client.answer()).status == 200
        assert await client.rest() == b""


async def test_http_1_0_may_ask_to_stay() -> None:
    async with serving(StubNode()) as server, connected(server) as client:
        for _ in range(2):
            client.send(b"GET /-/healthy HTTP/1.0\r\nConnection: keep-alive\r\n\r\n")
            assert (await client.answer()).headers["connection"] == "keep-alive"


async def test_a_client_that_wants_to_close_is_closed() -> None:
    async with serving(StubNode()) as server, connected(server) as client:
        assert (await client.get("/-/healthy", Connection="close")).headers["connection"] == "close"
        assert await client.rest() == b""


async def test_good_requests_before_a_bad_one_are_answered() -> None:
    async with serving(StubNode()) as server, connected(server) as client:
        client.ask("/-/healthy")
        client.ask("/metrics", "HEAD")
        client.send(b"nonsense\r\n\r\n")
        assert (await client.answer()).status == 200
        assert (await client.answer(head_only=True)).status == 200
        assert (await client.answer()).status == 400
        assert await client.rest() == b""


async def test_requests_sent_ahead_wait_for_the_one_in_progress() -> None:
    node = StubNode()
    node.let_go.clear()
    async with serving(node) as server, connected(server) as client, connected(server) as silent:
        clock = LoopClock()
        client.ask("/-/release", "POST")
        await node.asked.wait()
        client.ask("/-/healthy")
        await until(lambda: server.clients == 2)
        clock.set_ahead(PATIENT.head_seconds + PATIENT.sweep_seconds)
        assert await silent.rest() == b""  # deadlines were checked
        node.let_go.set()
        assert b"released" in (await client.answer()).body
        assert (await client.answer()).text == "healthy\n"


async def test_too_much_sent_ahead_is_cut() -> None:
    node = StubNode()
    node.let_go.clear()
    async with serving(node) as server, connected(server) as client:
        client.ask("/-/release", "POST")
        await node.asked.wait()
        for _ in range(20):
            client.ask("/-/healthy", X_Padding="x" * 1000)
        assert await client.rest() == b""


async def test_a_release_goes_on_when_its_client_leaves() -> None:
    node = StubNode()
    node.let_go.clear()
    async with serving(node) as server:
        async with connected(server) as client:
            client.ask("/-/release", "POST")
            await node.asked.wait()
        assert (await fetch(server, "/-/healthy")).status == 200
        assert node.finished == 0
        node.let_go.set()
        assert (await fetch(server, "/-/healthy")).status == 200
        assert node.finished == 1


async def test_what_a_client_sent_is_freed_when_it_leaves_without_a_collector() -> None:
    """Looks for cycles are seldom: those of thousands of clients would add up to megabytes."""
    async with serving(StubNode()) as server:
        gc.collect()
        gc.disable()
        try:
            for sent in (
                b"GET / HTTP/1.1\r\nHost: h\r\n\r\n",
                b"nonsense\r\n\r\n",
                b"GET / HTTP/1.1\r\n\r\n",
            ):
                async with connected(server) as client:
                    client.send(sent)
                    assert await client.reader.readline()
            await until(
                lambda: not any(isinstance(found, HttpRequestParser | ServerConnection) for found in gc.get_objects())
            )
        finally:
            gc.enable()


class BrokenStream:
    """Fails in the middle of a response."""

    def __enter__(self) -> AsyncIterator[bytes]:
        return self._chunks()

    def __exit__(self, *_: object) -> None: ...
    def close(self) -> None: ...

    async def _chunks(self) -> AsyncIterator[bytes]:
        yield b"the beginning"
        raise RuntimeError("no more")


async def test_a_response_that_fails_in_the_middle_ends_the_connection() -> None:
    async def respond(_request: Request) -> Response:
        return Response(200, b"", stream=BrokenStream())

    group = ListenerGroup(PATIENT, 4, 4)
    listener = socket.create_server(("127.0.0.1", 0))
    port = listener.getsockname()[1]
    group.open([listener], respond, lambda: None)
    failures: list[object] = []
    asyncio.get_running_loop().set_exception_handler(lambda _, context: failures.append(context.get("exception")))
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n")
    with suppress(ConnectionResetError):
        async with asyncio.timeout(PATIENCE):
            await reader.read()
    writer.close()
    group.close()
    gc.collect()
    assert not group.connections
    assert [str(failure) for failure in failures] == ["no more"], "it is not hidden"
