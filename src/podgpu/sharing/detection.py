"""Which sharing systems a node or a pod shows signs of, and what Kubernetes alone knows by them."""

from collections import Counter
from collections.abc import Iterable, Iterator

from podgpu.model import Allocation, Claim, Device, Pod, SharingStatus
from podgpu.sharing.inventory import Host, Inventory, Observation
from podgpu.sharing.system import AmbiguousClaims, SharingSystem


def statuses(
    inventory: Inventory,
    claims: Iterable[Claim],
    known: Iterable[SharingSystem],
    undecided: Iterable[AmbiguousClaims] = (),
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
    for system in known:
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
        bool(pod.resource_claims or pod.extended_claim or any(container.uses for container in pod.containers))
        or any(is_gpu(resource, signs) for resource in (*asked, *given))
        or any(name.startswith(signs) for name in (*pod.annotations, *pod.labels))
    )


def is_gpu(resource: str, signs: tuple[str, ...]) -> bool:
    """Device plugins also hand out network cards and the like."""
    vendor, _, name = resource.partition("/")
    return "gpu" in name or "nvidia" in vendor or resource.startswith(signs)


def observed(host: Host, known: Iterable[SharingSystem]) -> Observation:
    seen = [system.observe(host) for system in known]
    return Observation(
        vgpus=tuple(vgpu for observation in seen for vgpu in observation.vgpus),
        errors=sum((observation.errors for observation in seen), Counter()),
    )


def cards(inventory: Inventory, known: Iterable[SharingSystem]) -> Iterator[Device]:
    """Yield the cards of a node that Kubernetes knows of, some of them more than once."""
    return (card for system in known for card in system.cards(inventory))


def memory_of(allocation: Allocation, inventory: Inventory, known: Iterable[SharingSystem]) -> int | None:
    """Return how much of a card's memory an allocation is, for one whose card is not known."""
    found = (system.memory_of(allocation, inventory) for system in known)
    return next((memory for memory in found if memory is not None), None)


def signs_of(known: Iterable[SharingSystem]) -> tuple[str, ...]:
    return tuple(sign for system in known for sign in system.signs)


def node_labels_of(known: Iterable[SharingSystem]) -> tuple[str, ...]:
    return tuple(name for system in known for name in system.node_labels)


def node_annotations_of(known: Iterable[SharingSystem]) -> frozenset[str]:
    return frozenset(name for system in known for name in system.node_annotations)


def annotations_of(known: Iterable[SharingSystem]) -> tuple[str, ...]:
    """Return prefixes of all annotations that are read or are a sign."""
    return tuple(sorted({name for system in known for name in (*system.annotations, *system.signs)}))
