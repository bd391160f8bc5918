"""The newest of something, and a way to wait for the next one."""

import asyncio
from typing import Generic, TypeVar

from podgpu.model import Snapshot

T = TypeVar("T")


class Feed(Generic[T]):
    """A loop publishes; readers take `newest`, or wait for `changed`."""

    def __init__(self, first: T) -> None:
        self._newest = first
        self._is_complete = False
        self._news = asyncio.Event()

    @property
    def newest(self) -> T:
        """The same object until there is a newer one."""
        if not self._is_complete:
            self._newest, self._is_complete = self._completed(self._newest), True
        return self._newest

    def _completed(self, newest: T) -> T:
        """Do what is done only if a reader asks for it. Nobody may before the next one comes."""
        return newest

    def publish(self, newest: T) -> None:
        self._newest, self._is_complete = newest, False
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
        return self.newest
