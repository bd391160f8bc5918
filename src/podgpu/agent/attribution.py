"""Whose GPU it is: brings together what Kubernetes, the kernel and the cards report, once per cycle.

Each part is optional. Without pods there are claims by name; without the kubelet there are processes; without
processes there are claims alone.
"""

import asyncio
import time
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property, partial
from typing import Protocol

from msgspec import Struct
from msgspec.structs import replace

from podgpu import sharing
from podgpu.agent.accounts import Accounts
from podgpu.agent.join import Join
from podgpu.agent.lookout import Lookout
from podgpu.agent.meter import Meter
from podgpu.agent.owners import Outsiders, Owners
from podgpu.agent.roster import Roster
from podgpu.agent.stock import Dynamics, Stock
from podgpu.agent.witness import Witness
from podgpu.kube import PodSource
from podgpu.ledger.account import Interval, Sheet
from podgpu.ledger.book import book
from podgpu.ledger.mps import PodName, servers
from podgpu.model import (
    Allocation,
    Card,
    Claim,
    ContainerRef,
    Device,
    Fault,
    Holder,
    PartStatus,
    Pod,
    SharingStatus,
    Workload,
)
from podgpu.sharing.alternatives import Alternatives
from podgpu.sharing.inventory import Host, Inventory
from podgpu.sources.residents import Allocations, Processes, Workloads

MANY_IDS = 2000  # with more of them, rights are found in a thread, so that the pages go on
WORKLOAD_SECONDS = 0.2  # how long a cycle waits for names of workloads; the rest comes with the next


class Closable(Protocol):
    async def close(self) -> None: ...


class Attributed(Struct, frozen=True, kw_only=True):
    """What attribution adds to a snapshot."""

    cards: tuple[Card, ...] = ()
    pods: tuple[Pod, ...] = ()
    unclaimed: tuple[Allocation, ...] = ()
    sharing: tuple[SharingStatus, ...] = ()
    parts: tuple[PartStatus, ...] = ()


class Rights:
    """Who was given what, found once for as long as nothing about it changes.

    `settled` has the readings of the alternatives that processes have shown to be right.
    """

    def __init__(
        self,
        inventory: Inventory,
        systems: Sequence[sharing.SharingSystem],
        alternatives: tuple[Alternatives, ...],
        settled: Mapping[Alternatives, int],
    ) -> None:
        self.inventory = inventory
        self.alternatives = alternatives
        self.settled = settled
        self.claims = sharing.claims(inventory, systems, settled)
        undecided = [one for one in alternatives if one not in settled]
        self.sharing = sharing.statuses(inventory, self.claims, systems, undecided)
        self._systems = systems

    @cached_property
    def by_card(self) -> Mapping[str, list[Claim]]:
        found: dict[str, list[Claim]] = {}
        for claim in self.claims:
            found.setdefault(claim.gpu, []).append(claim)
        return found

    @cached_property
    def pods(self) -> frozenset[PodName]:
        return frozenset((claim.container.namespace, claim.container.pod) for claim in self.claims)

    @cached_property
    def unclaimed(self) -> tuple[Allocation, ...]:
        """An id that nobody understands may be that of a card which does not answer."""
        devices = self.inventory.devices
        if not devices or any(device.fault for device in devices):
            return ()
        return sharing.unclaimed(self.inventory, self._systems)


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
        lookout: Lookout | None = None,
        to_close: Sequence[Closable] = (),
    ) -> None:
        """With `books_outsiders`, on a machine without Kubernetes, whoever is outside has accounts like containers."""
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
        self._owners = Owners(processes, outsiders, books_outsiders=books_outsiders)
        self._roster = Roster(pod_sources)
        self._workloads = workloads
        self._pod_labels = frozenset(pod_labels)
        self._lookout = lookout
        self._to_close = [*to_close, *([lookout] if lookout else [])]
        self._meter = Meter(interval)
        self._accounts = Accounts()
        self._witness = Witness()
        self._rights = Rights(Inventory(()), self._systems, (), {})
        self._unknown_ids: set[Allocation] = set()
        self._errors: Counter[tuple[str, str]] = Counter()
        self._known_workloads: dict[str, Workload] = {}
        self._resolving: asyncio.Task[dict[str, Workload]] | None = None
        self._broken: PartStatus | None = None

    async def run(self) -> None:
        """Keep the pod lists and the claims fresh until cancelled."""
        async with asyncio.TaskGroup() as group:
            group.create_task(self._roster.run())
            group.create_task(self._stock.run())

    async def close(self) -> None:
        await self._stock.close()
        if self._resolving:
            self._resolving.cancel()
            await asyncio.wait({self._resolving})
        for part in self._to_close:
            await part.close()

    async def release(self, seconds: float) -> bool:
        """Let go of the driver for a while, as far as anything here holds it."""
        return await self._lookout.release(seconds) if self._lookout else True

    @property
    def errors(self) -> Counter[tuple[str, str]]:
        """What the parts have counted so far, by part and reason."""
        counts: Counter[tuple[str, str]] = self._stock.errors + self._errors
        for part in self._roster.sources:
            counts.update({(part.name, reason): count for reason, count in part.errors.items()})
        if look := self._lookout:
            counts.update({(look.name, reason): count for reason, count in look.errors.items()})
        return counts

    def forget(self, cards: Iterable[str]) -> None:
        cards = tuple(cards)
        self._meter.forget(cards)
        self._accounts.forget(cards)
        if self._lookout:
            self._lookout.forget(cards)

    async def attribute(
        self, devices: Sequence[Device], wall: float, *, told: Sequence[Allocation] = (), told_by: str = ""
    ) -> Attributed:
        """Book everything. `told` is what the source of the numbers, `told_by`, says about who holds what."""
        pods = self._roster.pods()
        if self._lookout:
            devices = await self._lookout.watch(devices)
        inventory = await self._stock.take(devices, pods, told, told_by)
        able = self._able(devices)
        holders = self._owners.find([device for device in able if device.fault is None], pods)
        rights = await self._rights_to(inventory, able, holders)
        self._count(rights.unclaimed)
        self._accounts.post(self._sheets(able, rights, holders), time.monotonic(), wall)
        involved = _involved(pods, rights.claims, holders.values())
        workloads = await self._workloads_of(involved)
        join = Join(inventory.vgpus, workloads, {pod.uid: pod.started_at for pod in involved})
        return Attributed(
            cards=tuple(
                join.card(
                    device, self._accounts.cards.get(device.gpu.uuid), rights.by_card.get(device.gpu.uuid, ())
                )
                for device in able
            ),
            pods=tuple(self._shown(pod, workloads) for pod in involved),
            unclaimed=rights.unclaimed,
            sharing=rights.sharing,
            parts=tuple(self._statuses()),
        )

    async def _rights_to(
        self, inventory: Inventory, devices: Sequence[Device], holders: Mapping[int, Holder]
    ) -> Rights:
        """Return the same rights as before, unless the inventory has changed or what processes show of it."""
        last = self._rights
        is_new = inventory is not last.inventory
        asked = sharing.alternatives(inventory, self._systems) if is_new else last.alternatives
        settled = self._witness.settle(asked, devices, holders)
        if is_new or settled != last.settled:
            find = partial(_found, inventory, self._systems, asked, settled)
            many = len(inventory.allocations) + len(inventory.allocatable) > MANY_IDS
            self._rights = await asyncio.to_thread(find) if many else find()
        return self._rights

    def _able(self, devices: Sequence[Device]) -> list[Device]:
        """Add to what the source can do that the owners of processes can be looked up."""
        if not self._owners.are_known:
            return list(devices)
        return [
            replace(device, ability=replace(device.ability, knows_owners=device.ability.sees_processes))
            for device in devices
        ]

    def _count(self, unclaimed: tuple[Allocation, ...]) -> None:
        """Count each id once, for as long as it is there."""
        if fresh := len(set(unclaimed) - self._unknown_ids):
            self._errors[sharing.PART, "unknown_id"] += fresh
        self._unknown_ids = set(unclaimed)

    def _sheets(
        self, devices: Sequence[Device], rights: Rights, holders: Mapping[int, Holder]
    ) -> list[tuple[Sheet, Interval]]:
        sheets: list[tuple[Sheet, Interval]] = []
        for device in devices:
            if device.fault is None:
                interval = self._meter.interval(device) or Interval(elapsed_us=0)
                books = self._accounts.cards.get(device.gpu.uuid)
                if books and books.sheet:
                    interval = replace(interval, unnamed_us=books.sheet.unnamed_us)
                claims = rights.by_card.get(device.gpu.uuid, ())
                serve = servers(device, holders, lambda: rights.pods)
                evidence = self._lookout.evidence(device, interval) if self._lookout else None
                sheets.append((book(device, interval, claims, holders, serve, evidence), interval))
        if self._lookout:
            self._lookout.note(sheet for sheet, _ in sheets)
        return sheets

    def _shown(self, pod: Pod, workloads: Mapping[str, Workload]) -> Pod:
        """Labels only as far as they are allowed; annotations may hold secrets and stay here."""
        labels = {key: value for key, value in pod.labels.items() if key in self._pod_labels}
        shown = replace(pod, labels=labels, annotations={}, workload=workloads.get(pod.uid))
        return self._owners.placed(shown)

    async def _workloads_of(self, pods: list[Pod]) -> Mapping[str, Workload]:
        """Ask in the background: a slow API server must not hold up the numbers."""
        if self._workloads is None:
            return {}
        if self._resolving is None or self._resolving.done():
            self._resolving = asyncio.create_task(self._workloads.resolve(pods))
        done, _ = await asyncio.wait({self._resolving}, timeout=min(WORKLOAD_SECONDS, self._patience))
        error = self._resolving.exception() if done else None
        self._broken = _broken(self._workloads.name, error) if error else None
        if done and not error:
            self._known_workloads = self._resolving.result()
        return self._known_workloads

    def _statuses(self) -> list[PartStatus]:
        own = [status for status in (self._owners.status, self._broken) if status]
        for status in own:
            if status.fault:
                self._errors[status.name, status.fault.reason] += 1
        if self._lookout:
            own.append(self._lookout.status())
        return [*self._stock.statuses(), *(source.status() for source in self._roster.sources), *own]


def _found(
    inventory: Inventory,
    systems: Sequence[sharing.SharingSystem],
    asked: tuple[Alternatives, ...],
    settled: Mapping[Alternatives, int],
) -> Rights:
    rights = Rights(inventory, systems, asked, settled)
    _ = rights.unclaimed  # which takes as long
    return rights


def _involved(pods: tuple[Pod, ...], claims: Iterable[Claim], holders: Iterable[Holder]) -> list[Pod]:
    containers: list[ContainerRef] = [claim.container for claim in claims]
    containers += [holder.container for holder in holders if holder.container]
    uids = {container.pod_uid for container in containers}
    return sorted(
        (pod for pod in pods if pod.uid in uids), key=lambda pod: (pod.namespace, pod.name, pod.uid)
    )


def _broken(name: str, error: BaseException) -> PartStatus:
    return PartStatus(name=name, up=False, fault=Fault(reason="attribution_error", detail=repr(error)))
