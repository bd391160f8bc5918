"""Who is on this node, according to Kubernetes. Every part is optional and reports its own state."""

from collections import Counter
from typing import Protocol

from podgpu.model import PartStatus, Pod


class PodSource(Protocol):
    """Keeps a list of the node's pods up to date. A failure keeps the last list and shows in `status`."""

    name: str

    async def run(self) -> None:
        """Work until cancelled. Failures of the outside world are not raised."""

    def pods(self) -> tuple[Pod, ...] | None:
        """Return the newest list, or None before the first.

        It is the same tuple for as long as nothing changes.
        """

    def status(self) -> PartStatus: ...

    @property
    def errors(self) -> Counter[str]:
        """Count what went wrong or was skipped, by reason."""
