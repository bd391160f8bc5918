"""A stream as a client sees it, on real sockets."""

import asyncio
import dataclasses
import json
import zlib
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from podgpu.feed import Feed, SnapshotFeed
from podgpu.model import Snapshot
from podgpu.serve import event_stream
from podgpu.serve.event_stream import EventBroadcaster
from podgpu.serve.guard.guard import Guard
from podgpu.serve.http.request import Request
from podgpu.serve.pages import BodyPart
from podgpu.serve.server import HttpServer, NodeServer
from tests.patience import PATIENCE, LoopClock, until
from tests.serve.guard.login import basic, hashed
from tests.serve.rig import PATIENT, Client, StubNode, connected, fetch, make_snapshot, narrow, serving
from tests.serve.test_node_events import laid_upon

PATH = "/api/v1/events"


class LiveNode(StubNode):
    """Publishes what the test says."""

    def __init__(self) -> None:
        super().__init__()
        self.feed = SnapshotFeed(make_snapshot())

    @property
    def snapshot(self) -> Snapshot:
        return self.feed.snapshot

    async def changed(self, seen: Snapshot) -> Snapshot:
        return await self.feed.changed(seen)

    def publish(self, node: str, **more: Any) -> None:
        self.feed.publish(replace(self.feed.snapshot, node=node, **more))


class Listener:
    """Reads events; `document` is what they add up to."""

    def __init__(self, client: Client) -> None:
        self._client = client
        self.document: Any = None
        self.last = ""

    async def next(self) -> str:
        """The kind of the next event, or `heartbeat`."""
        async with asyncio.timeout(PATIENCE):
            text = (await self._client.reader.readuntil(b"\n\n")).decode()
        if text.startswith("retry"):
            return await self.next()
        if text == ":\n\n":
            return "heartbeat"
        fields = dict(line.split(": ", 1) for line in text.strip().split("\n"))
        data = json.loads(fields["data"])
        self.document = data if fields["event"] == "full" else self.change(self.document, data)
        self.last = fields.get("id", self.last)
        return fields["event"]

    def change(self, document: Any, data: Any) -> Any:
        return laid_upon(document, data)


@asynccontextmanager
async def listening(server: HttpServer, kind: type[Listener] = Listener, **headers: str) -> AsyncIterator[Listener]:
    async with connected(server, limit=1 << 22) as client:
        client.ask(PATH, **headers)
        head = await client.reader.readuntil(b"\r\n\r\n")
        assert b" 200 OK" in head and b"text/event-stream" in head and b"Content-Length" not in head
        yield kind(client)


async def test_first_the_document_then_its_changes() -> None:
    node = LiveNode()
    async with serving(node) as server, listening(server) as stream:
        assert await stream.next() == "full"
        assert stream.document == json.loads((await fetch(server, "/api/v1/snapshot")).body)
        for name in ("worker-2", "worker-3"):
            node.publish(name)
            assert await stream.next() == "change"
            assert stream.document["node"] == name
        assert stream.document == json.loads((await fetch(server, "/api/v1/snapshot")).body)


async def test_a_reader_that_comes_again_goes_on_where_it_was() -> None:
    node = LiveNode()
    async with serving(node) as server:
        async with listening(server) as first:
            await first.next()
        node.publish("worker-2")
        async with listening(server, Last_Event_ID=first.last) as second:
            second.document = first.document
            assert await second.next() == "change"
            assert second.document["node"] == "worker-2"


@pytest.mark.parametrize("last", ["0-0", "nonsense", "", "-1", "9" * 400])
async def test_a_reader_with_an_id_of_somebody_else_gets_the_document(last: str) -> None:
    async with serving(LiveNode()) as server, listening(server, Last_Event_ID=last) as stream:
        assert await stream.next() == "full"


async def test_who_missed_too_much_gets_the_document() -> None:
    node = LiveNode()
    async with serving(node) as server, listening(server) as other:
        async with listening(server) as first:
            await first.next()
        for number in range(event_stream.KEPT_EVENTS + 1):
            node.publish(f"worker-{number}")
            while (other.document or {}).get("node") != f"worker-{number}":
                await other.next()
        async with listening(server, Last_Event_ID=first.last) as second:
            assert await second.next() == "full"


async def test_silence_is_broken_by_a_heartbeat(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(event_stream, "HEARTBEAT_SECONDS", 0.05)
    async with serving(LiveNode()) as server, listening(server) as stream:
        assert [await stream.next() for _ in range(3)] == ["full", "heartbeat", "heartbeat"]


async def test_packed_events_are_a_gzip_stream_that_can_be_read_as_it_comes() -> None:
    node = LiveNode()
    async with serving(node) as server, connected(server) as client:
        client.ask(PATH, Accept_Encoding="gzip")
        head = await client.reader.readuntil(b"\r\n\r\n")
        assert b"Content-Encoding: gzip" in head
        unpacker, text = zlib.decompressobj(16 + zlib.MAX_WBITS), b""
        for name in (b"worker-1", b"worker-2", b"worker-3"):
            async with asyncio.timeout(PATIENCE):
                while name not in text:
                    text += unpacker.decompress(await client.reader.read(1 << 16))
            node.publish(f"worker-{int(name[-1:]) + 1}")
        assert text.count(b"event: change") == 2


async def test_a_stream_takes_no_place_of_a_page_and_no_connection() -> None:
    patient = dataclasses.replace(PATIENT, settle_seconds=60)
    async with (
        serving(LiveNode(), max_requests=1, max_connections=2, limits=patient) as server,
        AsyncExitStack() as stack,
    ):
        for _ in range(5):
            stream = await stack.enter_async_context(listening(server))
            await stream.next()
        assert (await fetch(server, "/metrics")).status == 200


async def test_there_is_a_cap_on_streams_and_who_leaves_makes_room() -> None:
    async with serving(LiveNode(), max_streams=1) as server:
        async with listening(server) as stream:
            await stream.next()
            assert (await fetch(server, PATH)).status == 503
        async with asyncio.timeout(PATIENCE):
            while b"200" not in await status_line(server):
                pass


async def status_line(server: NodeServer) -> bytes:
    async with connected(server) as client:
        client.ask(PATH)
        return await client.reader.readline()


async def test_who_does_not_read_is_dropped_and_holds_up_nobody() -> None:
    node, clock = LiveNode(), LoopClock()
    async with serving(node) as server:
        with narrow() as sleeper:
            loop = asyncio.get_running_loop()
            await loop.sock_connect(sleeper, ("127.0.0.1", server.ports[0]))
            await loop.sock_sendall(sleeper, f"GET {PATH} HTTP/1.1\r\nHost: test\r\n\r\n".encode())
            async with listening(server) as stream:
                await stream.next()
                for number in range(40):
                    node.publish(f"{number}-" + "x" * 200_000)
                    assert await stream.next() in ("full", "change")
                assert stream.document["node"].startswith("39-")
                clock.set_ahead(PATIENT.write_seconds + PATIENT.sweep_seconds)
                await until(lambda: server.clients == 1)
                node.publish("last")
                while stream.document["node"] != "last":
                    await stream.next()


async def test_stopping_ends_streams_at_once() -> None:
    limits = dataclasses.replace(PATIENT, stop_seconds=2 * PATIENCE)
    async with serving(LiveNode(), limits=limits) as server, listening(server) as stream:
        await stream.next()
        async with asyncio.timeout(PATIENCE):
            await server.stop()


async def test_head_and_post_are_refused() -> None:
    async with serving(LiveNode()) as server:
        assert (await fetch(server, PATH, "POST")).status == 405


async def test_behind_a_password_only_those_who_know_it_get_a_stream(tmp_path: Path) -> None:
    file = tmp_path / "web-config.yml"
    file.write_text(f"basic_auth_users:\n  ada: {hashed('s3cret')}\n")
    node = LiveNode()
    async with serving(node, guard=Guard(file), max_streams=1) as server:
        for wrong in ({}, {"Authorization": basic("ada:wrong")}, {"Authorization": "Bearer s3cret"}):
            refused = await fetch(server, PATH, **wrong)
            assert refused.status == 401
            assert refused.headers["www-authenticate"] == 'Basic realm="podgpu"'
            assert b"worker-1" not in refused.body
        # Who was refused takes no place, and a login serves the whole stream.
        async with listening(server, Authorization=basic("ada:s3cret")) as stream:
            assert await stream.next() == "full"
            node.publish("worker-2")
            assert await stream.next() == "change"
            assert stream.document["node"] == "worker-2"


async def test_who_is_no_longer_let_in_loses_the_stream(tmp_path: Path) -> None:
    file = tmp_path / "web-config.yml"
    file.write_text(f"basic_auth_users:\n  ada: {hashed('s3cret')}\n  eve: {hashed('s3cret')}\n")
    limits = dataclasses.replace(PATIENT, sweep_seconds=0.02)
    async with serving(LiveNode(), guard=Guard(file), limits=limits) as server:
        ada, eve = basic("ada:s3cret"), basic("eve:s3cret")
        async with listening(server, Authorization=eve) as hers, listening(server, Authorization=ada) as his:
            await hers.next()
            await his.next()
            file.write_text(f"basic_auth_users:\n  ada: {hashed('s3cret')}\n")
            with pytest.raises(asyncio.IncompleteReadError):
                await hers.next()
        assert (await fetch(server, PATH, Authorization=eve)).status == 401
        # The page comes again by itself, and goes on where it was.
        async with listening(server, Authorization=ada, Last_Event_ID=his.last):
            pass


async def test_an_address_has_a_tenth_of_the_streams_at_most() -> None:
    async with serving(LiveNode(), max_streams=20) as server, AsyncExitStack() as stack:
        for _ in range(2):
            await stack.enter_async_context(listening(server))
        refused = await fetch(server, PATH)
        assert (refused.status, "too many event streams" in refused.text) == (503, True)
        other = await stack.enter_async_context(connected(server, local_addr=("127.0.0.2", 0)))
        other.ask(PATH)
        assert b" 200 OK" in await other.reader.readuntil(b"\r\n\r\n")


async def test_streams_that_are_asked_for_at_once_share_the_bound() -> None:
    async with serving(LiveNode(), max_streams=30) as server, AsyncExitStack() as stack:
        clients = [await stack.enter_async_context(connected(server)) for _ in range(12)]
        for client in clients:
            client.ask(PATH)
        heads = [await client.reader.readuntil(b"\r\n\r\n") for client in clients]
        assert sum(b" 200 OK" in head for head in heads) == 3


class Texts:
    """Documents of one length, and changes that are the state itself."""

    def __init__(self) -> None:
        self._feed = Feed(b"")
        self.publish = self._feed.publish

    @property
    def state(self) -> bytes:
        return self._feed.newest

    async def changed(self, seen: bytes) -> bytes:
        return await self._feed.changed(seen)

    async def document(self, _state: bytes) -> list[BodyPart]:
        return [BodyPart(b"d" * 1000)]

    async def change(self, _before: bytes, after: bytes) -> list[list[BodyPart]]:
        return [[BodyPart(after)]]

    def forget(self) -> None:
        pass


@pytest.mark.parametrize(
    ("count", "excess", "sent"),
    [(1, 500, ["change"]), (2, 0, ["change", "change"]), (2, 1, ["full"]), (3, 0, ["change"] * 3)],
)
async def test_missed_changes_are_sent_unless_the_document_is_shorter(count: int, excess: int, sent: list[str]) -> None:
    """A client misses `count` changes, which are longer than the document by `excess` bytes."""
    texts = Texts()
    events = EventBroadcaster(texts, 10)
    response = await events.respond(Request("GET", PATH, {}, {}, "10.0.0.1"))
    assert response.stream is not None
    with response.stream as chunks:
        await anext(chunks)  # the opening
        full, seen = await anext(chunks), events.newest
        frame = len(f"id: {seen}\nevent: change\ndata: \n\n")
        length, rest = divmod(len(full) + excess - count * frame, count)
        for number in range(count):
            texts.publish(b"x" * (length + (rest if number == 0 else 0)))
            await anext(chunks)
        _, missed = await events.since(seen)
    events.close()
    assert [found.plain.split(b"event: ")[1].split(b"\n")[0].decode() for found in missed] == sent
