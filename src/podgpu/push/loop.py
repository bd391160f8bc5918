"""Pushes the newest snapshot once per interval. At most one request waits: a newer snapshot says all that it says."""

import asyncio
import gzip
import random
import time
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from typing import Protocol

from podgpu.model import Fault, PartStatus, Snapshot
from podgpu.push.collector import CollectorClient, Undelivered
from podgpu.push.environment import Destination

FIRST_PAUSE = 1.0
LONGEST_PAUSE = 30.0
LAST_SECONDS = 1.0  # for the last push: the agent has few seconds to end

Encode = Callable[[Snapshot], bytes]


class Feed(Protocol):
    @property
    def snapshot(self) -> Snapshot: ...
    async def changed(self, seen: Snapshot) -> Snapshot: ...


class Push:
    """A part of the agent: a collector that is down, slow or refuses costs nothing but its own state."""

    name = "otlp"

    def __init__(
        self,
        feed: Feed,
        destination: Destination,
        encode: Encode,
        collector: CollectorClient,
        *,
        first_pause: float = FIRST_PAUSE,
    ) -> None:
        self.errors: Counter[str] = Counter()
        self._feed = feed
        self._destination = destination
        self._encode = encode
        self._collector = collector
        self._first_pause = first_pause
        self._fault: Fault | None = Fault(reason="starting")
        self._failing_since = time.monotonic()
        self._good_at: float | None = None
        self._seconds = 0.0
        self._delivered = feed.snapshot  # the agent's first holds nothing yet

    async def run(self) -> None:
        """Push until cancelled."""
        seen = self._feed.snapshot
        while True:
            due = time.monotonic() + self._destination.interval
            seen = await self._feed.changed(seen)
            # In a thread, since thousands of series take long to encode and to compress.
            await self._deliver(seen, await asyncio.to_thread(self._body, seen), due)
            await asyncio.sleep(max(0.0, due - time.monotonic()))

    def status(self) -> PartStatus:
        now = time.monotonic()
        fault = self._fault
        return PartStatus(
            name=self.name,
            outgoing=True,
            up=fault is None,
            fault=fault
            and Fault(reason=fault.reason, detail=fault.detail, seconds=now - self._failing_since),
            duration_seconds=self._seconds,
            age_seconds=None if self._good_at is None else now - self._good_at,
        )

    async def close(self) -> None:
        """Push what was read since the last push, as far as the collector takes it at once. Comes after `run`."""
        last = self._feed.snapshot
        if last is not self._delivered:
            with suppress(TimeoutError):
                async with asyncio.timeout(LAST_SECONDS):
                    await self._attempt(last, await asyncio.to_thread(self._body, last))
        await self._collector.close()

    def _body(self, snapshot: Snapshot) -> bytes:
        body = self._encode(snapshot)
        return gzip.compress(body, 6, mtime=0) if self._destination.gzip else body

    async def _deliver(self, snapshot: Snapshot, body: bytes, due: float) -> None:
        """Try until it is delivered, refused for good, or the next snapshot is due."""
        pause = self._first_pause
        while (failure := await self._attempt(snapshot, body)) and failure.again:
            wait = max(failure.pause, pause * random.uniform(0.5, 1.0))  # noqa: S311 - spreads the agents' retries
            if time.monotonic() + wait >= due:
                return
            await asyncio.sleep(wait)
            pause = min(2 * pause, LONGEST_PAUSE)

    async def _attempt(self, snapshot: Snapshot, body: bytes) -> Undelivered | None:
        began = time.monotonic()
        try:
            await self._collector.send(body)
        except Undelivered as failure:
            self._failed(failure)
            return failure
        finally:
            self._seconds = time.monotonic() - began
        self._fault, self._good_at, self._delivered = None, time.monotonic(), snapshot
        return None

    def _failed(self, failure: Undelivered) -> None:
        self.errors[failure.reason] += 1
        if self._fault is None or self._fault.reason != failure.reason:
            self._failing_since = time.monotonic()
        self._fault = Fault(reason=failure.reason, detail=failure.detail)
