"""A listening socket, and the way from there to a connection."""

import asyncio
import errno
import socket
from collections.abc import Callable
from functools import partial

from podgpu.serve.entry.first_words import are_whole
from podgpu.serve.entry.lobby import Caller, Lobby
from podgpu.serve.entry.origin import origin
from podgpu.serve.limits import Limits
from podgpu.supervise import brief

AT_ONCE = 64  # accepted before others get their turn
PAUSE_SECONDS = 0.1

_GONE = (BlockingIOError, InterruptedError, ConnectionAbortedError)
_EXHAUSTED = (errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM)


class Door:
    """`connect` makes what talks to a client; `is_encrypted` says whether a client begins with TLS now."""

    def __init__(
        self,
        listening: socket.socket,
        lobby: Lobby,
        connect: Callable[[], asyncio.Protocol],
        is_encrypted: Callable[[], bool],
        limits: Limits,
    ) -> None:
        self._listening = listening
        self._lobby = lobby
        self._connect = connect
        self._is_encrypted = is_encrypted
        self._limits = limits
        self._loop = asyncio.get_running_loop()
        self._entering: set[asyncio.Task[None]] = set()
        listening.settimeout(0)
        self._loop.add_reader(listening, self._accept)

    def close(self) -> None:
        self._loop.remove_reader(self._listening)
        self._listening.close()

    def _accept(self) -> None:
        for _ in range(AT_ONCE):
            try:
                wire, peer = self._listening.accept()
            except _GONE:
                return
            except OSError as error:
                self._go_without(error)
                return
            wire.settimeout(0)
            whole = partial(are_whole, most=self._limits.line_bytes + 1, encrypted=self._is_encrypted())
            self._lobby.enter(Caller(wire, origin(peer), self._loop.time(), whole), self._welcome)

    def _go_without(self, error: OSError) -> None:
        """Without a descriptor for the next client, one that waits gives up its own; else try again later."""
        if error.errno in _EXHAUSTED and not self._lobby.make_room(self._loop.time()):
            self._loop.remove_reader(self._listening)
            self._loop.call_later(PAUSE_SECONDS, self._resume)

    def _resume(self) -> None:
        if self._listening.fileno() >= 0:
            self._loop.add_reader(self._listening, self._accept)

    def _welcome(self, wire: socket.socket) -> None:
        task = brief(self._enter(wire))
        self._entering.add(task)
        task.add_done_callback(self._entering.discard)

    async def _enter(self, wire: socket.socket) -> None:
        try:
            await self._loop.connect_accepted_socket(self._connect, wire)
        except OSError:  # the client has left
            wire.close()
