"""Lets go of nodes that were replaced, bit by bit: to free a thousand snapshots at once takes a tenth of a second."""

import asyncio
from collections.abc import Iterable

from podgpu.model import ClusterNode

PAUSE_SECONDS = 0.01
AT_ONCE = 20


class Retired:
    def __init__(self) -> None:
        self._nodes: list[ClusterNode] = []
        self._next: asyncio.TimerHandle | None = None

    def add(self, before: Iterable[ClusterNode], now: Iterable[ClusterNode]) -> None:
        """Take those that are not there any more."""
        kept = {id(one) for one in now}
        self._nodes += [one for one in before if id(one) not in kept]
        if self._nodes and self._next is None:
            self._wait()

    def close(self) -> None:
        if self._next is not None:
            self._next.cancel()
        self._nodes.clear()

    def _wait(self) -> None:
        self._next = asyncio.get_running_loop().call_later(PAUSE_SECONDS, self._drop)

    def _drop(self) -> None:
        self._next = None
        del self._nodes[:AT_ONCE]
        if self._nodes:
            self._wait()
