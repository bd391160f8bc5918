"""Questions to others, each asked once for all who wait for its answer."""

import asyncio
from collections.abc import Awaitable, Callable, Hashable
from typing import Generic, TypeVar

from podgpu.supervise import brief

T = TypeVar("T")


class Questions(Generic[T]):
    def __init__(self) -> None:
        self._open: dict[Hashable, asyncio.Task[T]] = {}

    async def ask(self, key: Hashable, asking: Callable[[], Awaitable[T]]) -> T:
        """Wait for the answer to this question, and ask it if nobody else waits for it. Raises what `asking` raises."""
        task = self._open.get(key)
        if task is None:
            task = self._open[key] = brief(_answer(asking))
            task.add_done_callback(lambda done: self._end(key, done))
        # Others may wait for the same, so a client that leaves does not end it.
        return await asyncio.shield(task)

    def close(self) -> None:
        for task in self._open.values():
            task.cancel()

    def _end(self, key: Hashable, task: asyncio.Task[T]) -> None:
        del self._open[key]
        if not task.cancelled():
            task.exception()  # taken note of, even if everybody who waited has left


async def _answer(asking: Callable[[], Awaitable[T]]) -> T:
    return await asking()
