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
from podgpu.agent.roster import Roster
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
        self._roster = Roster(pod_sources)
        self._processes = processes
        self._workloads = workloads
        self._pod_labels = frozenset(pod_labels)
        self._to_close = to_close
        self._systems = sharing.systems()
        self._patience = interval / 2
        self._meter = Meter(interval)
        self._accounts = Accounts()
        self._holders: dict[int, Holder] = {}
        self._allocated: Allocated | None = None
        self._reading: asyncio.Task[Allocated] | None = None
        self._known_workloads: dict[str, Workload] = {}
        self._resolving: asyncio.Task[dict[str, Workload]] | None = None
        self._broken: PartStatus | None = None

    async def run(self) -> None:
        """Keep the pod lists fresh until cancelled."""
        await self._roster.run()

    async def close(self) -> None:
        for task in (self._resolving, self._reading):
            if task:
                task.cancel()
        for part in self._to_close:
            await part.close()

    @property
    def errors(self) -> Counter[tuple[str, str]]:
        """What the parts have counted so far, by part and reason."""
        parts: list[PodSource | Allocations] = [*self._roster.sources]
        if self._allocations:
            parts.append(self._allocations)
        return Counter(
            {(part.name, reason): count for part in parts for reason, count in part.errors.items()}
        )

    async def attribute(self, snapshot: Snapshot) -> Snapshot:
        """Return the snapshot with everything booked."""
        devices = [device for device in snapshot.devices if device.fault is None]
        pods = self._roster.pods()
        inventory = await self._inventory(snapshot.devices, pods)
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
            # An id that nobody understands may be that of a card which does not speak.
            unclaimed=sharing.unclaimed(inventory, self._systems) if _all_speak(snapshot.devices) else (),
            parts=(*snapshot.parts, *self._statuses()),
        )

    async def _inventory(self, devices: Sequence[Device], pods: tuple[Pod, ...]) -> Inventory:
        allocated = await self._latest_allocated(self._allocations) if self._allocations else None
        if allocated is None or self._allocations is None:
            return Inventory(devices, (), (), pods)
        if (self._allocations.status().age_seconds or 0.0) > MAP_SECONDS:
            return Inventory(devices, (), allocated.allocatable, pods)
        return Inventory(devices, allocated.devices, allocated.allocatable, pods)

    async def _latest_allocated(self, allocations: Allocations) -> Allocated | None:
        """A kubelet that does not answer must not hold up the numbers: what it told last will do meanwhile."""
        if self._reading is None:
            self._reading = asyncio.create_task(allocations.read())
        done, _ = await asyncio.wait({self._reading}, timeout=self._patience)
        if done:
            reading, self._reading = self._reading, None
            self._allocated = reading.result()
        return self._allocated

    def _named_holders(self, devices: list[Device], pods: tuple[Pod, ...]) -> dict[int, Holder]:
        processes = [process for device in devices for process in device.processes]
        listed = {process.pid for process in processes if process.kinds}
        found = self._processes.holders({one.pid for one in processes}) if self._processes else {}
        directory = Directory(pods)
        return {pid: self._named(holder, directory, is_listed=pid in listed) for pid, holder in found.items()}

    def _named(self, holder: Holder, directory: Directory, *, is_listed: bool) -> Holder:
        """A process that has just ended is still whose it was a cycle ago, whoever has its PID by now.

        One that lives keeps its name when its pod is no longer listed: it may outlive a pod deleted by force.
        """
        before = self._holders.get(holder.pid)
        if before is None:
            return directory.named(holder)
        if holder.reason == "exited" or not (is_listed or holder.start_time == before.start_time):
            return directory.named(before)
        named = directory.named(holder)
        if named.container is None and (holder.start_time, holder.owner) == (before.start_time, before.owner):
            return msgspec.structs.replace(named, container=before.container)
        return named

    def _sheets(self, devices: list[Device], claims: tuple[Claim, ...]) -> list[tuple[Sheet, int]]:
        visible = self._processes is not None and self._processes.fault() is None
        sheets = []
        for device in devices:
            interval = self._meter.interval(device) or Interval(elapsed_us=0)
            is_power_known = interval.energy_mj is not None and not interval.is_gap
            sheet = book(device, interval, claims, self._holders, visible=visible)
            sheets.append((sheet, interval.elapsed_us if is_power_known else 0))
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
            patience = min(WORKLOAD_SECONDS, self._patience)
            done, _ = await asyncio.wait({self._resolving}, timeout=patience)
            error = self._resolving.exception() if done else None
            self._broken = _broken("workloads", error) if error else None
            if done and not error:
                self._known_workloads = self._resolving.result()
        uids = {pod.uid for pod in pods}
        return {uid: one for uid, one in self._known_workloads.items() if uid in uids}

    def _statuses(self) -> list[PartStatus]:
        statuses = [self._allocations.status()] if self._allocations else []
        statuses += [source.status() for source in self._roster.sources]
        if self._processes:
            fault = self._processes.fault()
            statuses.append(PartStatus(name="procfs", up=fault is None, fault=fault))
        return [*statuses, self._broken] if self._broken else statuses


def _all_speak(devices: Sequence[Device]) -> bool:
    return bool(devices) and all(device.fault is None for device in devices)


def _broken(name: str, error: BaseException) -> PartStatus:
    return PartStatus(name=name, up=False, fault=Fault(reason="attribution_error", detail=repr(error)))
