"""Whose GPU it is: brings together what Kubernetes, the kernel and the cards say, once a cycle.

Each part is optional. Without pods there are claims by name; without the kubelet there are processes; without
processes there are claims alone.
"""

import asyncio
import time
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Protocol

import msgspec

from podgpu import sharing
from podgpu.agent.accounts import Accounts
from podgpu.agent.meter import Meter
from podgpu.kube import PodSource
from podgpu.ledger.account import Interval, Sheet
from podgpu.ledger.book import book
from podgpu.ledger.names import Directory
from podgpu.model import Allocation, Claim, Device, Fault, Holder, PartStatus, Pod, Snapshot, Workload
from podgpu.sharing.inventory import Inventory

MAP_SECONDS = 600.0  # how long the last map is believed while the kubelet is away
WORKLOAD_SECONDS = 0.2  # how long a cycle waits for names of workloads; the rest comes with the next


class Closable(Protocol):
    async def close(self) -> None: ...


class Allocated(Protocol):
    @property
    def devices(self) -> tuple[Allocation, ...]: ...
    @property
    def allocatable(self) -> tuple[tuple[str, str], ...]: ...


class Allocations(Protocol):
    """What the kubelet gave out. A failure returns what was known last."""

    name: str

    async def read(self) -> Allocated: ...
    def status(self) -> PartStatus: ...
    @property
    def errors(self) -> Counter[str]: ...


class Processes(Protocol):
    """Whose a process is, by its PID."""

    def holders(self, pids: Iterable[int]) -> dict[int, Holder]: ...
    def fault(self) -> Fault | None: ...


class Workloads(Protocol):
    async def resolve(self, pods: Iterable[Pod]) -> dict[str, Workload]: ...


class Attribution:
    def __init__(
        self,
        *,
        interval: float,
        allocations: Allocations | None = None,
        pod_sources: Sequence[PodSource] = (),
        processes: Processes | None = None,
        workloads: Workloads | None = None,
        pod_labels: Sequence[str] = (),
        to_close: Sequence[Closable] = (),
    ) -> None:
        self._allocations = allocations
        self._pod_sources = pod_sources
        self._processes = processes
        self._workloads = workloads
        self._pod_labels = frozenset(pod_labels)
        self._to_close = to_close
        self._systems = sharing.systems()
        self._meter = Meter(interval)
        self._accounts = Accounts()
        self._holders: dict[int, Holder] = {}
        self._known_workloads: dict[str, Workload] = {}
        self._resolving: asyncio.Task[dict[str, Workload]] | None = None

    async def run(self) -> None:
        """Keep the pod lists fresh until cancelled."""
        async with asyncio.TaskGroup() as group:
            for source in self._pod_sources:
                group.create_task(source.run())

    async def close(self) -> None:
        if self._resolving:
            self._resolving.cancel()
        for part in self._to_close:
            await part.close()

    @property
    def errors(self) -> Counter[tuple[str, str]]:
        """What the parts have counted so far, by part and reason."""
        parts: list[PodSource | Allocations] = [*self._pod_sources]
        if self._allocations:
            parts.append(self._allocations)
        return Counter(
            {(part.name, reason): count for part in parts for reason, count in part.errors.items()}
        )

    async def attribute(self, snapshot: Snapshot) -> Snapshot:
        """Return the snapshot with everything booked."""
        devices = [device for device in snapshot.devices if device.fault is None]
        pods = self._pods()
        inventory = await self._inventory(devices, pods)
        claims = sharing.claims(inventory, self._systems)
        self._holders = self._named_holders(devices, pods)
        sheets = self._sheets(devices, claims)
        self._accounts.post(sheets, time.monotonic(), snapshot.taken_at)
        involved = self._involved(pods, claims)
        return msgspec.structs.replace(
            snapshot,
            claims=claims,
            holders=tuple(self._holders[pid] for pid in sorted(self._holders)),
            bookings=tuple(self._accounts.bookings()),
            remainders=tuple(self._accounts.remainders()),
            balances=tuple(self._accounts.balances()),
            pods=tuple(self._shown(pod) for pod in involved),
            workloads=await self._workloads_of(involved),
            unclaimed=sharing.unclaimed(inventory, self._systems),
            parts=(*snapshot.parts, *self._statuses()),
        )

    def _pods(self) -> tuple[Pod, ...]:
        """Take the best list there is: of a source that works, else of one that did."""
        working = [source for source in self._pod_sources if source.status().up]
        for source in (*working, *self._pod_sources):
            pods = source.pods()
            if pods is not None:
                return pods
        return ()

    async def _inventory(self, devices: list[Device], pods: tuple[Pod, ...]) -> Inventory:
        if self._allocations is None:
            return Inventory(devices, (), (), pods)
        allocated = await self._allocations.read()
        if (self._allocations.status().age_seconds or 0.0) > MAP_SECONDS:
            return Inventory(devices, (), allocated.allocatable, pods)
        return Inventory(devices, allocated.devices, allocated.allocatable, pods)

    def _named_holders(self, devices: list[Device], pods: tuple[Pod, ...]) -> dict[int, Holder]:
        """A process that has just ended is still whose it was a cycle ago."""
        pids = {process.pid for device in devices for process in device.processes}
        found = self._processes.holders(pids) if self._processes else {}
        directory = Directory(pods)
        return {
            pid: directory.named(self._holders[pid])
            if holder.reason == "exited" and pid in self._holders
            else directory.named(holder)
            for pid, holder in found.items()
        }

    def _sheets(self, devices: list[Device], claims: tuple[Claim, ...]) -> list[tuple[Sheet, int]]:
        visible = self._processes is not None and self._processes.fault() is None
        sheets = []
        for device in devices:
            interval = self._meter.interval(device) or Interval(elapsed_us=0)
            sheets.append(
                (book(device, interval, claims, self._holders, visible=visible), interval.elapsed_us)
            )
        return sheets

    def _involved(self, pods: tuple[Pod, ...], claims: tuple[Claim, ...]) -> list[Pod]:
        uids = {claim.container.pod_uid for claim in claims}
        uids |= {holder.container.pod_uid for holder in self._holders.values() if holder.container}
        return sorted(
            (pod for pod in pods if pod.uid in uids), key=lambda pod: (pod.namespace, pod.name, pod.uid)
        )

    def _shown(self, pod: Pod) -> Pod:
        """Labels only as far as they are allowed; annotations may hold secrets and stay here."""
        labels = {key: value for key, value in pod.labels.items() if key in self._pod_labels}
        return msgspec.structs.replace(pod, labels=labels, annotations={})

    async def _workloads_of(self, pods: list[Pod]) -> Mapping[str, Workload]:
        """Ask in the background: a slow API server must not hold up the numbers."""
        if self._workloads and (self._resolving is None or self._resolving.done()):
            self._resolving = asyncio.create_task(self._workloads.resolve(pods))
        if self._resolving:
            done, _ = await asyncio.wait({self._resolving}, timeout=WORKLOAD_SECONDS)
            if done and not self._resolving.exception():
                self._known_workloads = self._resolving.result()
        uids = {pod.uid for pod in pods}
        return {uid: one for uid, one in self._known_workloads.items() if uid in uids}

    def _statuses(self) -> list[PartStatus]:
        statuses = [self._allocations.status()] if self._allocations else []
        statuses += [source.status() for source in self._pod_sources]
        if self._processes:
            fault = self._processes.fault()
            statuses.append(PartStatus(name="procfs", up=fault is None, fault=fault))
        return statuses
