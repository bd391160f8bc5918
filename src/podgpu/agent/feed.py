"""The newest snapshot, and a way to wait for the next one."""

import asyncio

from podgpu.model import Snapshot


class Feed:
    """The loop publishes; whoever shows something reads `snapshot`, or waits for `changed`."""

    def __init__(self, first: Snapshot) -> None:
        self.snapshot = first
        self._news = asyncio.Event()

    def publish(self, snapshot: Snapshot) -> None:
        self.snapshot = snapshot
        news, self._news = self._news, asyncio.Event()
        news.set()

    async def changed(self, seen: Snapshot) -> Snapshot:
        """Return the newest snapshot once it is another than `seen`. A slow waiter misses those in between."""
        while self.snapshot is seen:
            await self._news.wait()
        return self.snapshot
