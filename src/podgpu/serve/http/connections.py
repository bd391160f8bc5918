"""The open connections of a group of listeners: how many there may be, and which is evicted for another."""

import asyncio
from collections import Counter
from enum import IntEnum
from ipaddress import IPv6Address
from math import inf

from podgpu.serve.http.request import Limits
from podgpu.supervise import BriefTasks

# Connections of one client network that are spared because they scrape; a few servers may share an address.
SPARED_SCRAPERS = 8


def client_network(host: str) -> str:
    """Return the client's IPv4 address or its IPv6 /64: a client with one address of a /64 has them all."""
    if ":" not in host:
        return host
    try:
        return f"{IPv6Address(int(IPv6Address(host)) >> 64 << 64)}/64"
    except ValueError:
        return host


class RecentlySeen:
    """Names that were seen in the last `seconds`. Keeps the newest `most`, so that none can fill it up."""

    def __init__(self, seconds: float = 600.0, most: int = 1024) -> None:
        self._seconds = seconds
        self._most = most
        self._seen: dict[str, float] = {}

    def add(self, name: str, now: float) -> None:
        self._seen.pop(name, None)
        self._seen[name] = now
        if len(self._seen) > self._most:
            del self._seen[next(iter(self._seen))]

    def has(self, name: str, now: float) -> bool:
        return now - self._seen.get(name, -self._seconds) < self._seconds


class Phase(IntEnum):
    """What a connection is doing. Those of one client network are evicted in this order; busy ones never are."""

    SILENT = 0  # it has sent no whole request yet
    STALLED = 1  # its response is not being read
    IDLE = 2  # between two requests
    HEAD = 3  # it has begun another request
    BUSY = 4


class TrackedConnection(asyncio.Protocol):
    """What `Connections` knows of each: its phase, since when, and when it was first sent a page of metrics."""

    client = ""
    phase = Phase.SILENT
    since = 0.0
    scraped_at = inf

    def abort(self) -> None: ...


class Connections:
    def __init__(self, limits: Limits, max_connections: int) -> None:
        self.limits = limits
        self.known_clients = RecentlySeen()  # networks that have read a response
        self.tasks = BriefTasks()  # a stop waits for them
        self._max_connections = max_connections
        self._deadlines = {
            Phase.SILENT: limits.head_seconds,
            Phase.STALLED: limits.write_seconds,
            Phase.IDLE: limits.idle_seconds,
            Phase.HEAD: limits.head_seconds,
            Phase.BUSY: inf,
        }
        self._counted: set[TrackedConnection] = set()
        self._streaming: set[TrackedConnection] = set()
        self._unread: dict[TrackedConnection, bytes] = {}

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

    def hold(self, connection: TrackedConnection, body: bytes) -> None:
        """Note that the client does not read this. If all together is too much, abort connections until it is not.

        Of the network that holds most, the one that has stalled for longest goes first. A shared page counts once.
        """
        self._unread[connection] = body
        while others := self._unread.keys() - {connection}:
            distinct = {id(unread): len(unread) for unread in self._unread.values()}
            if sum(distinct.values()) <= self.limits.unread_bytes:
                return
            sizes: Counter[str] = Counter()
            for holder, unread in self._unread.items():
                sizes[holder.client] += len(unread)
            min(others, key=lambda other: (-sizes[other.client], other.since)).abort()

    def release(self, connection: TrackedConnection) -> None:
        """Note that the client has read its response."""
        self._unread.pop(connection, None)

    def set_streaming(self, connection: TrackedConnection) -> None:
        """Keep its deadlines, but do not count it: there is another limit for streams."""
        self._counted.discard(connection)
        self._streaming.add(connection)

    def remove(self, connection: TrackedConnection) -> None:
        self._counted.discard(connection)
        self._streaming.discard(connection)
        self.release(connection)

    def sweep(self, now: float) -> None:
        """Abort those that are late to send a request or to read a response."""
        for connection in (*self._counted, *self._streaming):
            if now - connection.since > self._deadlines[connection.phase]:
                connection.abort()

    def abort(self) -> None:
        for connection in (*self._counted, *self._streaming):
            connection.abort()

    def _choose_eviction(self, newcomer: str, now: float) -> TrackedConnection | None:
        """Choose a connection of the client network that has most of them. One that scrapes goes last of all.

        Silent and stalled ones have some time first, unless their network has more connections than the newcomer's.
        """
        counts = Counter(connection.client for connection in self._counted)
        spared = self._spared()

        def may_go(connection: TrackedConnection) -> bool:
            if connection.phase in (Phase.IDLE, Phase.HEAD):
                return True
            is_larger = connection.client != newcomer and counts[connection.client] > counts[newcomer]
            has_settled = now - connection.since >= self.limits.settle_seconds
            return connection.phase is not Phase.BUSY and (has_settled or is_larger)

        def order(connection: TrackedConnection) -> tuple[float, ...]:
            client, phase, since = connection.client, connection.phase, connection.since
            is_known = self.known_clients.has(client, now)
            # Of silent ones the youngest goes, of others the one that has waited for longest.
            age = -since if phase is Phase.SILENT else since
            return connection in spared, -counts[client], is_known, phase, age

        return min(filter(may_go, self._counted), key=order, default=None)

    def _spared(self) -> set[TrackedConnection]:
        """Return those that have scraped for longest, a few of each network: no flood is spared by scraping."""
        by_client: dict[str, list[TrackedConnection]] = {}
        for connection in sorted(self._counted, key=lambda connection: connection.scraped_at):
            if connection.scraped_at < inf:
                by_client.setdefault(connection.client, []).append(connection)
        return {spared for scrapers in by_client.values() for spared in scrapers[:SPARED_SCRAPERS]}
