"""Attributes GPUs: brings together what Kubernetes, the kernel and the cards report, once per cycle.

Each part is optional. Without pods there are claims by name; without the kubelet there are processes; without
processes there are claims alone.
"""

import asyncio
import time
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from functools import partial
from pathlib import Path

from msgspec import Struct
from msgspec.structs import replace

from podgpu import sharing
from podgpu.agent.books import NodeBooks
from podgpu.agent.charges import MemoryCharges
from podgpu.agent.counters import IntervalMeter
from podgpu.agent.inventory import (
    Disambiguation,
    InventoryCollector,
    NodeClaims,
)
from podgpu.agent.join import Join
from podgpu.agent.owners import MANY_PROCESSES, Owners, PodSources, WorkloadNames
from podgpu.agent.remembered_claims import RememberedClaims
from podgpu.agent.switch_log import SwitchLogs
from podgpu.agent.unplaced import UnplacedTime
from podgpu.ledger.book import Checked, book
from podgpu.ledger.cycle import NO_ENERGY, CycleBooks, Interval
from podgpu.ledger.usage import servers
from podgpu.model import (
    Allocation,
    Card,
    Claim,
    ContainerRef,
    Device,
    Holder,
    Lanes,
    PartStatus,
    Pod,
    SharingStatus,
    UnplacedHolding,
    Workload,
)
from podgpu.model.ports import (
    AllocationSource,
    ChargeSource,
    Closable,
    EndedProcessSource,
    OutsiderNames,
    PodSource,
    ProcessSource,
    ResourceClaimSource,
    WorkloadSource,
)
from podgpu.sharing.inventory import Host, Inventory
from podgpu.supervise import QUIET_SECONDS, LatestReply, Supervisor, Work

SAVE_SECONDS = 0.2  # how long a cycle waits for the disk
MANY_IDS = 2000  # with more of them, claims are found in a thread, so that pages are served meanwhile
MANY_CHARACTERS = 64 << 10  # of annotations


class Attributed(Struct, frozen=True, kw_only=True):
    """What attribution adds to a snapshot."""

    cards: tuple[Card, ...] = ()
    pods: tuple[Pod, ...] = ()
    unclaimed: tuple[Allocation, ...] = ()
    unplaced: tuple[UnplacedHolding, ...] = ()
    sharing: tuple[SharingStatus, ...] = ()
    parts: tuple[PartStatus, ...] = ()


class Attribution:
    def __init__(
        self,
        *,
        interval: float,
        allocations: AllocationSource | None = None,
        dynamics: ResourceClaimSource | None = None,
        host: Host | None = None,
        ratios: Sequence[float] = (),
        namespaces: Sequence[str] = (),
        state: Path | None = None,
        pod_sources: Sequence[PodSource] = (),
        processes: ProcessSource | None = None,
        outsiders: OutsiderNames | None = None,
        books_outsiders: bool = False,
        workloads: WorkloadSource | None = None,
        pod_labels: Sequence[str] = (),
        switch_logs: SwitchLogs | None = None,
        recent: EndedProcessSource | None = None,
        charges: ChargeSource | None = None,
        to_close: Sequence[Closable] = (),
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """`namespaces` are those of sharing systems themselves, besides the usual ones.

        `state` is a folder of the agent's own. With `books_outsiders`, on a machine without Kubernetes, what runs there
        is booked like containers.
        """
        self._patience = interval / 2
        self._inventory = InventoryCollector(
            patience=self._patience,
            allocations=allocations,
            dynamics=dynamics,
            host=host,
            ratios=ratios,
            namespaces=namespaces,
            clock=clock,
        )
        self._clock = clock
        self._is_brisk = interval < QUIET_SECONDS
        self._recent = recent
        self._owners = Owners(processes, outsiders, books_outsiders=books_outsiders, recent=recent)
        self._pods = PodSources(pod_sources)
        self._workloads = WorkloadNames(workloads, self._patience) if workloads else None
        self._pod_labels = frozenset(pod_labels)
        self._switch_logs = switch_logs
        self._charges = MemoryCharges(charges) if charges else None
        self._to_close = [*to_close, *([switch_logs] if switch_logs else [])]
        self._intervals = IntervalMeter(interval)
        self._books = NodeBooks()
        self._unplaced = UnplacedTime(interval)
        self._disambiguation = Disambiguation()
        self._remembered = RememberedClaims(state)
        self._saved = LatestReply(self._remembered.save, min(SAVE_SECONDS, self._patience))
        self._claims = NodeClaims(Inventory(()))
        self._unknown_ids: set[Allocation] = set()
        self._errors: Counter[tuple[str, str]] = Counter()

    async def run(self, supervisor: Supervisor) -> None:
        """Keep the pod lists and the claims fresh until cancelled."""
        works: list[tuple[str, Work]] = [(source.name, source.run) for source in self._pods.sources]
        if self._recent:
            works.append((self._recent.name, self._recent.run))
        await supervisor.run([*works, *self._inventory.works()])

    async def close(self) -> None:
        await self._inventory.close()
        await self._saved.close()
        if self._workloads:
            await self._workloads.close()
        for part in self._to_close:
            await part.close()

    async def release(self, seconds: float) -> bool:
        """Release the driver for a while, as far as anything here holds it."""
        return await self._switch_logs.release(seconds) if self._switch_logs else True

    @property
    def errors(self) -> Counter[tuple[str, str]]:
        """What the parts have counted so far, by part and reason."""
        counts: Counter[tuple[str, str]] = self._inventory.errors + self._errors
        for part in (*self._pods.sources, self._recent, self._switch_logs):
            if part:
                counts.update({(part.name, reason): count for reason, count in part.errors.items()})
        return counts

    @property
    def watched(self) -> Callable[[], Mapping[str, bool]] | None:
        """Names the cards whose log of context switches is read throughout. None if logs are not read."""
        logs = self._switch_logs
        return (lambda: logs.open) if logs else None

    def lanes(self, card: str) -> Lanes | None:
        """Return who was at work on it in the last full minute; None where no log of context switches says so."""
        books = self._books.cards.get(card)
        return books.lanes() if books else None

    def forget(self, cards: Iterable[str]) -> None:
        cards = tuple(cards)
        self._intervals.forget(cards)
        self._books.forget(cards)
        if self._switch_logs:
            self._switch_logs.forget(cards)

    async def attribute(
        self,
        devices: Sequence[Device],
        wall: float,
        *,
        reported: Sequence[Allocation] = (),
        reporter: str = "",
    ) -> Attributed:
        """Book everything. `reported` is what the source of the numbers, the `reporter`, says about who holds what."""
        pods, watches = self._pods.pods(), self._pods.watches()
        if self._switch_logs:
            devices = await self._switch_logs.watch(devices)
        able = self._able(devices)
        answering = [device for device in able if device.fault is None]
        holders = await self._owners.find(answering, pods, self._pods.lists())
        signs = self._signs(devices, holders) if watches else None
        inventory = await self._inventory.take(devices, pods, reported, reporter, signs, watches)
        if not all(map(self._owners.is_listed, holders.values())):
            self._pods.look_again()
        claims = await self._find_claims(inventory, able, holders)
        self._count(claims.unclaimed)
        served = {device.gpu.uuid: servers(device, holders, lambda: claims.pods) for device in answering}
        await asyncio.sleep(0)  # thousands of processes take long: others get their turn
        booked = await self._book(answering, claims, holders, served)
        self._books.post(booked, self._clock(), wall)
        await asyncio.sleep(0)
        involved = _involved(pods, claims.claims, holders.values())
        workloads = await self._workloads.of(involved) if self._workloads else {}
        charges = await self._charges.compare(answering, holders, self._owners.named) if self._charges else {}
        started_at = {pod.uid: pod.started_at for pod in involved}
        excused = claims.excused(served, holders)
        join = Join(inventory.vgpus, workloads, started_at, excused, charges, claims.unsettled)
        return Attributed(
            cards=tuple(
                join.card(device, self._books.cards.get(device.gpu.uuid), claims.by_card.get(device.gpu.uuid, ()))
                for device in able
            ),
            pods=tuple(self._shown(pod, workloads) for pod in involved),
            unclaimed=claims.unclaimed,
            unplaced=self._unplaced.count(claims.unplaced, self._clock()),
            sharing=claims.sharing,
            parts=tuple(self._statuses()),
        )

    def _signs(self, devices: Iterable[Device], holders: Mapping[int, Holder]) -> object:
        """Return what changes when a pod starts or ends; None, if the kubelet must be asked in every cycle.

        A process shows that its pod runs. A pod that holds a card without using it shows only in a watched list.
        """
        if not self._is_brisk:
            return None
        pids = frozenset(process.pid for device in devices for process in device.processes)
        return self._pods.lists(), pids, {pid: (who.start_time, who.owner) for pid, who in holders.items()}

    async def _find_claims(
        self, inventory: Inventory, devices: Sequence[Device], holders: Mapping[int, Holder]
    ) -> NodeClaims:
        """Return the same claims as before, unless the inventory has changed or what processes show of it."""
        last = self._claims
        is_new = inventory is not last.inventory
        asked = last.ambiguous
        if is_new and _is_long(inventory):
            asked = await asyncio.to_thread(sharing.ambiguous_claims, inventory)
            await asyncio.to_thread(sharing.holdings, inventory)  # an inventory keeps them
        elif is_new:
            asked = sharing.ambiguous_claims(inventory)
        settled = self._disambiguation.settle(asked, devices, holders)
        seen = self._disambiguation.place(sharing.holdings(inventory), devices, holders)
        if is_new or settled != last.settled or seen != last.seen:
            before = self._remembered.before(last.claims)
            find = partial(NodeClaims, inventory, asked, settled, before, seen)
            self._claims = await asyncio.to_thread(find) if _is_long(inventory) else find()
            self._remembered.keep(self._claims.claims, inventory.pods)
        if self._remembered.is_changed:
            await self._saved.get()
        return self._claims

    def _able(self, devices: Sequence[Device]) -> list[Device]:
        """Note on each device whether the owners of its processes can be looked up."""
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

    async def _book(
        self,
        devices: Sequence[Device],
        claims: NodeClaims,
        holders: Mapping[int, Holder],
        served: Mapping[str, Collection[int]],
    ) -> list[tuple[CycleBooks, Interval]]:
        """`served` are the PIDs of MPS servers by card. All devices answer."""
        cycles: list[tuple[CycleBooks, Interval]] = []
        logs = self._switch_logs
        waiting = 0
        for device in devices:
            uuid = device.gpu.uuid
            interval = self._intervals.interval(device) or Interval(elapsed_us=0)
            books = self._books.cards.get(uuid)
            last = books.cycle if books else None
            if last and last.unnamed_us != interval.unnamed_us:
                interval = replace(interval, unnamed_us=last.unnamed_us)
            known = (device, interval, claims.by_card.get(uuid, ()), holders, served[uuid])
            estimates = last.estimates if last else NO_ENERGY
            evidence = logs.evidence(device, interval) if logs else None
            checks = logs.checks(uuid) if logs else None
            checked = None
            if checks is not None:
                checked = Checked(logs=checks, corrections=books.corrections() if books else {})
            cycles.append((book(*known, evidence, estimates, checked), interval))
            waiting += len(device.processes)
            if waiting > MANY_PROCESSES:
                waiting = 0
                await asyncio.sleep(0)
        if logs:
            logs.note(cycle for cycle, _ in cycles)
        return cycles

    def _shown(self, pod: Pod, workloads: Mapping[str, Workload]) -> Pod:
        """Keep the labels that are allowed, and no annotations, which may hold secrets."""
        labels = {key: value for key, value in pod.labels.items() if key in self._pod_labels}
        shown = replace(pod, labels=labels, annotations={}, scheduler="", workload=workloads.get(pod.uid))
        return self._owners.placed(shown)

    def _statuses(self) -> list[PartStatus]:
        statuses = (self._owners.status, self._workloads.status if self._workloads else None)
        own = [status for status in statuses if status]
        self._errors.update((status.name, status.fault.reason) for status in own if status.fault)
        if self._switch_logs:
            own.append(self._switch_logs.status())
        return [*self._inventory.statuses(), *(source.status() for source in self._pods.sources), *own]


def _is_long(inventory: Inventory) -> bool:
    """Whether it takes long to read: plugins may offer any number of ids, and tenants write long annotations."""
    notes = sum(len(note) for pod in inventory.pods for note in pod.annotations.values())
    return len(inventory.allocations) + len(inventory.allocatable) > MANY_IDS or notes > MANY_CHARACTERS


def _involved(pods: tuple[Pod, ...], claims: Iterable[Claim], holders: Iterable[Holder]) -> list[Pod]:
    containers: list[ContainerRef] = [claim.container for claim in claims]
    containers += [holder.container for holder in holders if holder.container]
    uids = {container.pod_uid for container in containers}
    return sorted((pod for pod in pods if pod.uid in uids), key=lambda pod: (pod.namespace, pod.name, pod.uid))
