import asyncio
from collections.abc import Callable


async def until(true: Callable[[], object], seconds: float = 5.0) -> None:
    async with asyncio.timeout(seconds):
        while not true():  # noqa: ASYNC110 - what is waited for is not ours to signal
            await asyncio.sleep(0.005)
