"""The open connections of listeners that share places: how many there may be, and which is evicted for another."""

import asyncio
import socket
from collections import Counter
from collections.abc import Coroutine
from ipaddress import IPv6Address
from typing import Any

from podgpu.serve.http.limits import Limits
from podgpu.supervise import brief

NETWORK_BYTES = 8
# Connections of one client network that are spared because they scrape; a few servers may share an address.
SPARED_SCRAPERS = 8

_SILENT, _STALLED, _BETWEEN = range(3)


def client_network(peer: object) -> str:
    """Return the client's IPv4 address or its IPv6 /64: a client with one address of a /64 has them all."""
    host = str(peer[0]).partition("%")[0] if isinstance(peer, tuple) and peer else ""
    if ":" not in host:
        return host
    try:
        network = socket.inet_pton(socket.AF_INET6, host)[:NETWORK_BYTES]
    except OSError:
        return host
    return f"{IPv6Address(network.ljust(16, bytes(1)))}/64"


class KnownClients:
    """The client networks that received a response recently. Keeps the latest, so that others cannot fill it up."""

    def __init__(self, seconds: float = 600.0, most: int = 1024) -> None:
        self._seconds = seconds
        self._most = most
        self._seen: dict[str, float] = {}

    def add(self, client: str, now: float) -> None:
        self._seen.pop(client, None)
        self._seen[client] = now
        if len(self._seen) > self._most:
            del self._seen[next(iter(self._seen))]

    def knows(self, client: str, now: float) -> bool:
        return now - self._seen.get(client, -self._seconds) < self._seconds


class TrackedConnection(asyncio.Protocol):
    """A connection, as far as the others know it.

    `idle_since` is None while a request is in progress, and `stalled_since` unless its response is not being read.
    `has_requested` is whether it ever sent a whole request, `scraped_at` when it first got a page of metrics.
    """

    client = ""
    has_requested = False
    scraped_at: float | None = None
    idle_since: float | None = None
    stalled_since: float | None = None

    @property
    def idleness(self) -> tuple[int, float | None]:
        """Return what it is idle with, and since when."""
        if self.stalled_since is not None:
            return _STALLED, self.stalled_since
        return (_BETWEEN if self.has_requested else _SILENT), self.idle_since

    def check(self, now: float) -> None:
        """Abort it if it is late."""

    def abort(self) -> None: ...


class UnreadResponses:
    """Bounds the memory of responses to clients that do not read them.

    Over `most_bytes`, the longest stalled connection of the client network that holds most is aborted. Many may hold
    the same page, which counts once.
    """

    def __init__(self, most_bytes: int) -> None:
        self._most_bytes = most_bytes
        self._held: dict[TrackedConnection, bytes] = {}

    @property
    def total_bytes(self) -> int:
        return sum(map(len, {id(body): body for body in self._held.values()}.values()))

    def hold(self, connection: TrackedConnection, body: bytes) -> None:
        self._held[connection] = body
        while self.total_bytes > self._most_bytes and (late := self._late(connection)) is not None:
            self.release(late)
            late.abort()

    def release(self, connection: TrackedConnection) -> None:
        self._held.pop(connection, None)

    def _late(self, newest: TrackedConnection) -> TrackedConnection | None:
        holders = Counter(map(id, self._held.values()))
        sizes: Counter[str] = Counter()
        for connection, body in self._held.items():
            sizes[connection.client] += len(body) // holders[id(body)]
        others = [connection for connection in self._held if connection is not newest]
        return min(others, key=lambda held: (-sizes[held.client], held.stalled_since or 0.0), default=None)


class Connections:
    def __init__(self, limits: Limits, max_connections: int) -> None:
        self._limits = limits
        self._max_connections = max_connections
        self.known_clients = KnownClients()
        self.unread = UnreadResponses(limits.unread_bytes)
        self._counted: set[TrackedConnection] = set()
        self._streaming: set[TrackedConnection] = set()
        self._tasks: set[asyncio.Task[None]] = set()

    def __len__(self) -> int:
        return len(self._counted) + len(self._streaming)

    def admit(self, connection: TrackedConnection, now: float) -> bool:
        """Give it a place, if need be that of a connection that asks for nothing or does not read.

        Otherwise a few hundred of these could keep the liveness probe out and get the agent killed.
        """
        if len(self._counted) >= self._max_connections:
            evicted = self._choose_eviction(connection.client, now)
            if evicted is None:
                return False
            evicted.abort()
        self._counted.add(connection)
        return True

    def set_streaming(self, connection: TrackedConnection) -> None:
        """Keep its deadlines, but do not count it: streams have a cap of their own."""
        self._counted.discard(connection)
        self._streaming.add(connection)

    def remove(self, connection: TrackedConnection) -> None:
        self._counted.discard(connection)
        self._streaming.discard(connection)
        self.unread.release(connection)

    def begin(self, work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        """Run the work of a connection in a task that a stop waits for."""
        task = brief(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task

    async def finish(self, seconds: float) -> None:
        """Wait for the requests in progress, but no longer than that; then cancel them."""
        if self._tasks:
            _, late = await asyncio.wait(self._tasks, timeout=seconds)
            for task in late:
                task.cancel()

    def sweep(self, now: float) -> None:
        for connection in (*self._counted, *self._streaming):
            connection.check(now)

    def abort(self) -> None:
        for connection in (*self._counted, *self._streaming):
            connection.abort()

    def _choose_eviction(self, newcomer: str, now: float) -> TrackedConnection | None:
        """Choose a connection of the client network that has most of them, and one that scrapes last of all.

        Of a network, the silent go before those that do not read, and these before those between two requests. The
        silent need not be closed at once, unless their network has more connections than that of the new connection.
        """
        counts = Counter(connection.client for connection in self._counted)
        spared = self._spared()

        def may_go(connection: TrackedConnection) -> bool:
            rank, since = connection.idleness
            if since is None:
                return False
            is_larger = connection.client != newcomer and counts[connection.client] > counts[newcomer]
            return rank == _BETWEEN or now - since >= self._limits.settle_seconds or is_larger

        def order(connection: TrackedConnection) -> tuple[float, ...]:
            client, (rank, since) = connection.client, connection.idleness
            is_known = self.known_clients.knows(client, now)
            # Of the silent the youngest goes, of others the longest idle.
            age = (since or 0.0) if rank else -(since or 0.0)
            return connection in spared, -counts[client], is_known, rank, age

        return min(filter(may_go, self._counted), key=order, default=None)

    def _spared(self) -> set[TrackedConnection]:
        """Return those that have scraped for longest, a few of each network: else a flood would only have to scrape."""
        spared: set[TrackedConnection] = set()
        numbers: Counter[str] = Counter()
        scrapers = [(found.scraped_at, found) for found in self._counted if found.scraped_at is not None]
        for _, connection in sorted(scrapers, key=lambda pair: pair[0]):
            numbers[connection.client] += 1
            if numbers[connection.client] <= SPARED_SCRAPERS:
                spared.add(connection)
        return spared
