"""The newest of something, and a way to wait for the next one."""

import asyncio
from typing import Generic, TypeVar

T = TypeVar("T")


class Feed(Generic[T]):
    """A loop publishes; whoever shows something reads `newest`, or waits for `changed`."""

    def __init__(self, first: T) -> None:
        self.newest = first
        self._news = asyncio.Event()

    def publish(self, newest: T) -> None:
        self.newest = newest
        news, self._news = self._news, asyncio.Event()
        news.set()

    async def changed(self, seen: T) -> T:
        """Return the newest once it is another than `seen`. A slow waiter misses those in between."""
        while self.newest is seen:
            await self._news.wait()
        return self.newest
