"""Where device numbers come from: one file or package per source."""

from typing import Protocol

from podgpu.model import Report


class Source(Protocol):
    """Gives one Report per cycle. A failure is a `fault` in the report, never an exception."""

    name: str
    demo: bool

    async def read(self) -> Report: ...

    async def release(self, seconds: float) -> bool:
        """Let go of the hardware for a while; True once nothing of it is held any more."""

    async def close(self) -> None: ...
