"""The newest of something, and a way to wait for the next one."""

import asyncio
import threading
from dataclasses import dataclass
from typing import Generic, TypeVar

from podgpu.model import Snapshot

T = TypeVar("T")


@dataclass(slots=True)
class _Published(Generic[T]):
    value: T
    is_complete: bool = False


class Feed(Generic[T]):
    """A loop publishes; readers, in other threads too, take `newest` or wait for `changed`."""

    def __init__(self, first: T) -> None:
        self._published = _Published(first)
        self._news = asyncio.Event()
        self._completing = threading.Lock()

    @property
    def newest(self) -> T:
        """The same object until there is a newer one."""
        found = self._published  # a newer one may come meanwhile
        if not found.is_complete:
            with self._completing:
                if not found.is_complete:  # another thread may have completed it meanwhile
                    found.value = self._completed(found.value)
                    found.is_complete = True
        return found.value

    def _completed(self, newest: T) -> T:
        """Do what is done only if a reader asks for it. Nobody may before the next one comes."""
        return newest

    def publish(self, newest: T) -> None:
        self._published = _Published(newest)
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
