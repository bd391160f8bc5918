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
from podgpu.agent.attendance import MOST_CARDS
from podgpu.agent.meter import Meter
from podgpu.agent.roster import Roster
from podgpu.agent.stock import Allocations, Dynamics, Stock
from podgpu.kube import PodSource
from podgpu.ledger.account import Interval, Sheet
from podgpu.ledger.book import book
from podgpu.ledger.mps import with_servers
from podgpu.ledger.names import Directory
from podgpu.model import (
    Allocation,
    Claim,
    ContainerRef,
    Device,
    Fault,
    Holder,
    PartStatus,
    Pod,
    Snapshot,
    Workload,
)
from podgpu.sharing.inventory import Host

WORKLOAD_SECONDS = 0.2  # how long a cycle waits for names of workloads; the rest comes with the next
OUTSIDE = ("host", "container")


class Closable(Protocol):
    async def close(self) -> None: ...


class Processes(Protocol):
    """Whose a process is, by its PID."""

    def holders(self, pids: Iterable[int]) -> dict[int, Holder]: ...
    def fault(self) -> Fault | None: ...


class Outsiders(Protocol):
    """Who is on the node besides pods."""

    def title(self, holder: Holder) -> str:
        """Name a process's owner: `docker/web`, `slurm/1234`, `user/alice`."""


class Workloads(Protocol):
    async def resolve(self, pods: Iterable[Pod]) -> dict[str, Workload]: ...


class Attribution:
    def __init__(
        self,
        *,
        interval: float,
        allocations: Allocations | None = None,
        dynamics: Dynamics | None = None,
        host: Host | None = None,
        ratios: Sequence[float] = (),
        pod_sources: Sequence[PodSource] = (),
        processes: Processes | None = None,
        outsiders: Outsiders | None = None,
        books_outsiders: bool = False,
        workloads: Workloads | None = None,
        pod_labels: Sequence[str] = (),
        to_close: Sequence[Closable] = (),
        most_cards: int = MOST_CARDS,
    ) -> None:
        """With `books_outsiders`, on a machine without Kubernetes, who is outside has accounts like containers."""
        self._systems = sharing.systems()
        self._patience = interval / 2
        self._stock = Stock(
            patience=self._patience,
            systems=self._systems,
            allocations=allocations,
            dynamics=dynamics,
            host=host,
            ratios=ratios,
        )
        self._outsiders = outsiders
        self._books_outsiders = books_outsiders
        self._roster = Roster(pod_sources)
        self._processes = processes
        self._workloads = workloads
        self._pod_labels = frozenset(pod_labels)
        self._to_close = to_close
        self._meter = Meter(interval, most_cards)
        self._accounts = Accounts(most_cards)
        self._holders: dict[int, Holder] = {}
        self._unknown_ids: set[Allocation] = set()
        self._unknown_id_count = 0
        self._known_workloads: dict[str, Workload] = {}
        self._resolving: asyncio.Task[dict[str, Workload]] | None = None
        self._broken: PartStatus | None = None

    async def run(self) -> None:
        """Keep the pod lists and the claims fresh until cancelled."""
        async with asyncio.TaskGroup() as group:
            group.create_task(self._roster.run())
            group.create_task(self._stock.run())

    async def close(self) -> None:
        self._stock.close()
        if self._resolving:
            self._resolving.cancel()
        for part in self._to_close:
            await part.close()

    @property
    def errors(self) -> Counter[tuple[str, str]]:
        """What the parts have counted so far, by part and reason."""
        counts = self._stock.errors
        for part in self._roster.sources:
            counts.update({(part.name, reason): count for reason, count in part.errors.items()})
        if self._unknown_id_count:
            counts["sharing", "unknown_id"] = self._unknown_id_count
        return counts

    async def attribute(
        self, snapshot: Snapshot, *, told: Sequence[Allocation] = (), sees_processes: bool = True
    ) -> Snapshot:
        """Return the snapshot with everything booked.

        `told` is what the source of the numbers says of who holds what. A source that sees no processes leaves
        claimants to be taken for the users.
        """
        devices = [device for device in snapshot.devices if device.fault is None]
        pods = self._roster.pods()
        inventory = await self._stock.take(snapshot.devices, pods, told)
        claims = sharing.claims(inventory, self._systems)
        self._holders = self._named_holders(devices, pods)
        for device in devices:
            self._holders = with_servers(device, self._holders, claims)
        sheets = self._sheets(devices, claims, sees_processes=sees_processes)
        silent = [device.gpu.uuid for device in snapshot.devices if device.fault]
        self._accounts.post(sheets, time.monotonic(), snapshot.taken_at, silent)
        involved = self._involved(pods, claims)
        # An id that nobody understands may be that of a card which does not speak.
        unclaimed = sharing.unclaimed(inventory, self._systems) if _all_speak(snapshot.devices) else ()
        self._count(unclaimed)
        return msgspec.structs.replace(
            snapshot,
            claims=claims,
            holders=tuple(self._holders[pid] for pid in sorted(self._holders)),
            bookings=tuple(self._accounts.bookings()),
            remainders=tuple(self._accounts.remainders()),
            balances=tuple(self._accounts.balances()),
            pods=tuple(self._shown(pod) for pod in involved),
            workloads=await self._workloads_of(involved),
            unclaimed=unclaimed,
            sharing=sharing.statuses(inventory, claims, self._systems),
            vgpus=inventory.vgpus,
            parts=(*snapshot.parts, *self._statuses(sees_processes=sees_processes)),
        )

    def _count(self, unclaimed: tuple[Allocation, ...]) -> None:
        """Count each id once, for as long as it is there."""
        self._unknown_id_count += len(set(unclaimed) - self._unknown_ids)
        self._unknown_ids = set(unclaimed)

    def _named_holders(self, devices: list[Device], pods: tuple[Pod, ...]) -> dict[int, Holder]:
        processes = [process for device in devices for process in device.processes]
        listed = {process.pid for process in processes if process.kinds}
        found = self._processes.holders({one.pid for one in processes}) if self._processes else {}
        directory = Directory(pods)
        named = {
            pid: self._named(holder, directory, is_listed=pid in listed) for pid, holder in found.items()
        }
        return {pid: self._titled(holder) for pid, holder in named.items()}

    def _titled(self, holder: Holder) -> Holder:
        if self._outsiders is None or holder.kind not in OUTSIDE:
            return holder
        title = self._outsiders.title(holder)
        booked = ContainerRef("", "", title) if title and self._books_outsiders else holder.container
        return msgspec.structs.replace(holder, title=title, container=booked)

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

    def _sheets(
        self, devices: list[Device], claims: tuple[Claim, ...], *, sees_processes: bool
    ) -> list[tuple[Sheet, int | None]]:
        visible = sees_processes and self._processes is not None and self._processes.fault() is None
        sheets: list[tuple[Sheet, int | None]] = []
        for device in devices:
            interval = self._meter.interval(device) or Interval(elapsed_us=0)
            is_power_known = interval.energy_mj is not None and not interval.is_gap
            sheet = book(device, interval, claims, self._holders, visible=visible)
            sheets.append((sheet, interval.energy_us if is_power_known else None))
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

    def _statuses(self, *, sees_processes: bool) -> list[PartStatus]:
        """Without processes to look up, /proc is no part of it."""
        statuses = self._stock.statuses()
        statuses += [source.status() for source in self._roster.sources]
        if self._processes and sees_processes:
            fault = self._processes.fault()
            statuses.append(PartStatus(name="procfs", up=fault is None, fault=fault))
        return [*statuses, self._broken] if self._broken else statuses


def _all_speak(devices: Sequence[Device]) -> bool:
    return bool(devices) and all(device.fault is None for device in devices)


def _broken(name: str, error: BaseException) -> PartStatus:
    return PartStatus(name=name, up=False, fault=Fault(reason="attribution_error", detail=repr(error)))
