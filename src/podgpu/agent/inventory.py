"""What there is to share on this node, gathered once per cycle, and the claims of each container on it.

No part is waited for longer than half a cycle: a kubelet that does not answer must not hold up the numbers, and its
last answer counts until then. Claims are resolved again only when something about them changes.
"""

import asyncio
import time
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cached_property, partial
from typing import TypeAlias, TypeVar

from podgpu import sharing
from podgpu.agent.listed_pods import ListedPods
from podgpu.ledger.usage import PodName
from podgpu.model import (
    Allocation,
    Claim,
    ContainerRef,
    Device,
    DynamicAllocation,
    Excused,
    Holder,
    PartStatus,
    Pod,
)
from podgpu.model.kube import grouped
from podgpu.model.ports import AllocationLists, AllocationSource, ResourceClaimSource, Steady
from podgpu.sharing.floors import AllocatedHolding
from podgpu.sharing.inventory import READINGS, Host, Inventory, Observation
from podgpu.sharing.system import AmbiguityKey, AmbiguousClaims
from podgpu.supervise import CalmReply, Work

Row = TypeVar("Row", Allocation, DynamicAllocation)

NOTHING = Observation()
BELIEVED_SECONDS = 600.0  # how long the last allocations count while the kubelet is away, and no watch works


def _facts(device: Device) -> tuple[object, ...]:
    """Return what sharing systems use of a card. Its other readings change all the time."""
    return (
        device.gpu,
        device.fault is None,
        [instance.mig for instance in device.instances],
        [reading for reading in device.readings if reading.metric in READINGS],
        [process.kinds for process in device.processes],
    )


def _of_pods(rows: tuple[Row, ...], pods: frozenset[PodName]) -> tuple[Row, ...]:
    """Return the rows of these pods; the same tuple, if that is all of them."""
    left = tuple(row for row in rows if (row.namespace, row.pod) in pods)
    return rows if len(left) == len(rows) else left


def _steadiness(source: AllocationSource) -> Callable[[object], bool]:
    if isinstance(source, Steady):  # asked once: such a check takes long
        return lambda _: source.is_steady()
    return lambda _: False


class InventoryCollector:
    def __init__(
        self,
        *,
        patience: float,
        allocations: AllocationSource | None = None,
        dynamics: ResourceClaimSource | None = None,
        host: Host | None = None,
        ratios: Sequence[float] = (),
        namespaces: Sequence[str] = (),
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._allocations = allocations
        self._dynamics = dynamics
        self._ratios = ratios
        self._namespaces = namespaces
        self._allocated = (
            CalmReply(allocations.read, patience, clock, _steadiness(allocations)) if allocations else None
        )
        # What containers use, as some systems write it down, changes all the time.
        self._observed = (
            CalmReply(partial(self._observe, host), patience, clock, lambda seen: seen == NOTHING) if host else None
        )
        self._host_errors: Counter[str] = Counter()
        self._listed_pods = ListedPods()
        self._inputs: tuple[object, ...] = ()  # all that the inventory rests on
        self._inventory = Inventory(())

    async def take(
        self,
        devices: Sequence[Device],
        pods: tuple[Pod, ...],
        reported: Sequence[Allocation] = (),
        reporter: str = "",
        signs: object = None,
        watches: Sequence[tuple[Pod, ...]] = (),
    ) -> Inventory:
        """Return the same inventory as before if nothing in it has changed.

        `signs` change when a pod starts or ends; None if nothing would show that, so that the kubelet must be asked.
        `reported` is what the source of the numbers, the `reporter`, says about who holds what. It counts if no kubelet
        can be believed. `watches` are the pods of each watch that works: a pod that they no longer have holds nothing.
        """
        allocated = await self._allocated.get(signs) if self._allocated else None
        seen = await self._observed.get(signs) if self._observed else None
        believed = allocated if self._is_believed(is_watched=bool(watches) and not reported) else None
        living = self._living(believed, watches) if believed else frozenset()
        dynamic = _of_pods(believed.dynamic, living) if believed else ()
        if self._dynamics:
            self._dynamics.follow(pods, dynamic)
        make = partial(
            Inventory,
            allocations=_of_pods(believed.devices, living) if believed else tuple(reported),
            allocatable=allocated.allocatable if allocated else (),
            pods=pods,
            dynamic=dynamic,
            resource_claims=self._dynamics.claims() if self._dynamics else (),
            pool_devices=self._dynamics.devices() if self._dynamics else (),
            vgpus=seen.vgpus if seen else (),
            ratios=self._ratios,
            source=self._allocations.name if believed and self._allocations else reporter,
            namespaces=self._namespaces,
        )
        inputs = (*map(_facts, devices), make.keywords)
        if inputs != self._inputs:
            self._inputs = inputs
            self._inventory = make(devices, counted=self._inventory.counted)
        return self._inventory

    def works(self) -> list[tuple[str, Work]]:
        """The tasks that keep it fresh."""
        return [(self._dynamics.name, self._dynamics.run)] if self._dynamics else []

    async def close(self) -> None:
        for latest in (self._allocated, self._observed):
            if latest:
                await latest.close()

    def statuses(self) -> list[PartStatus]:
        statuses = [self._allocations.status()] if self._allocations else []
        dynamics = self._dynamics.status() if self._dynamics else None
        return [*statuses, dynamics] if dynamics else statuses

    @property
    def errors(self) -> Counter[tuple[str, str]]:
        counted = [(part.name, part.errors) for part in (self._allocations, self._dynamics) if part]
        counted.append((sharing.PART, self._host_errors))
        return Counter({(name, reason): count for name, errors in counted for reason, count in errors.items()})

    @property
    def _age(self) -> float | None:
        """How long ago the kubelet last answered."""
        return self._allocations.status().age_seconds if self._allocations else None

    def _is_believed(self, *, is_watched: bool) -> bool:
        """A pod keeps its devices for as long as it lives, which a watch shows."""
        return (age := self._age) is not None and (is_watched or age <= BELIEVED_SECONDS)

    def _living(self, lists: AllocationLists, watches: Sequence[tuple[Pod, ...]]) -> frozenset[PodName]:
        asked = self._allocated.seconds_since_asked if self._allocated else 0.0
        is_answered = (age := self._age) is not None and age <= asked
        return self._listed_pods.living(lists, watches, is_answered=is_answered)

    async def _observe(self, host: Host) -> Observation:
        seen = await asyncio.to_thread(sharing.observed, host)
        self._host_errors.update(seen.errors)
        return seen


Name: TypeAlias = tuple[str, str, str]  # namespace, pod, container
Seen: TypeAlias = dict[Name, dict[str, set[str]]]  # the cards a container runs on, by its pod's UID


class NodeClaims:
    """All claims on the node's cards.

    `settled` has the options of ambiguous claims that processes have shown to be right. `before` are the last claims.
    `seen` are the places where containers run whose annotations do not name all that they have.
    """

    def __init__(
        self,
        inventory: Inventory,
        ambiguous: tuple[AmbiguousClaims, ...] = (),
        settled: Mapping[AmbiguousClaims, int] = {},
        before: tuple[Claim, ...] = (),
        seen: Mapping[ContainerRef, frozenset[str]] = {},
    ) -> None:
        self.inventory = inventory
        self.ambiguous = ambiguous
        self.settled = settled
        self.seen = seen
        self.claims = sharing.claims(inventory, settled, before, seen)
        undecided = [claims for claims in ambiguous if claims not in settled]
        contested = {claims.container for claims in undecided}
        unplaced = sharing.unplaced(inventory, self.claims)
        self.unplaced = unplaced if inventory.devices else ()
        doubtful = [holding for holding in unplaced if holding.container not in contested]
        self.sharing = sharing.statuses(inventory, self.claims, undecided, doubtful)
        self.unclaimed = self._unclaimed()

    @cached_property
    def by_card(self) -> Mapping[str, list[Claim]]:
        return grouped(self.claims, lambda claim: claim.gpu)

    @cached_property
    def pods(self) -> frozenset[PodName]:
        """The pods that hold anything, also those whose claims were withdrawn."""
        claimed = frozenset((claim.container.namespace, claim.container.pod) for claim in self.claims)
        return claimed | sharing.holders(self.inventory)

    @cached_property
    def unsettled(self) -> frozenset[PodName]:
        """The pods that were given something which is not understood."""
        return sharing.unsettled(self.inventory, self.claims)

    @cached_property
    def _reservations(self) -> Mapping[str, tuple[Excused, ...]]:
        return sharing.excused(self.inventory)

    def excused(
        self, servers: Mapping[str, Mapping[int, str]], holders: Mapping[int, Holder]
    ) -> dict[str, tuple[Excused, ...]]:
        """Return, by card, the pods and processes that have it for others. `servers` have proofs by PID."""
        found = dict(self._reservations)
        for card, proofs in servers.items():
            for pid, proof in sorted(proofs.items()):
                server = Excused(role="mps-server", proof=proof, container=holders[pid].container, pid=pid)
                found[card] = (*found.get(card, ()), server)
        return found

    def _unclaimed(self) -> tuple[Allocation, ...]:
        """An id that no system understands may be that of a card which does not answer."""
        devices = self.inventory.devices
        if not devices or any(device.fault for device in devices):
            return ()
        return sharing.unclaimed(self.inventory, self.claims, self.unplaced)


class Disambiguation:
    """Where a container may have one card or another, the card that its processes run on is its own.

    What processes have shown is remembered: a container that pauses is not in doubt again.
    """

    def __init__(self) -> None:
        self._decided: dict[AmbiguityKey, int] = {}
        self._places: dict[ContainerRef, frozenset[str]] = {}

    def settle(
        self, ambiguous: Sequence[AmbiguousClaims], devices: Iterable[Device], holders: Mapping[int, Holder]
    ) -> dict[AmbiguousClaims, int]:
        """Return the right option for each container that was seen, now or before, on the cards of one option alone."""
        if not ambiguous:
            self._decided = {}
            return {}
        seen = _seen(devices, holders)
        found = {claims: self._right(claims, _cards(claims.container, seen)) for claims in ambiguous}
        settled = {claims: right for claims, right in found.items() if right is not None}
        self._decided = {claims.key: right for claims, right in settled.items()}
        return settled

    def place(
        self, holdings: Iterable[AllocatedHolding], devices: Iterable[Device], holders: Mapping[int, Holder]
    ) -> dict[ContainerRef, frozenset[str]]:
        """Return the cards and MIG instances that containers were seen on, now or before, if they have as many."""
        asked = {holding.container: holding.allocation.units for holding in holdings}
        seen = _seen(devices, holders, by_instance=True) if asked else {}
        found: dict[ContainerRef, frozenset[str]] = {}
        for container, most in asked.items():
            now, before = frozenset(_cards(container, seen)), self._places.get(container, frozenset())
            fitting = (places for places in (now | before, now, before) if 0 < len(places) <= most)
            if places := next(fitting, None):
                found[container] = places
        self._places = found
        return found

    def _right(self, ambiguous: AmbiguousClaims, cards: set[str]) -> int | None:
        """Cards that fit no option, or several, show nothing: what was shown before stands."""
        fitting = [place for place, named in enumerate(ambiguous.cards) if cards and cards <= named]
        return fitting[0] if len(fitting) == 1 else self._decided.get(ambiguous.key)


def _seen(devices: Iterable[Device], holders: Mapping[int, Holder], *, by_instance: bool = False) -> Seen:
    """Where it is not clear which instance of a card a process is on, its place is the card."""
    seen: Seen = {}
    for device in devices:
        for process in device.processes:
            holder = holders.get(process.pid)
            if process.kinds and holder and (ref := holder.container):
                name = ref.namespace, ref.pod, ref.container
                seen.setdefault(name, {}).setdefault(ref.pod_uid, set()).add(
                    (by_instance and device.place(process)) or device.gpu.uuid
                )
    return seen


def _cards(container: ContainerRef, seen: Seen) -> set[str]:
    """Another pod of the same name says nothing. Where a UID is not known, there must be only one of that name."""
    by_uid = seen.get((container.namespace, container.pod, container.container), {})
    if container.pod_uid in by_uid:
        return by_uid[container.pod_uid]
    is_likely = len(by_uid) == 1 and (not container.pod_uid or "" in by_uid)
    return next(iter(by_uid.values())) if is_likely else set()
