"""Work in slices, so that whoever sends more than anyone can read takes no time from others."""

import asyncio
import time
from collections.abc import Iterator
from contextlib import contextmanager

SLICE_SECONDS = 0.01


class Pace:
    """Rests for as long as it has worked: half of a core is all that a flood of events can have."""

    def __init__(self) -> None:
        self._worked = 0.0

    @contextmanager
    def work(self) -> Iterator[None]:
        began = time.monotonic()
        try:
            yield
        finally:
            self._worked += time.monotonic() - began

    async def rest(self) -> None:
        if self._worked >= SLICE_SECONDS:
            worked, self._worked = self._worked, 0.0
            await asyncio.sleep(worked)
