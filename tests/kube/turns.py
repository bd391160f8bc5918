"""Counts work by turns of the event loop."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager


class Turns:
    """Counts what is handled before the event loop comes round."""

    def __init__(self) -> None:
        self.most = 0
        self._handled = 0

    def count(self) -> None:
        self._handled += 1
        self.most = max(self.most, self._handled)

    async def run(self) -> None:
        while True:
            self._handled = 0
            await asyncio.sleep(0)


@asynccontextmanager
async def running(turns: Turns) -> AsyncIterator[None]:
    task = asyncio.create_task(turns.run())
    await asyncio.sleep(0)
    try:
        yield
    finally:
        task.cancel()
