"""How GPUs are shared: a file or folder for each sharing system, and the claims of all systems together.

A system turns the device ids, resources and annotations that it understands into claims. This module finds the systems,
resolves contradictions between them, and says which of them are in use.
"""

import pkgutil
from collections import Counter
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from functools import cache
from importlib import import_module

from msgspec.structs import replace

from podgpu.model import Allocation, Claim, ContainerRef, Device, Excused, Pod, SharingStatus, UnplacedHolding
from podgpu.model.kube import grouped
from podgpu.sharing import floors
from podgpu.sharing.floors import ANNOTATION, WRITTEN_BY_TENANTS, AllocatedHolding
from podgpu.sharing.inventory import Host, Inventory, Observation
from podgpu.sharing.system import AmbiguousClaims, SharingSystem

PART = "sharing"  # the name that its errors are counted under
# Modules that are not a sharing system.
SHARED = ("floors", "folders", "inventory", "kube_cards", "system")
MANY_CLAIMS = 4096
UNDECIDED = "the annotations of {count} do not name all cards; each counts as soon as a process runs on it"


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
    return inventory.once(_ambiguous)


def _ambiguous(inventory: Inventory) -> tuple[AmbiguousClaims, ...]:
    return tuple(ambiguous for system in systems() for ambiguous in system.ambiguous_claims(inventory))


def holdings(inventory: Inventory) -> tuple[AllocatedHolding, ...]:
    """Return how many cards and MIG instances each container has, by a system whose ids do not say which."""
    return inventory.once(_holdings)


def _holdings(inventory: Inventory) -> tuple[AllocatedHolding, ...]:
    return floors.holdings(inventory, systems(), inventory.once(_own_resources).keys())


def claims(
    inventory: Inventory,
    settled: Mapping[AmbiguousClaims, int] = {},
    before: Iterable[Claim] = (),
    seen: Mapping[ContainerRef, frozenset[str]] = {},
) -> tuple[Claim, ...]:
    """`settled` has the right option of those ambiguous claims for which it is known. `before` are the last claims.

    `seen` are the places where containers run whose annotations do not name all that they have.
    """
    known, own = systems(), inventory.once(_own_resources)
    read = ((system, claim) for system in known for claim in system.claims(inventory))
    found = [claim for system, claim in read if claim.resource not in own or system in own[claim.resource]]
    found = _corrected(found, settled)
    found = list(_lasting(found, before, inventory))
    # Where an annotation can be read in two ways, only a process on a card of one of them decides.
    contested = {ambiguous.container for ambiguous in ambiguous_claims(inventory)}
    open_to = (holding for holding in holdings(inventory) if holding.container not in contested)
    found += floors.placed(open_to, found, inventory, seen)
    found = list(floors.at_least(found, inventory, known))
    left = [claim for claim in found if not any(system.withdraws(claim, inventory) for system in known)]
    yielding = {system.name for system in known if system.yields}
    covered = {claim.container for claim in left if claim.source in WRITTEN_BY_TENANTS}
    left = [claim for claim in left if claim.system not in yielding or claim.container not in covered]
    return tuple(_together(list(_without_trespassers(left, own))))


def _own_resources(inventory: Inventory) -> dict[str, tuple[SharingSystem]]:
    """Return the resources whose ids prove no card, each with its system. Where there is a single card, all do."""
    if len(inventory.cards) == 1:
        return {}
    return {resource: (system,) for system in systems() for resource in system.own_resources}


def _corrected(found: list[Claim], settled: Mapping[AmbiguousClaims, int]) -> list[Claim]:
    """Replace the usual claims with the right ones."""
    changed = {ambiguous: right for ambiguous, right in settled.items() if right != ambiguous.usual}
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
    had = {(_annotated_for(claim), claim.gpu, claim.mig): claim for claim in annotated if claim.system in lasting}
    kept = _without_annotation(annotated, found, inventory)
    # Without the annotation, ids may seem to name the card. The plugin did not keep to them.
    replaced = {(claim.container, claim.resource) for claim in kept}
    for claim in found:
        if (claim.container, claim.resource) not in replaced:
            last = had.get((_annotated_for(claim), claim.gpu, claim.mig)) if claim.system in lasting else None
            yield floors.raised(claim, last.share, last.memory_limit_bytes, last.core_limit_ratio) if last else claim
    yield from kept


def _annotated_for(claim: Claim) -> tuple[object, str]:
    """Return whom an annotation is about, and its system. Without ids it is about the pod, whatever it names there."""
    return claim.container.pod_uid if claim.system in _without_ids() else claim.container, claim.system


def _without_ids() -> frozenset[str]:
    return frozenset(system.name for system in systems() if system.without_ids)


def _without_annotation(before: Iterable[Claim], found: Iterable[Claim], inventory: Inventory) -> list[Claim]:
    """Return the earlier claims of those whose annotation is gone, if they still hold what it was about."""
    claimed = {claim.container.pod_uid for claim in found}
    annotated = {_annotated_for(claim) for claim in found if claim.source == ANNOTATION or claim.ruled_out is not None}
    # What only a process has shown is in doubt again with another annotation.
    gone = [claim for claim in before if _annotated_for(claim) not in annotated and claim.ruled_out is None]
    held = {(inventory.container(held), held.resource) for held in inventory.allocations} if gone else set()
    return [
        claim
        for claim in gone
        if (claim.container, claim.resource) in held
        or (claim.system in _without_ids() and claim.container.pod_uid not in claimed)
    ]


def _without_trespassers(claims: Sequence[Claim], unproven: Container[str]) -> Iterator[Claim]:
    """Leave out what a tenant could have written itself, on a card that is allocated as a whole to another pod."""
    whole: dict[str, set[tuple[str, str]]] = {}
    by_notes = {system.name for system in systems() if system.annotations}  # their ids name no card
    for claim in claims:
        is_written = claim.source in WRITTEN_BY_TENANTS or claim.system in by_notes
        is_proven = not is_written and claim.resource not in unproven
        if is_proven and not claim.mig and claim.share >= 1:
            whole.setdefault(claim.gpu, set()).add((claim.container.namespace, claim.container.pod))
    for claim in claims:
        pod = (claim.container.namespace, claim.container.pod)
        if claim.source not in WRITTEN_BY_TENANTS or not whole.get(claim.gpu, set()) - {pod}:
            yield claim


def _together(claims: Sequence[Claim]) -> Iterator[Claim]:
    """Merge each container's claims on a card if there are more claims than anyone can read."""
    if len(claims) <= MANY_CLAIMS:
        yield from claims
        return
    alike = grouped(claims, lambda claim: (claim.container, claim.gpu, claim.mig, claim.system, claim.source))
    for first, *others in alike.values():
        share = min(1.0, sum(claim.share for claim in (first, *others)))
        name = f"{first.device_id} and {len(others)} more" if others else first.device_id
        yield replace(first, share=share, device_id=name)


def unplaced(inventory: Inventory, claims: Sequence[Claim]) -> tuple[UnplacedHolding, ...]:
    """List what containers were given on cards that neither an annotation nor a process names."""
    return floors.unplaced(holdings(inventory), claims)


def unclaimed(
    inventory: Inventory, claims: Iterable[Claim] = (), unplaced: Iterable[UnplacedHolding] = ()
) -> tuple[Allocation, ...]:
    """List the allocations of GPU resources that no system understands, and those that two pods have.

    Leave out those of containers whose cards are known by their processes, or by an annotation that is gone, and those
    that are on no known card.
    """
    of_gpus = signs()
    strange = [
        allocation
        for allocation in (*inventory.allocations, *inventory.dynamic_allocations)
        if is_gpu(allocation.resource, of_gpus) and not is_understood(allocation, inventory)
    ]
    held = {(allocation.names, allocation.resource, allocation.device_id) for allocation in strange}
    resources = {(names, resource) for names, resource, _ in held}
    placed = {
        (claim.container.names, _vendor(claim.resource))
        for claim in (claims if strange else ())
        if (claim.container.names, claim.resource, claim.device_id) in held
        or (claim.source == ANNOTATION and (claim.container.names, claim.resource) in resources)
    }
    placed |= {(holding.container.names, _vendor(holding.resource)) for holding in unplaced}
    left = (allocation for allocation in strange if (allocation.names, _vendor(allocation.resource)) not in placed)
    return (*left, *(replace(allocation, disputed=True) for allocation in inventory.disputed))


def is_understood(allocation: Allocation, inventory: Inventory) -> bool:
    known = inventory.once(_own_resources).get(allocation.resource) or systems()
    return any(system.explains(allocation, inventory) for system in known)


def _vendor(resource: str) -> str:
    """A system may have several resources, such as one for cores and one for memory."""
    return resource.partition("/")[0]


def excused(inventory: Inventory) -> dict[str, tuple[Excused, ...]]:
    """Return, by card, the pods that hold it on behalf of others."""
    found: dict[str, tuple[Excused, ...]] = {}
    for system in systems():
        for card, holder in system.excused(inventory):
            found[card] = (*found.get(card, ()), holder)
    return found


def holders(inventory: Inventory) -> frozenset[tuple[str, str]]:
    """Return the pods that hold a GPU, or a part of one, by namespace and name."""
    of_gpus = signs()
    allocated = (*inventory.allocations, *inventory.disputed, *inventory.dynamic_allocations)
    return frozenset((held.namespace, held.pod) for held in allocated if is_gpu(held.resource, of_gpus))


def unsettled(inventory: Inventory, claims: Iterable[Claim]) -> frozenset[tuple[str, str]]:
    """Return the pods, by namespace and name, that were given something which is not understood, or has no claim.

    A pod that only asks for a GPU, by its spec or an annotation, may have been given one that nothing lists.
    """
    of_gpus, claims = signs(), tuple(claims)
    claimed = {(claim.container.names, _vendor(claim.resource)) for claim in claims}
    pods = {(claim.container.namespace, claim.container.pod) for claim in claims}
    # A claim that names no container is that of the whole pod.
    whole = {(claim.container.namespace, claim.container.pod) for claim in claims if not claim.container.container}
    given = (*inventory.allocations, *inventory.disputed, *inventory.dynamic_allocations)
    without = {
        (held.namespace, held.pod)
        for held in given
        if is_gpu(held.resource, of_gpus)
        and (held.names, _vendor(held.resource)) not in claimed
        and (held.namespace, held.pod) not in whole
    }
    asking = {(pod.namespace, pod.name) for pod in inventory.pods if not pod.finished and concerns(pod, of_gpus)}
    strange = {(held.namespace, held.pod) for held in unclaimed(inventory, claims)}
    return frozenset(without | strange | (asking - pods))


def statuses(
    inventory: Inventory,
    claims: Iterable[Claim],
    undecided: Iterable[AmbiguousClaims],
    unplaced: Iterable[UnplacedHolding] = (),
) -> tuple[SharingStatus, ...]:
    """List the systems in use. One that only a sign points to, with neither claims nor doubts, says what is missing.

    A resource that another system has claims for is not a sign: MIG instances may be handed out as replicas.
    """
    claims = tuple(claims)
    counts = Counter(claim.system for claim in claims)
    names = _names(inventory) - {claim.resource for claim in claims}
    nowhere = [(item.system, UNDECIDED) for item in unplaced]
    contested = [(item.system, item.doubt) for item in undecided if item.usual is None]
    found = []
    for system in systems():
        doubts = (*system.doubts(inventory), *_doubts(system.name, [*contested, *nowhere]))
        if system.name in counts or doubts:
            found.append(SharingStatus(system=system.name, claims=counts[system.name], doubts=doubts))
        elif any(name.startswith(system.signs) for name in names):
            found.append(SharingStatus(system=system.name, missing=system.needs))
    others = counts.keys() - {status.system for status in found}
    found += [SharingStatus(system=name, claims=counts[name]) for name in others]
    return tuple(sorted(found, key=lambda status: status.system))


def _doubts(system: str, undecided: Iterable[tuple[str, str]]) -> Iterator[str]:
    """Yield what is not known about single containers."""
    counts = Counter(doubt for name, doubt in undecided if name == system)
    for doubt, count in counts.items():
        yield doubt.format(count="1 container" if count == 1 else f"{count} containers")


def _names(inventory: Inventory) -> set[str]:
    """Collect all names that may be signs."""
    names = {resource for resource, _ in inventory.allocatable}
    names |= {held.resource for held in (*inventory.allocations, *inventory.dynamic_allocations)}
    for pod in inventory.pods:
        if not pod.finished:
            names.update(pod.annotations, pod.labels, *(container.limits for container in pod.containers))
    return names


def concerns(pod: Pod, signs: tuple[str, ...]) -> bool:
    """Whether a pod asks for a GPU, was allocated one, or may have one by a resource claim."""
    asked = (resource for container in pod.containers for resource in container.limits)
    allocated = (resource for container in pod.containers for resource, _ in container.devices)
    return (
        pod.has_claims
        or any(is_gpu(resource, signs) for resource in (*asked, *allocated))
        or any(name.startswith(signs) for name in (*pod.annotations, *pod.labels))
    )


def is_gpu(resource: str, signs: tuple[str, ...]) -> bool:
    """Whether a resource is a GPU: device plugins also hand out network cards and the like."""
    vendor, _, name = resource.partition("/")
    return "gpu" in name or "nvidia" in vendor or resource.startswith(signs)


def observed(host: Host) -> Observation:
    seen = [system.observe(host) for system in systems()]
    return Observation(
        vgpus=tuple(vgpu for observation in seen for vgpu in observation.vgpus),
        errors=sum((observation.errors for observation in seen), Counter()),
    )


def cards(inventory: Inventory) -> Iterator[Device]:
    """Yield the cards of a node that Kubernetes knows about, some of them more than once."""
    return (card for system in systems() for card in system.cards(inventory))


def memory_of(allocation: Allocation, inventory: Inventory) -> int | None:
    """Return how much memory an allocation stands for, also if its card is not known."""
    found = (system.memory_of(allocation, inventory) for system in systems())
    return next((memory for memory in found if memory is not None), None)


def signs() -> tuple[str, ...]:
    return tuple(sign for system in systems() for sign in system.signs)


def node_labels() -> tuple[str, ...]:
    return tuple(name for system in systems() for name in system.node_labels)


def node_annotations() -> frozenset[str]:
    return frozenset(name for system in systems() for name in system.node_annotations)


def annotations() -> tuple[str, ...]:
    """Return the prefixes of all annotations that are read or that are a sign."""
    return tuple(sorted({name for system in systems() for name in (*system.annotations, *system.signs)}))
