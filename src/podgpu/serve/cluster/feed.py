"""What the server needs of the cluster's loop."""

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

from podgpu.model import Cluster, Snapshot, Statement
from podgpu.model.fit import FitStatement


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


class Fits(Protocol):
    async def made(self, now: float) -> FitStatement:
        """Advise by the last two weeks. Raises UserError, and ReasonedError if the store has no answer."""


class Bills(Protocol):
    async def of(self, query: Mapping[str, str], now: float) -> tuple[Statement, Mapping[str, Any]]:
        """Make the bill that a query asks for, and say by what it can be made again.

        Raises UserError if the question makes no sense, and ReasonedError if the store has no answer.
        """
