"""What the agent asks about the node's pods and processes; a source may bring answers of its own."""

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

from podgpu.model import Allocation, DynamicAllocation, Fault, Holder, PartStatus, Pod, SwitchLog, Workload


class Allocated(Protocol):
    @property
    def devices(self) -> tuple[Allocation, ...]: ...
    @property
    def dynamic(self) -> tuple[DynamicAllocation, ...]: ...
    @property
    def allocatable(self) -> tuple[tuple[str, str], ...]: ...


class Allocations(Protocol):
    """What the kubelet gave out. A failure returns what was known last."""

    name: str

    async def read(self) -> Allocated: ...
    def status(self) -> PartStatus: ...
    @property
    def errors(self) -> Counter[str]: ...


class Pods(Protocol):
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


@runtime_checkable
class Rescans(Protocol):
    """A list of pods that is made again only now and then."""

    def look_again(self) -> None:
        """Make it soon."""


class Processes(Protocol):
    """Whose a process is, by its PID."""

    name: str

    def holders(self, pids: Iterable[int], seen_at: Mapping[int, float]) -> dict[int, Holder]:
        """`seen_at` is when a PID was last seen on a card, in monotonic seconds: who began later has it by chance."""

    def mps(self, pid: int) -> str | None:
        """Return the host's directory where it meets others of MPS, or `root` if root's daemon runs it there."""

    def fault(self) -> Fault | None: ...


class Workloads(Protocol):
    name: str

    async def resolve(self, pods: Iterable[Pod]) -> dict[str, Workload]: ...


class SwitchReader(Protocol):
    name: str
    errors: Counter[str]

    async def read(self, cards: Mapping[str, int]) -> dict[str, SwitchLog]:
        """Return the logs of these cards, each with its minor number. Those of others are closed."""

    def shut(self, cards: Iterable[str]) -> None:
        """Close the logs of these cards, and stay ready to open them again."""

    def status(self) -> PartStatus: ...
    async def release(self, seconds: float) -> bool: ...
    async def close(self) -> None: ...


@dataclass(frozen=True, slots=True)
class Residents:
    allocations: Allocations
    pods: Pods
    processes: Processes
    workloads: Workloads
    switches: SwitchReader
