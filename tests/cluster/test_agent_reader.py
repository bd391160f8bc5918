"""The client against real sockets: conditional requests, kept connections, and answers that are none."""

import asyncio
import gzip

import pytest

from podgpu.cluster.agent_reader import AgentReader, DirectClient
from podgpu.cluster.node_state import ReadFault
from podgpu.model import SCHEMA
from tests.cluster.fleet import Fleet, plain
from tests.cluster.nodes import document, node_name
from tests.patience import PATIENCE, until

HANG_SECONDS = 0.3


def packed(body: bytes) -> bytes:
    head = f"HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: {len(body)}\r\n\r\n"
    return head.encode() + body


def with_schema(number: int) -> bytes:
    return document(0).replace(b'"schema":%d' % SCHEMA, b'"schema":%d' % number)


async def test_an_unchanged_snapshot_costs_no_body_and_is_the_same_object() -> None:
    async with Fleet(1, document) as fleet:
        client = DirectClient(timeout=PATIENCE)
        reader = AgentReader(client, fleet.urls[0], node_name(0))
        first = await reader.read()
        assert await reader.read() is first
        assert (fleet.requests, fleet.bodies) == (2, 1)
        fleet.change([0])
        assert (await reader.read()).taken_at == first.taken_at + 1
        await client.close()


@pytest.mark.parametrize(
    ("more", "is_kept"),
    [(b"", True), (b'"new":"\xc3\xa9",', True), (b'"new":1,\n', False), (b'"new":"\xff",', False)],
)
async def test_a_document_is_kept_as_it_came_unless_it_could_break_the_cluster_s(more: bytes, is_kept: bool) -> None:
    body = document(0).replace(b'"node":', more + b'"node":', 1)
    async with Fleet(1, document, {0: packed(gzip.compress(body))}) as fleet:
        client = DirectClient(timeout=PATIENCE)
        reader = AgentReader(client, fleet.urls[0])
        snapshot = await reader.read()
        await client.close()
    assert (reader.written is not None) == is_kept
    if reader.written:
        assert reader.written.snapshot is snapshot and gzip.decompress(reader.written.document) == body


async def test_a_kept_connection_that_the_agent_closed_is_opened_again() -> None:
    async with Fleet(1, document) as fleet:
        client = DirectClient(timeout=PATIENCE)
        reader = AgentReader(client, fleet.urls[0])
        await reader.read()
        fleet.hang_up()
        await asyncio.sleep(0.02)
        assert (await reader.read()).node == node_name(0)
        assert fleet.connections == 2
        await client.close()


@pytest.mark.parametrize(
    ("trick", "reason"),
    [
        ("hang", "timeout"),
        ("close", "unreachable"),
        (b"hello\r\n\r\n", "garbage"),
        (plain(b"<html>"), "garbage"),
        (plain(b"[]"), "garbage"),
        (plain(b""), "garbage"),
        (packed(b"not packed"), "garbage"),
        (packed(gzip.compress(b"x" * 100, mtime=0)[:-9]), "garbage"),
        (packed(gzip.compress(bytes(9 << 20))), "too_large"),
        (plain(bytes(9 << 20)), "too_large"),
        (b"HTTP/1.1 200 OK\r\nContent-Encoding: br\r\nContent-Length: 1\r\n\r\nx", "garbage"),
        (b"HTTP/1.1 304 Not Modified\r\n\r\n", "garbage"),
        (plain(b"", "401 Unauthorized"), "unauthorized"),
        (plain(b"", "403 Forbidden"), "forbidden"),
        (plain(b"", "302 Found"), "http_error"),
        (plain(b"", "503 Service Unavailable"), "http_error"),
        (plain(document(7)), "wrong_node"),
        (plain(with_schema(SCHEMA - 1)), "older_schema"),
        (plain(with_schema(SCHEMA + 1)), "newer_schema"),
        (plain(b'{"schema":%d,"everything":"else"}' % (SCHEMA + 1)), "newer_schema"),
    ],
)
async def test_what_an_agent_may_do_wrong_has_a_reason(trick: str | bytes, reason: str) -> None:
    async with Fleet(1, document, {0: trick}) as fleet:
        client = DirectClient(timeout=HANG_SECONDS if trick == "hang" else PATIENCE)
        with pytest.raises(ReadFault) as fault:
            await AgentReader(client, fleet.urls[0], node_name(0)).read()
        assert fault.value.reason == reason
        await client.close()


async def test_an_answer_that_breaks_off_is_garbage() -> None:
    half = b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nhalf"
    async with Fleet(1, document, {0: half}) as fleet:
        client = DirectClient(timeout=PATIENCE)
        reading = asyncio.create_task(AgentReader(client, fleet.urls[0]).read())
        await until(lambda: fleet.requests)
        fleet.hang_up()
        with pytest.raises(ReadFault) as fault:
            await reading
        assert fault.value.reason == "garbage"
        await client.close()


async def test_nobody_at_the_address_is_unreachable() -> None:
    async with Fleet(1, document) as fleet:
        url = fleet.urls[0]
    with pytest.raises(ReadFault, match="Connection refused"):
        await AgentReader(DirectClient(timeout=PATIENCE), url).read()
