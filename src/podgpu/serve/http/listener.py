"""Accepts clients. Until one has sent a whole request, it costs a descriptor and little else."""

import asyncio
import errno
import select
import socket
import ssl
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from heapq import nlargest
from math import inf

from podgpu.serve.http.connection import Respond, ServerConnection
from podgpu.serve.http.connections import Connections, client_network
from podgpu.serve.http.request import Limits
from podgpu.serve.http.response import busy_response

# Where the kernel keeps reporting data that was seen already, a slow client is read this often.
PEEK_SECONDS = 0.1
# Parts of all places: at most one half for a client network, and one eighth that a known network is not charged for.
# One in 64 is freed at a time, so that all connections are compared less often.
LARGEST_PART = 2
RESERVED_PART = 8
FREED_PART = 64

ACCEPTED_AT_ONCE = 64  # before other tasks get their turn
PAUSE_SECONDS = 0.1

_GONE = (BlockingIOError, InterruptedError, ConnectionAbortedError)
_EXHAUSTED = (errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM)
_TLS_HANDSHAKE, _TLS_HEAD = 0x16, 5

Context = Callable[[], ssl.SSLContext | None]


@dataclass(eq=False, slots=True)
class PendingConnection:
    sock: socket.socket
    client: str
    since: float
    context: ssl.SSLContext | None
    respond: Respond
    seen: int = 0


class PendingConnections:
    """Connections that have not sent a whole request. A new one is always accepted.

    Where there are too many, the youngest that have had their chance are evicted. So a flood evicts itself, and never a
    client that sends its request at once. `connect` takes over a socket with everything in it still unread.
    """

    def __init__(self, connections: Connections, places: int, connect: Callable[[PendingConnection], None]) -> None:
        self._limits = connections.limits
        self._known_clients = connections.known_clients
        self._places = max(1, places)
        self._connect = connect
        self._pending: dict[int, PendingConnection] = {}  # by descriptor, the oldest first
        self._counts: Counter[str] = Counter()

    def __len__(self) -> int:
        return len(self._pending)

    def add(self, pending: PendingConnection) -> None:
        """Wait for the client's request, then hand the socket over."""
        if self._counts[pending.client] >= max(1, self._places // LARGEST_PART):
            self.make_room(pending.since, pending.client)
        elif len(self._pending) >= self._places:
            self.make_room(pending.since)
        self._pending[pending.sock.fileno()] = pending
        self._counts[pending.client] += 1
        self._peek(pending)

    def make_room(self, now: float, network: str | None = None) -> bool:
        """Evict from this network, or from those with most: of each the youngest that has settled, else the oldest.

        Return whether there was any to evict.
        """
        candidates = [pending for pending in self._pending.values() if network in (None, pending.client)]
        settled = sum(pending.since <= now - self._limits.settle_seconds for pending in candidates)
        left = self._counts.copy()
        for client in filter(lambda client: self._known_clients.has(client, now), left):
            left[client] -= self._places // RESERVED_PART
        ranked: list[tuple[int, PendingConnection]] = []
        for pending in (*reversed(candidates[:settled]), *candidates[settled:]):
            ranked.append((left[pending.client], pending))
            left[pending.client] -= 1
        for _, pending in nlargest(max(1, self._places // FREED_PART), ranked, key=lambda pair: pair[0]):
            self._close(pending)
        return bool(ranked)

    def sweep(self, now: float) -> None:
        """Close those that are late."""
        late = now - self._limits.head_seconds
        for pending in list(self._pending.values()):
            if pending.since >= late:
                break
            self._close(pending)

    def _peek(self, pending: PendingConnection) -> None:
        number = pending.sock.fileno()
        if self._pending.get(number) is not pending:
            return  # it was closed meanwhile
        loop = asyncio.get_running_loop()
        most = self._limits.line_bytes + 1
        try:
            data = pending.sock.recv(most, socket.MSG_PEEK)
        except (BlockingIOError, InterruptedError):
            loop.add_reader(number, self._peek, pending)
            return
        except OSError:
            data = b""
        if data and is_complete(data, most, encrypted=pending.context is not None):
            self._forget(pending)
            if pending.seen:
                pending.sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVLOWAT, 1)
            self._connect(pending)
        elif len(data) > pending.seen:
            pending.seen = len(data)
            pending.sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVLOWAT, len(data) + 1)
            loop.add_reader(number, self._peek, pending)
        elif not data or _has_ended(pending.sock):
            self._close(pending)
        else:
            loop.remove_reader(number)
            loop.call_later(PEEK_SECONDS, self._peek, pending)

    def _close(self, pending: PendingConnection) -> None:
        self._forget(pending)
        pending.sock.close()

    def _forget(self, pending: PendingConnection) -> None:
        number = pending.sock.fileno()
        asyncio.get_running_loop().remove_reader(number)
        del self._pending[number]
        self._counts[pending.client] -= 1
        if not self._counts[pending.client]:
            del self._counts[pending.client]


def is_complete(data: bytes, most: int, *, encrypted: bool) -> bool:
    """Whether this is the whole head of a request, a whole ClientHello of TLS, or never will be.

    Nothing else is checked here: the connection answers what is wrong.
    """
    if len(data) >= most:
        return True
    if encrypted:
        return data[0] != _TLS_HANDSHAKE or len(data) >= _TLS_HEAD + int.from_bytes(data[3:_TLS_HEAD], "big")
    return not data[:1].isalpha() or b"\n\r\n" in data or b"\n\n" in data


def _has_ended(sock: socket.socket) -> bool:
    """Whether the client will send no more."""
    poll = select.poll()
    poll.register(sock, select.POLLRDHUP)
    return bool(poll.poll(0))


class ListenerGroup:
    """The listeners of one or more addresses, which share places for connections."""

    def __init__(self, limits: Limits, max_connections: int, max_pending: int) -> None:
        self.connections = Connections(limits, max_connections)
        self._pending = PendingConnections(self.connections, max_pending, self._connect)
        self._listeners: list[socket.socket] = []

    def __len__(self) -> int:
        return len(self.connections) + len(self._pending)

    def open(self, listeners: Sequence[socket.socket], respond: Respond, context: Context) -> None:
        """Accept clients. `context` is asked for each of them: a new certificate disturbs no older connection."""
        for listener in listeners:
            self._listeners.append(listener)
            listener.settimeout(0)
            self._watch(listener, respond, context)

    def close(self) -> None:
        """Accept no more clients."""
        for listener in self._listeners:
            asyncio.get_running_loop().remove_reader(listener)
            listener.close()
        self._listeners.clear()

    def sweep(self, now: float) -> None:
        self._pending.sweep(now)
        self.connections.sweep(now)

    def abort(self) -> None:
        self._pending.sweep(inf)
        self.connections.abort()

    def _watch(self, listener: socket.socket, respond: Respond, context: Context) -> None:
        if listener.fileno() >= 0:
            asyncio.get_running_loop().add_reader(listener, self._accept, listener, respond, context)

    def _accept(self, listener: socket.socket, respond: Respond, context: Context) -> None:
        loop = asyncio.get_running_loop()
        for _ in range(ACCEPTED_AT_ONCE):
            try:
                sock, peer = listener.accept()
            except _GONE:
                return
            except OSError as error:
                # Without a descriptor for the next client, evict a pending one. Without any, try again later.
                if error.errno in _EXHAUSTED and not self._pending.make_room(loop.time()):
                    loop.remove_reader(listener)
                    loop.call_later(PAUSE_SECONDS, self._watch, listener, respond, context)
                return
            sock.settimeout(0)
            self._pending.add(PendingConnection(sock, client_network(peer[0]), loop.time(), context(), respond))

    def _connect(self, pending: PendingConnection) -> None:
        sock, client, context = pending.sock, pending.client, pending.context
        connection = ServerConnection(pending.respond, self.connections, client)
        if self.connections.admit(connection, asyncio.get_running_loop().time()):
            connection.connect(sock, context)
            return
        with sock, suppress(OSError):
            if context is None:  # a response would take a handshake
                # What is left unread would reset the connection.
                sock.recv(self.connections.limits.head_bytes)
                sock.send(busy_response("too many connections; try again in a second").encode_last())
