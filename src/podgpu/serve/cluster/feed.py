"""What the server needs of the cluster's loop."""

from collections.abc import Mapping, Sequence
from typing import Protocol

from podgpu.model import Cluster, Snapshot


class ClusterFeed(Protocol):
    @property
    def ready(self) -> bool:
        """Whether the first round is over, whatever it found."""

    @property
    def cluster(self) -> Cluster:
        """The newest one published: the same object until there is a newer one."""

    @property
    def interval(self) -> float:
        """Seconds between two readings of a node."""

    @property
    def seconds_behind(self) -> float:
        """Seconds since the states of the nodes were last updated."""

    async def full(self, name: str) -> Snapshot:
        """Fetch a node's snapshot with everything in it. Raises UserError."""

    async def changed(self, seen: Cluster) -> Cluster:
        """Wait until a newer cluster than that is published, and return it."""


class UsageHistory(Protocol):
    async def of(self, namespace: str, pod: str, seconds: int) -> Mapping[str, Sequence[tuple[float, float]]]:
        """Fetch a pod's use over so many seconds: pairs of time and value by quantity. Raises UserError."""
