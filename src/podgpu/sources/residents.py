"""The pods and processes of the node, for a source that brings its own."""

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Protocol

from podgpu.model import Allocation, DynamicAllocation, Fault, Holder, PartStatus, Pod, Workload


class Given(Protocol):
    @property
    def devices(self) -> tuple[Allocation, ...]: ...
    @property
    def dynamic(self) -> tuple[DynamicAllocation, ...]: ...
    @property
    def allocatable(self) -> tuple[tuple[str, str], ...]: ...


class Allocations(Protocol):
    name: str

    async def read(self) -> Given: ...
    def status(self) -> PartStatus: ...
    @property
    def errors(self) -> Counter[str]: ...


class Pods(Protocol):
    name: str

    async def run(self) -> None: ...
    def pods(self) -> tuple[Pod, ...] | None: ...
    def status(self) -> PartStatus: ...
    @property
    def errors(self) -> Counter[str]: ...


class Processes(Protocol):
    name: str

    def holders(self, pids: Iterable[int], seen_at: Mapping[int, float]) -> dict[int, Holder]: ...
    def mps(self, pid: int) -> str | None: ...
    def fault(self) -> Fault | None: ...


class Workloads(Protocol):
    name: str

    async def resolve(self, pods: Iterable[Pod]) -> dict[str, Workload]: ...


@dataclass(frozen=True, slots=True)
class Residents:
    allocations: Allocations
    pods: Pods
    processes: Processes
    workloads: Workloads
