"""Pauses: after failures, and after work that a flood of events causes."""

import asyncio
import random
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from podgpu.kube.api import ApiFault

SLICE_SECONDS = 0.01


class Backoff:
    """Pauses double from `first` seconds to `longest`. Each is spread, so that nodes do not return in step."""

    def __init__(self, first: float, longest: float) -> None:
        self._first = first
        self._longest = longest
        self._failures = 0

    def pause(self, longest: float | None = None) -> float:
        """Return how long to wait after one more failure. `longest` replaces the usual limit."""
        doubled = self._first * 2.0 ** min(self._failures, 16)
        self._failures += 1
        return spread(min(doubled, longest or self._longest))

    def pause_after(self, fault: ApiFault, forbidden: float) -> float:
        """Wait at least as long as the server asks. A missing right may be granted, but not soon."""
        return max(self.pause(forbidden if fault.reason == "forbidden" else None), fault.retry_after)

    def reset(self) -> None:
        self._failures = 0


def spread(pause: float) -> float:
    return pause * random.uniform(0.5, 1.0)  # noqa: S311 - it spreads load, it guards nothing


class CpuThrottle:
    """Sleeps for as long as it has worked, so that a flood of events takes at most half a core."""

    def __init__(self) -> None:
        self._worked = 0.0

    @asynccontextmanager
    async def work(self) -> AsyncIterator[None]:
        began = time.monotonic()
        try:
            yield
        finally:
            self._worked += time.monotonic() - began
        if self._worked >= SLICE_SECONDS:
            worked, self._worked = self._worked, 0.0
            await asyncio.sleep(worked)
