"""How GPUs are shared: one file or folder per system, found by itself.

A system turns the device ids, resources and annotations it understands into claims.
"""

import pkgutil
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from types import ModuleType

from msgspec.structs import replace

from podgpu.model import Allocation, Claim, Device, Excused, Pod, SharingStatus
from podgpu.sharing.ambiguity import AmbiguousClaims, Unplaced, among_cards, placed
from podgpu.sharing.inventory import Host, Inventory, Observation
from podgpu.sharing.quantity import MinimumClaim, minimum_of, raised

PART = "sharing"  # under which its errors are counted
# Modules that are no system.
SHARED = ("ambiguity", "folders", "inventory", "kube_cards", "quantity")
MANY_CLAIMS = 4096
NOTED = "annotation"
WRITTEN_BY_TENANTS = (NOTED, "cache")  # sources that anyone who may edit the pod can write


@dataclass(frozen=True, kw_only=True)
class SharingSystem:
    """A module of this package, by the names it must have and those it may have.

    `signs` are prefixes of names that give the system away: of resources, of drivers, of annotations and labels on
    pods. `needs` says what podgpu needs to book by it. `explains` says whether an allocation has one of the system's
    own ids. `ambiguous_claims` are of the containers that may have other cards than the system claims for them. A
    system that `yields` makes no claim for a container that another system's note or file covers. `cards` are those
    that its marks in Kubernetes show, where nobody looks at the node itself: the inventory has no devices then.
    `registers` are the annotations in which a plugin notes the cards of its node, `node_labels` what it says about
    them all. `memory_of` is the memory that an allocation of the system's stands for, whichever card it is of.

    `notes` are prefixes of the annotations and labels of pods that the system reads; no others are kept. A system with
    notes says what holds without them: `least` is what a claim is at least, by the container's spec and ids, and
    `unplaced` is one allocation of each container whose note names no card, though it was given something; its `units`
    are the cards that it has. Of a system
    that `lasts` nothing but notes is to be seen, and its scheduler writes them once: what a pod had by them, it has.
    `excused` are pods whose claims it withdraws because they have cards for others, each with the card and the proof.
    """

    name: str
    signs: tuple[str, ...]
    needs: str
    explains: Callable[[Allocation, Inventory], bool]
    claims: Callable[[Inventory], Iterable[Claim]]
    withdraws: Callable[[Claim, Inventory], bool] | None = None
    observe: Callable[[Host], Observation] | None = None
    doubts: Callable[[Inventory], Iterable[str]] | None = None
    cards: Callable[[Inventory], Iterable[Device]] | None = None
    ambiguous_claims: Callable[[Inventory], Iterable[AmbiguousClaims]] | None = None
    yields: bool = False
    memory_of: Callable[[Allocation, Inventory], int | None] | None = None
    node_labels: tuple[str, ...] = ()
    registers: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    least: Callable[[Claim, Inventory], MinimumClaim | None] | None = None
    unplaced: Callable[[Inventory], Iterable[Allocation]] | None = None
    lasts: bool = False
    excused: Callable[[Inventory], Iterable[tuple[str, Excused]]] | None = None


def systems() -> tuple[SharingSystem, ...]:
    return _systems_in(tuple(__path__))


@cache
def _systems_in(folders: tuple[str, ...]) -> tuple[SharingSystem, ...]:
    names = sorted(module.name for module in pkgutil.iter_modules(folders) if module.name not in SHARED)
    return tuple(system_of(import_module(f"{__name__}.{name}")) for name in names)


def system_of(module: ModuleType) -> SharingSystem:
    return SharingSystem(
        name=module.NAME,
        signs=module.SIGNS,
        needs=module.NEEDS,
        explains=module.explains,
        claims=module.claims,
        withdraws=getattr(module, "withdraws", None),
        observe=getattr(module, "observe", None),
        doubts=getattr(module, "doubts", None),
        cards=getattr(module, "cards", None),
        ambiguous_claims=getattr(module, "ambiguous_claims", None),
        yields=getattr(module, "YIELDS", False),
        memory_of=getattr(module, "memory_of", None),
        node_labels=getattr(module, "NODE_LABELS", ()),
        registers=getattr(module, "REGISTERS", ()),
        notes=getattr(module, "NOTES", ()),
        least=getattr(module, "least", None),
        unplaced=getattr(module, "unplaced", None),
        lasts=getattr(module, "LASTS", False),
        excused=getattr(module, "excused", None),
    )


def ambiguous_claims(inventory: Inventory, known: Iterable[SharingSystem]) -> tuple[AmbiguousClaims, ...]:
    known = tuple(known)
    able = [system.ambiguous_claims for system in known if system.ambiguous_claims]
    found = [one for find in able for one in find(inventory)]
    return (*found, *among_cards(inventory, _unplaced(known)))


def _unplaced(known: Iterable[SharingSystem]) -> dict[str, Unplaced]:
    return {system.name: system.unplaced for system in known if system.unplaced}


def claims(
    inventory: Inventory,
    known: Iterable[SharingSystem],
    settled: Mapping[AmbiguousClaims, int] | None = None,
    before: Iterable[Claim] = (),
) -> tuple[Claim, ...]:
    """`settled` has the right reading of ambiguous claims, as far as it is known. `before` is what was found last."""
    known, settled = tuple(known), settled or {}
    found = _corrected([claim for system in known for claim in system.claims(inventory)], settled)
    found = list(_lasting(found, before, inventory, known))
    found += placed(tuple(found), inventory, _unplaced(known), settled)
    found = list(_at_least(found, inventory, known))
    better = [system.withdraws for system in known if system.withdraws]
    left = [claim for claim in found if not any(withdraws(claim, inventory) for withdraws in better)]
    yielding = {system.name for system in known if system.yields}
    noted = {claim.container for claim in left if claim.source in WRITTEN_BY_TENANTS}
    left = [claim for claim in left if claim.system not in yielding or claim.container not in noted]
    return tuple(_together(list(_within_what_was_given(left))))


def _corrected(found: list[Claim], settled: Mapping[AmbiguousClaims, int]) -> list[Claim]:
    """Put what is right in the place of what is usual."""
    changed = {one: right for one, right in settled.items() if right != one.usual and not one.is_floor}
    if not changed:
        return found
    void = {claim for one in changed if one.usual is not None for claim in one.readings[one.usual]}
    right = [claim for one, place in changed.items() for claim in one.settled(place)]
    return [*(claim for claim in found if claim not in void), *right]


def _lasting(
    found: Sequence[Claim], before: Iterable[Claim], inventory: Inventory, known: Iterable[SharingSystem]
) -> Iterator[Claim]:
    """Let nobody write down what he has, or strike it out, while his pod lives: the others of the card would pay."""
    lasting = {system.name for system in known if system.lasts}
    alive = {pod.uid for pod in inventory.pods if not pod.finished}
    noted = [
        claim
        for claim in before
        if claim.source == NOTED and claim.container.pod_uid in alive and claim.gpu in inventory.gpus
    ]
    had = {(one.container.pod_uid, one.gpu): one for one in noted if one.system in lasting}
    for claim in found:
        last = had.get((claim.container.pod_uid, claim.gpu)) if claim.system in lasting else None
        yield raised(claim, minimum_of(last)) if last else claim
    present = {claim.container.pod_uid for claim in found}
    # What only a process has shown is in doubt again with another note.
    struck_out = [one for one in noted if one.container.pod_uid not in present and one.ruled_out is None]
    given = inventory.once(_given) if struck_out else frozenset()
    for claim in struck_out:
        if claim.system in lasting or (claim.container.pod_uid, claim.resource) in given:
            yield claim


def _given(inventory: Inventory) -> frozenset[tuple[str, str]]:
    """Return the resources that pods were given, with their UIDs."""
    held = {(one.namespace, one.pod, one.resource): one for one in inventory.allocations}
    pods = ((inventory.pod(one), one.resource) for one in held.values())
    return frozenset((pod.uid, resource) for pod, resource in pods if pod)


def _at_least(
    found: Iterable[Claim], inventory: Inventory, known: Iterable[SharingSystem]
) -> Iterator[Claim]:
    """Let no note take a claim below what the spec asks for and the kubelet gave."""
    floors = {system.name: system.least for system in known}
    for claim in found:
        floor = None if claim.mig else floors.get(claim.system)
        least = floor(claim, inventory) if floor else None
        yield raised(claim, least) if least else claim


def _within_what_was_given(claims: Sequence[Claim]) -> Iterator[Claim]:
    """Leave out what a tenant could have written about a card that another pod was given as a whole."""
    whole: dict[str, set[tuple[str, str]]] = {}
    for claim in claims:
        if claim.source not in WRITTEN_BY_TENANTS and not claim.mig and claim.share >= 1:
            whole.setdefault(claim.gpu, set()).add((claim.container.namespace, claim.container.pod))
    for claim in claims:
        pod = (claim.container.namespace, claim.container.pod)
        if claim.source not in WRITTEN_BY_TENANTS or not whole.get(claim.gpu, set()) - {pod}:
            yield claim


def _together(claims: Sequence[Claim]) -> Iterator[Claim]:
    """Put a container's claims of one card together where they are more than anyone can read."""
    if len(claims) <= MANY_CLAIMS:
        yield from claims
        return
    alike: dict[tuple[object, ...], list[Claim]] = {}
    for one in claims:
        alike.setdefault((one.container, one.gpu, one.mig, one.system, one.source), []).append(one)
    for first, *others in alike.values():
        share = min(1.0, sum(one.share for one in (first, *others)))
        name = f"{first.device_id} and {len(others)} more" if others else first.device_id
        yield replace(first, share=share, device_id=name)


def unclaimed(inventory: Inventory, known: Iterable[SharingSystem]) -> tuple[Allocation, ...]:
    """List the allocations of GPU resources that no system understands, and those that two pods have."""
    known = tuple(known)
    signs = signs_of(known)
    strange = (
        allocation
        for allocation in (*inventory.allocations, *inventory.dynamic_allocations)
        if is_gpu(allocation.resource, signs)
        and not any(one.explains(allocation, inventory) for one in known)
    )
    return (*strange, *(replace(one, disputed=True) for one in inventory.disputed))


def excused(inventory: Inventory, known: Iterable[SharingSystem]) -> dict[str, tuple[Excused, ...]]:
    """Return by card who has it for others."""
    found: dict[str, tuple[Excused, ...]] = {}
    for system in known:
        for card, one in system.excused(inventory) if system.excused else ():
            found[card] = (*found.get(card, ()), one)
    return found


def holders(inventory: Inventory, known: Iterable[SharingSystem]) -> frozenset[tuple[str, str]]:
    """Return the pods that were given a GPU, or a part of one, by namespace and name, whoever pays for it."""
    signs = signs_of(known)
    given = (*inventory.allocations, *inventory.disputed, *inventory.dynamic_allocations)
    return frozenset((one.namespace, one.pod) for one in given if is_gpu(one.resource, signs))


def statuses(
    inventory: Inventory,
    claims: Iterable[Claim],
    known: Iterable[SharingSystem],
    undecided: Iterable[AmbiguousClaims] = (),
) -> tuple[SharingStatus, ...]:
    """List the systems that were found, with what is missing where there is a sign but neither a claim nor a doubt.

    A resource that another system has claims for is no sign: MIG instances may be handed out as replicas.
    """
    claims, known = tuple(claims), tuple(known)
    counts = Counter(claim.system for claim in claims)
    names = _names(inventory) - {claim.resource for claim in claims}
    claimed = {claim.container for claim in claims}
    undecided = [one for one in undecided if not (one.is_floor and one.container in claimed)]
    doubts = _doubts(inventory, known, undecided)
    found = [
        SharingStatus(system=name, claims=count, doubts=tuple(doubts.get(name, ())))
        for name, count in counts.items()
    ]
    others = [system for system in known if system.name not in counts]
    found += [
        SharingStatus(system=one.name, doubts=tuple(doubts[one.name])) for one in others if one.name in doubts
    ]
    found += [
        SharingStatus(system=one.name, missing=one.needs)
        for one in others
        if one.name not in doubts and any(name.startswith(one.signs) for name in names)
    ]
    return tuple(sorted(found, key=lambda status: status.system))


def _doubts(
    inventory: Inventory, known: Iterable[SharingSystem], undecided: Iterable[AmbiguousClaims]
) -> dict[str, list[str]]:
    """Collect by system what cannot be known, of its claims in general and of single containers."""
    found = {system.name: list(system.doubts(inventory)) for system in known if system.doubts}
    open_ones = Counter((one.system, one.doubt) for one in undecided if one.usual is None)
    for (system, doubt), count in open_ones.items():
        containers = "1 container" if count == 1 else f"{count} containers"
        found.setdefault(system, []).append(doubt.format(count=containers))
    return {system: doubts for system, doubts in found.items() if doubts}


def cards(inventory: Inventory, known: Iterable[SharingSystem]) -> Iterator[Device]:
    """Yield the cards of a node that Kubernetes knows of, some of them more than once."""
    for system in known:
        if system.cards:
            yield from system.cards(inventory)


def memory_of(allocation: Allocation, inventory: Inventory, known: Iterable[SharingSystem]) -> int | None:
    """Return how much of a card's memory an allocation is, for one whose card is not known."""
    found = (system.memory_of(allocation, inventory) for system in known if system.memory_of)
    return next((one for one in found if one is not None), None)


def node_labels_of(known: Iterable[SharingSystem]) -> tuple[str, ...]:
    return tuple(name for system in known for name in system.node_labels)


def node_annotations_of(known: Iterable[SharingSystem]) -> frozenset[str]:
    return frozenset(name for system in known for name in system.registers)


def annotations_of(known: Iterable[SharingSystem]) -> tuple[str, ...]:
    """Return prefixes of all annotations that are read or are a sign."""
    return tuple(sorted({name for system in known for name in (*system.notes, *system.signs)}))


def signs_of(known: Iterable[SharingSystem]) -> tuple[str, ...]:
    return tuple(sign for system in known for sign in system.signs)


def concerns(pod: Pod, signs: tuple[str, ...]) -> bool:
    """Whether a pod asks for a GPU, was given one, or may have one by a claim."""
    asked = (resource for one in pod.containers for resource in one.limits)
    given = (resource for one in pod.containers for resource, _ in one.devices)
    return (
        bool(pod.resource_claims or pod.extended_claim or any(one.uses for one in pod.containers))
        or any(is_gpu(resource, signs) for resource in (*asked, *given))
        or any(name.startswith(signs) for name in (*pod.annotations, *pod.labels))
    )


def observed(host: Host, known: Iterable[SharingSystem]) -> Observation:
    seen = [system.observe(host) for system in known if system.observe]
    return Observation(
        vgpus=tuple(vgpu for one in seen for vgpu in one.vgpus),
        errors=sum((one.errors for one in seen), Counter()),
    )


def is_gpu(resource: str, signs: tuple[str, ...]) -> bool:
    """Device plugins also hand out network cards and the like."""
    vendor, _, name = resource.partition("/")
    return "gpu" in name or "nvidia" in vendor or resource.startswith(signs)


def _names(inventory: Inventory) -> set[str]:
    """Collect all names that may be signs."""
    names = {resource for resource, _ in inventory.allocatable}
    names |= {one.resource for one in (*inventory.allocations, *inventory.dynamic_allocations)}
    for pod in inventory.pods:
        if not pod.finished:
            names.update(pod.annotations, pod.labels, *(one.limits for one in pod.containers))
    return names
