"""How GPUs are shared: one file or folder per system, found by itself, and what all of them say together.

A system turns the device ids, resources and annotations that it understands into claims. Here contradictions between
them are resolved, and it is seen which systems are in use.
"""

import pkgutil
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cache
from importlib import import_module
from itertools import combinations
from math import comb

from msgspec.structs import replace

from podgpu.model import Allocation, Claim, Device, Excused, Pod, SharingStatus
from podgpu.model.kube import grouped
from podgpu.sharing.inventory import Host, Inventory, Observation
from podgpu.sharing.system import AmbiguousClaims, SharingSystem

PART = "sharing"  # under which its errors are counted
# Modules that are no system.
SHARED = ("folders", "inventory", "kube_cards", "system")
MANY_CLAIMS = 4096
ANNOTATION = "annotation"
WRITTEN_BY_TENANTS = (ANNOTATION, "cache")  # sources that anyone who may edit the pod can write
MOST_OPTIONS = 128
UNDECIDED = "the annotations of {count} name no card; it counts as soon as a process runs on one"


def systems() -> tuple[SharingSystem, ...]:
    return _systems_in(tuple(__path__))


@cache
def _systems_in(folders: tuple[str, ...]) -> tuple[SharingSystem, ...]:
    names = sorted(module.name for module in pkgutil.iter_modules(folders) if module.name not in SHARED)
    return tuple(_system(name) for name in names)


def _system(name: str) -> SharingSystem:
    found = vars(import_module(f"{__name__}.{name}")).get("SYSTEM")
    if not isinstance(found, SharingSystem):
        raise TypeError(f"podgpu.sharing.{name} must export SYSTEM, a SharingSystem")
    return found


def ambiguous_claims(inventory: Inventory) -> tuple[AmbiguousClaims, ...]:
    found = [ambiguous for system in systems() for ambiguous in system.ambiguous_claims(inventory)]
    return (*found, *_among_cards(inventory))


def _among_cards(inventory: Inventory) -> Iterator[AmbiguousClaims]:
    """Yield an option for each choice of cards, none of them usual, for each container whose card is not known.

    Its annotation was removed or is nonsense. Among several cards the container's processes show which it has.
    """
    if len(inventory.cards) < 2 or not inventory.is_seen:
        return
    whole = {allocation.device_id for allocation in inventory.allocations}
    cards = [card for card in inventory.cards if card not in whole and not inventory.migs[card]]
    for system in systems():
        for allocation in system.unplaced(inventory):
            if 1 < comb(len(cards), allocation.units) <= MOST_OPTIONS:
                choices = combinations(cards, allocation.units)
                options = (tuple(_unsized(allocation, chosen, system, inventory)) for chosen in choices)
                yield AmbiguousClaims(options=tuple(options), doubt=UNDECIDED, is_floor=True)


def claims(
    inventory: Inventory, settled: Mapping[AmbiguousClaims, int] = {}, before: Iterable[Claim] = ()
) -> tuple[Claim, ...]:
    """`settled` has the right option of ambiguous claims, as far as it is known. `before` is what was found last."""
    known = systems()
    found = _corrected([claim for system in known for claim in system.claims(inventory)], settled)
    found = list(_lasting(found, before, inventory))
    found += _placed(found, inventory, settled)
    found = list(_at_least(found, inventory))
    left = [claim for claim in found if not any(system.withdraws(claim, inventory) for system in known)]
    yielding = {system.name for system in known if system.yields}
    covered = {claim.container for claim in left if claim.source in WRITTEN_BY_TENANTS}
    left = [claim for claim in left if claim.system not in yielding or claim.container not in covered]
    return tuple(_together(list(_without_trespassers(left))))


def _corrected(found: list[Claim], settled: Mapping[AmbiguousClaims, int]) -> list[Claim]:
    """Replace the usual claims with the right ones."""
    changed = {
        ambiguous: right for ambiguous, right in settled.items() if right != ambiguous.usual and not ambiguous.is_floor
    }
    if not changed:
        return found
    void = {
        claim for ambiguous in changed if ambiguous.usual is not None for claim in ambiguous.options[ambiguous.usual]
    }
    right = [claim for ambiguous, option in changed.items() for claim in ambiguous.settled(option)]
    return [*(claim for claim in found if claim not in void), *right]


def _lasting(found: Sequence[Claim], before: Iterable[Claim], inventory: Inventory) -> Iterator[Claim]:
    """Let no edit of an annotation lower or remove a claim while its pod lives: the other tenants would pay."""
    lasting = {system.name for system in systems() if system.lasts}
    alive = {pod.uid for pod in inventory.pods if not pod.finished}
    annotated = [
        claim
        for claim in before
        if claim.source == ANNOTATION and claim.container.pod_uid in alive and claim.gpu in inventory.gpus
    ]
    had = {(claim.container.pod_uid, claim.gpu): claim for claim in annotated if claim.system in lasting}
    for claim in found:
        last = had.get((claim.container.pod_uid, claim.gpu)) if claim.system in lasting else None
        yield _raised(claim, last.share, last.memory_limit_bytes, last.core_limit_ratio) if last else claim
    present = {claim.container.pod_uid for claim in found}
    # What only a process has shown is in doubt again with another annotation.
    removed = [claim for claim in annotated if claim.container.pod_uid not in present and claim.ruled_out is None]
    given = _given(inventory) if removed else set()
    for claim in removed:
        if claim.system in lasting or (claim.container.pod_uid, claim.resource) in given:
            yield claim


def _given(inventory: Inventory) -> set[tuple[str, str]]:
    """Return the resources that pods were given, with their UIDs."""
    pods = ((inventory.pod(given), given.resource) for given in inventory.allocations)
    return {(pod.uid, resource) for pod, resource in pods if pod}


def _placed(found: Iterable[Claim], inventory: Inventory, settled: Mapping[AmbiguousClaims, int]) -> list[Claim]:
    """Claim for containers without any other claim: the only card, or those that their processes are on."""
    claimed = {claim.container for claim in found}
    placed: list[Claim] = []
    for ambiguous, right in settled.items():
        if ambiguous.is_floor and ambiguous.container not in claimed:
            claimed.add(ambiguous.container)
            placed += ambiguous.options[right]
    if len(inventory.cards) != 1 or inventory.instances or not inventory.is_seen:
        return placed
    for system in systems():
        for allocation in system.unplaced(inventory):
            (claim,) = _unsized(allocation, inventory.cards, system, inventory)
            if claim.container not in claimed:
                claimed.add(claim.container)
                placed.append(claim)
    return placed


def _unsized(
    allocation: Allocation, cards: Iterable[str], system: SharingSystem, inventory: Inventory
) -> Iterator[Claim]:
    return (inventory.claim(allocation, card, system=system.name, share=0.0) for card in cards)


def _raised(claim: Claim, share: float, least_memory: int | None, least_cores: float | None) -> Claim:
    """Raise a claim to what it is at least. A limit that is absent is already the highest."""
    memory, cores = claim.memory_limit_bytes, claim.core_limit_ratio
    return replace(
        claim,
        share=max(claim.share, min(share, 1.0)),
        memory_limit_bytes=None if memory is None else max(memory, least_memory or 0),
        core_limit_ratio=None if cores is None else max(cores, min(least_cores or 0.0, 1.0)),
    )


def _at_least(found: Iterable[Claim], inventory: Inventory) -> Iterator[Claim]:
    """Let no annotation take a claim below what the spec asks for and the kubelet gave."""
    minimums = {system.name: system.minimum for system in systems()}
    for claim in found:
        minimum = minimums.get(claim.system)
        least = minimum(claim, inventory) if minimum and not claim.mig else None
        yield _raised(claim, least.share, least.memory, least.cores) if least else claim


def _without_trespassers(claims: Sequence[Claim]) -> Iterator[Claim]:
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
    """Join a container's claims of one card where there are more than anyone can read."""
    if len(claims) <= MANY_CLAIMS:
        yield from claims
        return
    alike = grouped(claims, lambda claim: (claim.container, claim.gpu, claim.mig, claim.system, claim.source))
    for first, *others in alike.values():
        share = min(1.0, sum(claim.share for claim in (first, *others)))
        name = f"{first.device_id} and {len(others)} more" if others else first.device_id
        yield replace(first, share=share, device_id=name)


def unclaimed(inventory: Inventory) -> tuple[Allocation, ...]:
    """List the allocations of GPU resources that no system understands, and those that two pods have."""
    known, of_gpus = systems(), signs()
    strange = (
        allocation
        for allocation in (*inventory.allocations, *inventory.dynamic_allocations)
        if is_gpu(allocation.resource, of_gpus) and not any(system.explains(allocation, inventory) for system in known)
    )
    return (*strange, *(replace(allocation, disputed=True) for allocation in inventory.disputed))


def excused(inventory: Inventory) -> dict[str, tuple[Excused, ...]]:
    """Return by card the pods that have it for others."""
    found: dict[str, tuple[Excused, ...]] = {}
    for system in systems():
        for card, holder in system.excused(inventory):
            found[card] = (*found.get(card, ()), holder)
    return found


def holders(inventory: Inventory) -> frozenset[tuple[str, str]]:
    """Return the pods that were given a GPU, or a part of one, by namespace and name."""
    of_gpus = signs()
    given = (*inventory.allocations, *inventory.disputed, *inventory.dynamic_allocations)
    return frozenset((held.namespace, held.pod) for held in given if is_gpu(held.resource, of_gpus))


def statuses(
    inventory: Inventory, claims: Iterable[Claim], undecided: Iterable[AmbiguousClaims]
) -> tuple[SharingStatus, ...]:
    """List the systems that were found, with what is missing where there is a sign but neither a claim nor a doubt.

    A resource that another system has claims for is no sign: MIG instances may be handed out as replicas.
    """
    claims = tuple(claims)
    counts = Counter(claim.system for claim in claims)
    names = _names(inventory) - {claim.resource for claim in claims}
    claimed = {claim.container for claim in claims}
    undecided = [item for item in undecided if not (item.is_floor and item.container in claimed)]
    found = []
    for system in systems():
        doubts = (*system.doubts(inventory), *_doubts(system.name, undecided))
        if system.name in counts or doubts:
            found.append(SharingStatus(system=system.name, claims=counts[system.name], doubts=doubts))
        elif any(name.startswith(system.signs) for name in names):
            found.append(SharingStatus(system=system.name, missing=system.needs))
    others = counts.keys() - {status.system for status in found}
    found += [SharingStatus(system=name, claims=counts[name]) for name in others]
    return tuple(sorted(found, key=lambda status: status.system))


def _doubts(system: str, undecided: Iterable[AmbiguousClaims]) -> Iterator[str]:
    """Say what cannot be known of single containers."""
    counts = Counter(item.doubt for item in undecided if item.usual is None and item.system == system)
    for doubt, count in counts.items():
        yield doubt.format(count="1 container" if count == 1 else f"{count} containers")


def _names(inventory: Inventory) -> set[str]:
    """Collect all names that may be signs."""
    names = {resource for resource, _ in inventory.allocatable}
    names |= {given.resource for given in (*inventory.allocations, *inventory.dynamic_allocations)}
    for pod in inventory.pods:
        if not pod.finished:
            names.update(pod.annotations, pod.labels, *(container.limits for container in pod.containers))
    return names


def concerns(pod: Pod, signs: tuple[str, ...]) -> bool:
    """Whether a pod asks for a GPU, was given one, or may have one by a claim."""
    asked = (resource for container in pod.containers for resource in container.limits)
    given = (resource for container in pod.containers for resource, _ in container.devices)
    return (
        pod.has_claims
        or any(is_gpu(resource, signs) for resource in (*asked, *given))
        or any(name.startswith(signs) for name in (*pod.annotations, *pod.labels))
    )


def is_gpu(resource: str, signs: tuple[str, ...]) -> bool:
    """Device plugins also hand out network cards and the like."""
    vendor, _, name = resource.partition("/")
    return "gpu" in name or "nvidia" in vendor or resource.startswith(signs)


def observed(host: Host) -> Observation:
    seen = [system.observe(host) for system in systems()]
    return Observation(
        vgpus=tuple(vgpu for observation in seen for vgpu in observation.vgpus),
        errors=sum((observation.errors for observation in seen), Counter()),
    )


def cards(inventory: Inventory) -> Iterator[Device]:
    """Yield the cards of a node that Kubernetes knows of, some of them more than once."""
    return (card for system in systems() for card in system.cards(inventory))


def memory_of(allocation: Allocation, inventory: Inventory) -> int | None:
    """Return how much of a card's memory an allocation is, for one whose card is not known."""
    found = (system.memory_of(allocation, inventory) for system in systems())
    return next((memory for memory in found if memory is not None), None)


def signs() -> tuple[str, ...]:
    return tuple(sign for system in systems() for sign in system.signs)


def node_labels() -> tuple[str, ...]:
    return tuple(name for system in systems() for name in system.node_labels)


def node_annotations() -> frozenset[str]:
    return frozenset(name for system in systems() for name in system.node_annotations)


def annotations() -> tuple[str, ...]:
    """Return prefixes of all annotations that are read or are a sign."""
    return tuple(sorted({name for system in systems() for name in (*system.annotations, *system.signs)}))
