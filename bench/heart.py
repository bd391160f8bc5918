"""How long an event loop is held."""

import asyncio
import time

HEARTBEAT = 0.005


class Heart:
    """Measures how long the event loop did not come round, and how long it worked meanwhile.

    On a busy machine the process may wait for a processor: that is no work of its own.
    """

    def __init__(self) -> None:
        self.longest = 0.0
        self.work = 0.0
        self._beating = asyncio.create_task(self._beat())

    async def _beat(self) -> None:
        while True:
            began, worked = time.monotonic(), time.thread_time()
            await asyncio.sleep(HEARTBEAT)
            self.longest = max(self.longest, time.monotonic() - began - HEARTBEAT)
            self.work = max(self.work, time.thread_time() - worked)

    def stop(self) -> None:
        self._beating.cancel()
