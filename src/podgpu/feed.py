"""The newest of something, and a way to wait for the next one."""

import asyncio
from typing import Generic, TypeVar

from podgpu.model import Snapshot

T = TypeVar("T")


class Feed(Generic[T]):
    """A loop publishes; readers take `newest`, or wait for `changed`."""

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


class SnapshotFeed(Feed[Snapshot]):
    @property
    def snapshot(self) -> Snapshot:
        """The newest one, the same object until there is a newer one."""
        return self.newest
