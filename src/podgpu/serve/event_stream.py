"""Server-sent events: a full document, then its changes, for any number of clients at the cost of one."""

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from secrets import token_hex
from time import monotonic
from typing import Any, Generic, NamedTuple, Protocol, TypeVar

from msgspec import json

from podgpu.serve.http.connections import client_network
from podgpu.serve.http.request import Request
from podgpu.serve.http.response import Response, busy_response
from podgpu.serve.pages import BodyPart
from podgpu.supervise import Supervisor
from podgpu.views.exposition import gzip_accepted

PATH = "/api/v1/events"
HEARTBEAT_SECONDS = 15.0
LINGER_SECONDS = 60.0  # so that a page that is reloaded can go on where it was
KEPT_EVENTS = 32
LARGEST_PART = 10
# Streams woken before other tasks get their turn: a scrape must not wait for hundreds of streams.
BATCH = 8

FULL = "full"
CHANGE = "change"
RETRY_MS = 2000

# The head of a gzip member without name or time. It never ends, so its checksum is never written.
_GZIP_HEAD = b"\x1f\x8b\x08\x00\x00\x00\x00\x00\x00\xff"

State = TypeVar("State")


class ChangeSource(Protocol[State]):
    """What the events are about: states that follow each other, their documents, and the changes between them."""

    @property
    def state(self) -> State:
        """The newest: the same object until there is a newer one."""

    async def changed(self, seen: State) -> State:
        """Wait for a state newer than `seen`, and return it."""

    async def document(self, state: State) -> Sequence[BodyPart]:
        """Return the state as JSON, in one line."""

    async def change(self, before: State, after: State) -> Sequence[Sequence[BodyPart]]:
        """Return what turns one document into the other: one or more events, each of them JSON in one line."""

    def forget(self) -> None:
        """Free what was rendered: no stream is open any more."""


class EventId(NamedTuple):
    """Numbers can be compared within an epoch only."""

    epoch: str
    number: int

    @classmethod
    def parse(cls, text: str) -> "EventId":
        epoch, _, number = text.partition("-")
        return cls(epoch, int(number) if number.isascii() and number.isdigit() and len(number) < 16 else -1)

    def __str__(self) -> str:
        return f"{self.epoch}-{self.number}"


class EncodedEvents:
    """Events as bytes, plain and for anywhere in a gzip stream. Joined once for all clients."""

    def __init__(self, parts: Sequence[BodyPart], gzip_head: bytes = b"") -> None:
        self._parts = parts
        self._gzip_head = gzip_head

    @classmethod
    def of(cls, name: str, event_id: EventId, bodies: Sequence[Sequence[BodyPart]]) -> "EncodedEvents":
        """Each body is one event. The last one carries the id: a client that misses it starts over."""
        parts: list[BodyPart] = []
        for place, body in enumerate(bodies, 1):
            line = f"id: {event_id}\n" if place == len(bodies) else ""
            parts += (BodyPart(f"{line}event: {name}\ndata: ".encode()), *body, BodyPart(b"\n\n"))
        return cls(parts)

    @property
    def size(self) -> int:
        return sum(len(part.plain) for part in self._parts)

    @cached_property
    def plain(self) -> bytes:
        return b"".join(part.plain for part in self._parts)

    @cached_property
    def gzipped(self) -> bytes:
        return self._gzip_head + b"".join(part.deflated for part in self._parts)


_RETRY = BodyPart(b"retry: %d\n\n" % RETRY_MS)
OPENING = EncodedEvents((_RETRY,), _GZIP_HEAD)
HEARTBEAT = EncodedEvents((BodyPart(b":\n\n"),))


def _opening(user: str) -> EncodedEvents:
    """Begin a stream. Who has logged in, if that is known, is the only event that other clients do not get."""
    if not user:
        return OPENING
    return EncodedEvents((_RETRY, BodyPart(b"event: user\ndata: %s\n\n" % json.encode(user))), _GZIP_HEAD)


class EventBroadcaster(Generic[State]):
    """Encodes each event once, and keeps the newest. Follows the source while a stream is open.

    At most `max_streams` may be open at a time, a tenth from one client network.
    """

    def __init__(self, source: ChangeSource[State], max_streams: int, supervisor: Supervisor | None = None) -> None:
        self._supervisor = supervisor or Supervisor()
        self._source = source
        self._max_streams = max_streams
        self._streams: set[EventStream] = set()
        self._kept: deque[EncodedEvents] = deque(maxlen=KEPT_EVENTS)
        self._follower: asyncio.Task[None] | None = None
        self._encoding = asyncio.Lock()
        self._begin_epoch()

    async def respond(self, request: Request) -> Response:
        """Respond with a stream that goes on after the event the client saw last, if that is still known."""
        client = client_network(request.remote)
        if self._has_place(client):
            if not self._is_following:
                self._begin_epoch()
            await self._document()  # raises here, where it becomes a response
        if not self._has_place(client):  # others may have come while the document was encoded
            return busy_response("too many event streams; ask for the document instead")
        # A browser sends the header when it connects again by itself; a script can only set the query.
        last_id = request.headers.get("last-event-id") or request.query.get("last-event-id", "")
        gzipped = gzip_accepted(request.headers.get("accept-encoding"))
        stream = EventStream(self, EventId.parse(last_id), client, _opening(request.user), gzipped)
        headers = {"X-Accel-Buffering": "no"}  # a proxy must not hold events back
        if gzipped:
            headers["Content-Encoding"] = "gzip"
        return Response(200, b"", "text/event-stream", headers, stream=stream)

    def add(self, stream: "EventStream") -> None:
        self._streams.add(stream)
        if not self._is_following:
            self._follower = self._supervisor.supervise("events", self._follow)

    def remove(self, stream: "EventStream") -> None:
        self._streams.discard(stream)

    async def since(self, seen: EventId) -> tuple[EventId, Iterable[EncodedEvents]]:
        """Return the id of the newest event, and what leads there: the changes since, or the whole document.

        It is the document if the changes are no longer known, or are larger.
        """
        behind = self.newest.number - seen.number
        if seen.epoch == self.newest.epoch and seen.number >= 0 and 0 <= behind <= len(self._kept):
            missed = list(self._kept)[len(self._kept) - behind :]
            if behind < 2 or sum(events.size for events in missed) <= self._full_size:
                return self.newest, missed
        return await self._document()

    def close(self) -> None:
        if self._follower is not None:
            self._follower.cancel()
        self.disconnect()

    def disconnect(self) -> None:
        """End all streams. A client that may still read connects again, and goes on where it was."""
        for stream in list(self._streams):
            stream.close()

    def _has_place(self, client: str) -> bool:
        """Whether the client network may open one more stream."""
        of_client = sum(stream.client == client for stream in self._streams)
        return len(self._streams) < self._max_streams and of_client < max(1, self._max_streams // LARGEST_PART)

    @property
    def _is_following(self) -> bool:
        return self._follower is not None and not self._follower.done()

    def _begin_epoch(self) -> None:
        """Start over: no client can go on from earlier events."""
        self.newest = EventId(token_hex(4), 0)
        self._state = self._source.state
        self._full: tuple[EventId, EncodedEvents] | None = None
        self._full_size = 0
        self._kept.clear()

    async def _follow(self) -> None:
        used_at = monotonic()
        while self._streams or monotonic() - used_at < LINGER_SECONDS:
            if self._streams:
                used_at = monotonic()
            try:
                async with asyncio.timeout(HEARTBEAT_SECONDS):
                    state = await self._source.changed(self._state)
                await self._encode(state)
            except TimeoutError:
                pass  # waking the streams without news makes a heartbeat
            except Exception:  # clients have to connect again, and then begin with the whole document
                self.disconnect()
                self._begin_epoch()
                raise
            await self._wake()
        self._kept.clear()
        self._source.forget()

    async def _encode(self, state: State) -> None:
        async with self._encoding:
            bodies = await self._source.change(self._state, state)
        self.newest = self.newest._replace(number=self.newest.number + 1)
        self._state, self._full = state, None
        self._kept.append(EncodedEvents.of(CHANGE, self.newest, bodies))

    async def _wake(self) -> None:
        for place, stream in enumerate(list(self._streams), 1):
            stream.wake()
            if place % BATCH == 0:
                await asyncio.sleep(0)

    async def _document(self) -> tuple[EventId, tuple[EncodedEvents, ...]]:
        """Encode the newest document, once for all streams."""
        async with self._encoding:
            if self._full is None:
                newest, state = self.newest, self._state
                full = EncodedEvents.of(FULL, newest, [await self._source.document(state)])
                self._full_size = full.size
                if newest != self.newest:  # there is a newer state, and its change comes next
                    return newest, (full,)
                self._full = newest, full
            newest, full = self._full
            return newest, (full,)


@dataclass(eq=False, slots=True)
class EventStream:
    """One stream, counted inside its `with`. No other waits for it: a slow client gets what it missed at once."""

    events: EventBroadcaster[Any]
    seen: EventId
    client: str
    opening: EncodedEvents
    gzipped: bool
    _is_open: bool = True
    _awaited: asyncio.Future[None] | None = None

    def __enter__(self) -> AsyncIterator[bytes]:
        self.events.add(self)
        return self._chunks()

    def __exit__(self, *_: object) -> None:
        self.events.remove(self)

    def close(self) -> None:
        self._is_open = False
        self.wake()

    def wake(self) -> None:
        if self._awaited is not None and not self._awaited.done():
            self._awaited.set_result(None)

    async def _chunks(self) -> AsyncIterator[bytes]:
        yield self._encoded(self.opening)
        while self._is_open:
            self.seen, news = await self.events.since(self.seen)
            for events in news:
                yield self._encoded(events)
            if not await self._has_news() and self._is_open:
                yield self._encoded(HEARTBEAT)

    async def _has_news(self) -> bool:
        """Wait to be woken, unless there is something already."""
        if self._is_open and self.events.newest == self.seen:
            self._awaited = asyncio.get_running_loop().create_future()
            await self._awaited
        return self.events.newest != self.seen

    def _encoded(self, events: EncodedEvents) -> bytes:
        return events.gzipped if self.gzipped else events.plain
