"""Who is on this node. Every part is optional; each says what state it is in."""

from collections import Counter
from typing import Protocol

from podgpu.model import PartStatus, Pod


class PodSource(Protocol):
    """Keeps a list of the node's pods fresh. A failure keeps the last list and shows in `status`."""

    name: str

    async def run(self) -> None:
        """Work until cancelled; never raises for what goes wrong outside."""

    def pods(self) -> tuple[Pod, ...] | None:
        """Return the newest list, or None as long as there was none."""

    def status(self) -> PartStatus: ...

    @property
    def errors(self) -> Counter[str]:
        """What went wrong or was skipped so far, by reason."""
