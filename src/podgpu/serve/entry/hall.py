"""The clients of one or more addresses: those that wait, those that are served, and the doors they come by."""

import asyncio
import socket
from collections.abc import Callable, Sequence

from podgpu.serve.crowd import Crowd
from podgpu.serve.entry import descriptors
from podgpu.serve.entry.door import Door
from podgpu.serve.entry.lobby import Lobby
from podgpu.serve.entry.origin import Standing
from podgpu.serve.limits import Limits

WAITING_PER_CONNECTION = 16


class Hall:
    def __init__(self, limits: Limits, max_connections: int) -> None:
        standing = Standing()
        self.crowd = Crowd(limits, max_connections, standing)
        self._limits = limits
        places = descriptors.spare(max_connections, wanted=WAITING_PER_CONNECTION * max_connections)
        self._lobby = Lobby(limits, places, standing)
        self._doors: list[Door] = []

    def __len__(self) -> int:
        return len(self.crowd) + len(self._lobby)

    def open(
        self,
        sockets: Sequence[socket.socket],
        connect: Callable[[Crowd], asyncio.Protocol],
        is_encrypted: Callable[[], bool],
    ) -> None:
        self._doors += [
            Door(one, self._lobby, lambda: connect(self.crowd), is_encrypted, self._limits) for one in sockets
        ]

    def close(self) -> None:
        """Let nobody else in."""
        for door in self._doors:
            door.close()
        self._doors.clear()

    def sweep(self, now: float) -> None:
        self._lobby.sweep(now)
        self.crowd.sweep(now)

    def abort(self) -> None:
        self._lobby.abort()
        self.crowd.abort()
