"""Accepted sockets of clients that have not sent a whole request yet. Each costs a descriptor and little else."""

import asyncio
import resource
import select
import socket
from collections.abc import Callable
from dataclasses import dataclass, field
from heapq import nlargest

from podgpu.serve.http.connections import KnownClients
from podgpu.serve.http.limits import Limits

# Where the kernel reports data again that was already seen, a slow client is read only so often.
PEEK_SECONDS = 0.1
# Of all places: no client network has more than the first part, and a known one has the second before it is counted.
# The third is made free at a time, from as many networks.
LARGEST_PART = 2
RESERVED_PART = 8
FREED_PART = 64

# Descriptors for the driver, the kubelet, the API server, files, logs and event streams.
OWN_DESCRIPTORS = 640
LEAST_PENDING = 64

_TLS_HANDSHAKE = 0x16
_TLS_HEAD = 5


@dataclass(eq=False, slots=True)
class PendingConnection:
    """`connect` takes over the socket, with everything in it still unread."""

    sock: socket.socket
    client: str
    since: float
    encrypted: bool
    connect: Callable[[socket.socket], None]
    seen: int = 0
    # For the event loop: asked by a socket it does not know, it would describe that socket at length.
    number: int = field(init=False)

    def __post_init__(self) -> None:
        self.number = self.sock.fileno()


class PendingOfClient:
    """Those of one client network. Those that have had their chance are kept apart, so that none is searched for."""

    def __init__(self, client: str) -> None:
        self.client = client
        self._young: dict[PendingConnection, None] = {}
        self._settled: dict[PendingConnection, None] = {}

    def __len__(self) -> int:
        return len(self._young) + len(self._settled)

    def add(self, pending: PendingConnection) -> None:
        self._young[pending] = None

    def discard(self, pending: PendingConnection) -> None:
        self._young.pop(pending, None)
        self._settled.pop(pending, None)

    def choose_eviction(self, settled_at: float) -> PendingConnection:
        """Choose the youngest of those accepted by then, else the oldest of all."""
        while self._young and (first := next(iter(self._young))).since <= settled_at:
            del self._young[first]
            self._settled[first] = None
        return next(reversed(self._settled)) if self._settled else next(iter(self._young))


class PendingConnections:
    """A new connection is always accepted. Under pressure the youngest that has had its chance is evicted for it.

    So a flood evicts itself, and a client that sends its request at once is not among the evicted.
    """

    def __init__(self, limits: Limits, places: int, known_clients: KnownClients) -> None:
        self._limits = limits
        self._places = max(1, places)
        self._known_clients = known_clients
        self._by_client: dict[str, PendingOfClient] = {}
        self._pending: dict[PendingConnection, None] = {}

    def __len__(self) -> int:
        return len(self._pending)

    def add(self, pending: PendingConnection) -> None:
        """Wait for the client's request, then let the connection be made."""
        if len(self._by_client.get(pending.client, ())) >= max(1, self._places // LARGEST_PART):
            self._evict_from(self._by_client[pending.client], pending.since)
        elif len(self._pending) >= self._places:
            self.make_room(pending.since)
        self._pending[pending] = None
        self._by_client.setdefault(pending.client, PendingOfClient(pending.client)).add(pending)
        self._peek(pending)

    def make_room(self, now: float) -> bool:
        """Evict from the network that has most, or from several, so that all are compared less often."""
        count = max(1, self._places // FREED_PART)
        largest = nlargest(count, self._by_client.values(), key=lambda group: self._weight(group, now))
        for group in largest:
            self._evict_from(group, now)
        return bool(largest)

    def sweep(self, now: float) -> None:
        late = now - self._limits.head_seconds
        for pending in list(self._pending):
            if pending.since >= late:
                break
            self._close(pending)

    def abort(self) -> None:
        for pending in list(self._pending):
            self._close(pending)

    def _weight(self, group: PendingOfClient, now: float) -> int:
        is_known = self._known_clients.knows(group.client, now)
        return len(group) - (self._places // RESERVED_PART if is_known else 0)

    def _evict_from(self, group: PendingOfClient, now: float) -> None:
        self._close(group.choose_eviction(now - self._limits.settle_seconds))

    def _peek(self, pending: PendingConnection) -> None:
        if pending not in self._pending:
            return
        most = self._limits.line_bytes + 1
        try:
            data = pending.sock.recv(most, socket.MSG_PEEK)
        except (BlockingIOError, InterruptedError):
            asyncio.get_running_loop().add_reader(pending.number, self._peek, pending)
            return
        except OSError:
            data = b""
        if not data:
            self._close(pending)
        elif is_complete(data, most, encrypted=pending.encrypted):
            self._forget(pending)
            if pending.seen:
                pending.sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVLOWAT, 1)
            pending.connect(pending.sock)
        else:
            self._wait_for_more(pending, len(data))

    def _wait_for_more(self, pending: PendingConnection, size: int) -> None:
        loop = asyncio.get_running_loop()
        if size > pending.seen:
            pending.seen = size
            pending.sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVLOWAT, size + 1)
            loop.add_reader(pending.number, self._peek, pending)
        elif _has_ended(pending.sock):
            self._close(pending)
        else:
            loop.remove_reader(pending.number)
            loop.call_later(PEEK_SECONDS, self._peek, pending)

    def _close(self, pending: PendingConnection) -> None:
        self._forget(pending)
        pending.sock.close()

    def _forget(self, pending: PendingConnection) -> None:
        asyncio.get_running_loop().remove_reader(pending.number)
        del self._pending[pending]
        group = self._by_client[pending.client]
        group.discard(pending)
        if not group:
            del self._by_client[pending.client]


def is_complete(data: bytes, most: int, *, encrypted: bool) -> bool:
    """Whether this is a request's whole head or a whole ClientHello of TLS, or will never be one.

    Nothing is checked here. What is wrong gets its response from the connection.
    """
    if len(data) >= most:
        return True
    if encrypted:
        return data[0] != _TLS_HANDSHAKE or (
            len(data) >= _TLS_HEAD and len(data) >= _TLS_HEAD + int.from_bytes(data[3:_TLS_HEAD], "big")
        )
    return not data[:1].isalpha() or b"\n\r\n" in data or b"\n\n" in data


def spare_descriptors(connections: int, *, wanted: int) -> int:
    """Raise the soft limit as far as needed and allowed, and return how many of the wanted descriptors there are."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    needed = OWN_DESCRIPTORS + connections + wanted
    if soft != resource.RLIM_INFINITY and soft < needed:
        soft = needed if hard == resource.RLIM_INFINITY else min(needed, hard)
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    if soft == resource.RLIM_INFINITY:
        return wanted
    return max(min(LEAST_PENDING, wanted), min(wanted, soft - OWN_DESCRIPTORS - connections))


def _has_ended(sock: socket.socket) -> bool:
    """Whether the client will send no more."""
    poll = select.poll()
    poll.register(sock, select.POLLRDHUP)
    return bool(poll.poll(0))
