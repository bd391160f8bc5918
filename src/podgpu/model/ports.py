"""What the agent asks about its node besides readings. `kube`, `host` and `sources` fulfil these protocols."""

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

from podgpu.model import (
    Allocation,
    ChargedCgroup,
    DynamicAllocation,
    Fault,
    Holder,
    PartStatus,
    Pod,
    PoolDevice,
    ResourceClaim,
    SpotLog,
    SwitchLog,
    Workload,
)


class Closable(Protocol):
    async def close(self) -> None: ...


class AllocationLists(Protocol):
    """`awaited` are pods, by namespace and name, that the kubelet has not listed since it restarted."""

    @property
    def devices(self) -> tuple[Allocation, ...]: ...
    @property
    def dynamic(self) -> tuple[DynamicAllocation, ...]: ...
    @property
    def allocatable(self) -> tuple[tuple[str, str], ...]: ...
    @property
    def awaited(self) -> frozenset[tuple[str, str]]: ...


class CountingPart(Protocol):
    """A part by its name, and what went wrong or was skipped, counted by reason."""

    name: str

    @property
    def errors(self) -> Counter[str]: ...


class AllocationSource(CountingPart, Protocol):
    """The kubelet's allocations. A failure returns what was known last."""

    async def read(self) -> AllocationLists: ...
    def status(self) -> PartStatus: ...


@runtime_checkable
class Steady(Protocol):
    """A source of allocations that knows when only a pod can change them."""

    def is_steady(self) -> bool:
        """Whether the next answer will be the last one again, unless a pod starts or ends."""


class PodSource(CountingPart, Protocol):
    """Keeps a list of the node's pods up to date. A failure keeps the last list and shows in `status`."""

    async def run(self) -> None:
        """Work until cancelled. Failures of the outside world are not raised."""

    def pods(self) -> tuple[Pod, ...] | None:
        """Return the newest list, or None before the first.

        It is the same tuple for as long as nothing changes.
        """

    def status(self) -> PartStatus: ...


@runtime_checkable
class Rescannable(Protocol):
    """A list of pods that is made again only now and then."""

    def look_again(self) -> None:
        """Make it soon."""


class ResourceClaimSource(CountingPart, Protocol):
    """DRA: resource claims and the devices behind them. `status` is None as long as no pod has a claim."""

    async def run(self) -> None: ...
    def follow(self, pods: Iterable[Pod], listed: Iterable[DynamicAllocation]) -> None: ...
    def claims(self) -> tuple[ResourceClaim, ...]: ...
    def devices(self) -> tuple[PoolDevice, ...]: ...
    def status(self) -> PartStatus | None: ...


class ProcessSource(Protocol):
    """The owner of a process, by its PID."""

    name: str

    def holders(self, pids: Iterable[int], seen_at: Mapping[int, float]) -> dict[int, Holder]:
        """`seen_at` is when a PID was last seen on a card, in monotonic seconds.

        A process that began later only reuses the PID.
        """

    def mps(self, holders: Iterable[Holder]) -> Mapping[int, str | None]:
        """Return the host's MPS pipe directory of each process, or `root` if root's daemon runs it there, by PID.

        Only so many processes are looked at in a call. The others are left out, and have their turn later.
        """

    def fault(self) -> Fault | None: ...


class ChargeSource(Protocol):
    """Memory of cards that the kernel charges to containers."""

    def charged(self, lines: Iterable[str]) -> tuple[ChargedCgroup, ...] | None:
        """`lines` are the cgroups of processes on cards. None where nothing is charged to anybody."""


class EndedProcessSource(CountingPart, Protocol):
    """The owners of processes that ended between two readings."""

    async def run(self) -> None: ...
    def expect(self) -> None:
        """Watch for new processes: the samples name some that /proc no longer shows."""

    def holder(self, pid: int, seen_at: float) -> Holder | None: ...
    def is_disputed(self, pid: int) -> bool:
        """Say whether processes of different owners had the PID one after the other."""


class OutsiderNames(Protocol):
    """Names of what runs on the node besides pods."""

    def title(self, holder: Holder) -> str:
        """Name a process's owner: `docker/web`, `slurm/1234`, `user/alice`."""


class WorkloadSource(Protocol):
    name: str

    async def resolve(self, pods: Iterable[Pod]) -> dict[str, Workload]: ...


class SwitchLogSource(CountingPart, Protocol):
    async def read(self, cards: Mapping[str, int]) -> dict[str, SwitchLog]:
        """Return the logs of these cards, each with its minor number. Those of others are closed."""

    async def check(self, cards: Mapping[str, int]) -> dict[str, list[SpotLog]]:
        """Read the logs of these cards at random moments from now on, and return what was read since the last time."""

    def status(self) -> PartStatus: ...
    async def release(self, seconds: float) -> bool: ...
    async def close(self) -> None: ...


@dataclass(frozen=True, slots=True)
class NodeSources:
    """What a source brings along if it knows the node's pods and processes itself."""

    allocations: AllocationSource
    pods: PodSource
    processes: ProcessSource
    workloads: WorkloadSource
    switches: SwitchLogSource
