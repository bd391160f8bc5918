"""What the server needs of the agent."""

from typing import Protocol

from podgpu.model import Snapshot


class Node(Protocol):
    @property
    def ready(self) -> bool:
        """Whether the first attempt to read the node is over, whatever it found."""

    def snapshot(self) -> Snapshot:
        """Cheap, and never older than three intervals. The same object until there is a newer one."""

    async def release(self, seconds: float) -> bool:
        """Let go of the driver for that long. True when the sampler is gone."""
