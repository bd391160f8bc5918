"""Keeps a part of a process going, whatever happens in it."""

import asyncio
from collections import Counter
from typing import Protocol

from podgpu import log

CRASH_SECONDS = 30.0  # until a part that crashed is started again


class Running(Protocol):
    """A part that keeps itself fresh."""

    @property
    def name(self) -> str: ...
    async def run(self) -> None: ...
    @property
    def errors(self) -> Counter[str]: ...


async def kept_going(part: Running) -> None:
    """Run the part until it ends. A part that crashes is a bug, but it must not take the others down with it."""
    while True:
        try:
            return await part.run()
        except Exception as error:
            part.errors["crashed"] += 1
            log.error("a part crashed", part=part.name, error=repr(error))
            await asyncio.sleep(CRASH_SECONDS)
