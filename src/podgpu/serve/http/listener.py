"""Listening sockets, and the clients that are accepted from them."""

import asyncio
import errno
import os
import socket
import ssl
from collections.abc import Callable, Sequence
from functools import partial

from podgpu.errors import UserError
from podgpu.option.address import Address
from podgpu.serve.http.connection import Respond, ServerConnection
from podgpu.serve.http.connections import Connections, client_network
from podgpu.serve.http.limits import Limits
from podgpu.serve.http.pending import PendingConnection, PendingConnections, spare_descriptors

BACKLOG = 4096  # the kernel's own bound is lower on older systems
# What the kernel buffers of responses to a client that does not read; its own default is some MiB for each.
SEND_BYTES = 512 * 1024
PENDING_PER_CONNECTION = 16
ACCEPTED_AT_ONCE = 64  # before others get their turn
PAUSE_SECONDS = 0.1

_GONE = (BlockingIOError, InterruptedError, ConnectionAbortedError)
_EXHAUSTED = (errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM)
# Errors of a machine with only one of IPv4 and IPv6.
_LACKING = (errno.EAFNOSUPPORT, errno.EADDRNOTAVAIL)
_OPTION = "--web.listen-address"

Context = Callable[[], ssl.SSLContext | None]


class ListenerGroup:
    """The listeners of one or more addresses, and the clients that share their places."""

    def __init__(self, limits: Limits, max_connections: int) -> None:
        self.connections = Connections(limits, max_connections)
        self._limits = limits
        places = spare_descriptors(max_connections, wanted=PENDING_PER_CONNECTION * max_connections)
        self._pending = PendingConnections(limits, places, self.connections.known_clients)
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
        self._pending.abort()
        self.connections.abort()

    def _watch(self, listener: socket.socket, respond: Respond, context: Context) -> None:
        if listener.fileno() >= 0:
            asyncio.get_running_loop().add_reader(listener, self._accept, listener, respond, context)

    def _accept(self, listener: socket.socket, respond: Respond, context: Context) -> None:
        loop = asyncio.get_running_loop()
        connect = partial(self._connect, respond, context)
        for _ in range(ACCEPTED_AT_ONCE):
            try:
                sock, peer = listener.accept()
            except _GONE:
                return
            except OSError as error:
                # Without a descriptor for the next client, a pending one gives up its own; else try again later.
                if error.errno in _EXHAUSTED and not self._pending.make_room(loop.time()):
                    loop.remove_reader(listener)
                    loop.call_later(PAUSE_SECONDS, self._watch, listener, respond, context)
                return
            sock.settimeout(0)
            encrypted = context() is not None
            self._pending.add(PendingConnection(sock, client_network(peer), loop.time(), encrypted, connect))

    def _connect(self, respond: Respond, context: Context, sock: socket.socket) -> None:
        def connection() -> ServerConnection:
            return ServerConnection(respond, self.connections, self._limits, context())

        async def connect() -> None:
            try:
                await asyncio.get_running_loop().connect_accepted_socket(connection, sock)
            except OSError:  # the client has left
                sock.close()

        self.connections.begin(connect())


async def bind(address: Address) -> list[socket.socket]:
    """Bind a listener for each IP address that the host stands for; one of them is enough. Raises UserError."""
    bound: list[socket.socket] = []
    lacking: OSError | None = None
    for family, (host, _, *scope) in await _resolve(address):
        # Port 0 means any port, but the same one for IPv4 and IPv6.
        port = bound[0].getsockname()[1] if bound else address.port
        try:
            listener = socket.create_server((host, port, *scope), family=family, backlog=BACKLOG)
        except OSError as error:
            if error.errno not in _LACKING:
                for listener in bound:
                    listener.close()
                raise _cannot_listen(address, error) from None
            lacking = error
        else:
            listener.setsockopt(
                socket.SOL_SOCKET, socket.SO_SNDBUF, SEND_BYTES
            )  # each connection inherits it
            bound.append(listener)
    if lacking is not None and not bound:
        raise _cannot_listen(address, lacking)
    return bound


async def _resolve(address: Address) -> list[tuple[int, tuple[str | int | bytes, ...]]]:
    loop = asyncio.get_running_loop()
    try:
        found = await loop.getaddrinfo(
            address.host or None, address.port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )
    except socket.gaierror:
        raise UserError(
            f"cannot listen on {address}: the name does not resolve; give {_OPTION} an IP address"
        ) from None
    return list(dict.fromkeys((family, place) for family, _, _, _, place in found))


def _cannot_listen(address: Address, error: OSError) -> UserError:
    why = {
        errno.EADDRINUSE: f"the port is in use; stop what listens there or choose another with {_OPTION}",
        errno.EACCES: f"ports below 1024 need privileges; choose a higher one with {_OPTION}",
        errno.EADDRNOTAVAIL: f"this machine has no such address; give {_OPTION} one of its own or none",
        errno.EAFNOSUPPORT: f"this machine lacks that IP version; choose another address with {_OPTION}",
    }
    number = error.errno or 0
    return UserError(f"cannot listen on {address}: {why.get(number) or os.strerror(number)}")
