"""What the server needs of the agent."""

from typing import Protocol

from podgpu.model import Snapshot


class Node(Protocol):
    @property
    def ready(self) -> bool:
        """Whether the first attempt to read the node is over, whatever it found."""

    @property
    def snapshot(self) -> Snapshot:
        """The newest one published: the same object until there is a newer one."""

    async def changed(self, seen: Snapshot) -> Snapshot:
        """Wait until a newer snapshot than that is published, and return it."""

    async def release(self, seconds: float) -> bool:
        """Let go of the driver for that long. True when the sampler is gone."""
