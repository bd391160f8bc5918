"""Accepts clients from listening sockets."""

import asyncio
import errno
import socket
import ssl
from collections.abc import Callable, Sequence
from contextlib import suppress
from math import inf

from podgpu.serve.http.connection import Respond, ServerConnection
from podgpu.serve.http.connections import Connections, client_network
from podgpu.serve.http.pending import PendingConnection, PendingConnections
from podgpu.serve.http.request import Limits
from podgpu.serve.http.response import busy_response

ACCEPTED_AT_ONCE = 64  # before others get their turn
PAUSE_SECONDS = 0.1

_GONE = (BlockingIOError, InterruptedError, ConnectionAbortedError)
_EXHAUSTED = (errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM)

Context = Callable[[], ssl.SSLContext | None]


class ListenerGroup:
    """The listeners of one or more addresses, and the clients that share their places."""

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
                # Without a descriptor for the next client, a pending one gives up its own; else try again later.
                if error.errno in _EXHAUSTED and not self._pending.make_room(loop.time()):
                    loop.remove_reader(listener)
                    loop.call_later(PAUSE_SECONDS, self._watch, listener, respond, context)
                return
            sock.settimeout(0)
            self._pending.add(PendingConnection(sock, client_network(peer), loop.time(), context(), respond))

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
