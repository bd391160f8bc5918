"""How GPUs are shared: one file or folder per system, found by itself.

A system turns the device ids, resources and annotations it understands into claims.
"""

import pkgutil
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from importlib import import_module
from typing import Protocol, runtime_checkable

from podgpu.model import Allocation, Claim, SharingStatus
from podgpu.sharing.inventory import Host, Inventory, Observation

PART = "sharing"  # under which its errors are counted
TENANTS_WORD = ("annotation", "cache")  # sources that whoever may edit the pod may write


class SharingSystem(Protocol):
    """A module of this package with these names.

    `SIGNS` are beginnings of names that give the system away: of resources, of drivers, of annotations and labels on
    pods. `NEEDS` says what it takes to book by it, for whom a sign is all there is.
    """

    NAME: str
    SIGNS: tuple[str, ...]
    NEEDS: str

    def explains(self, allocation: Allocation, inventory: Inventory) -> bool:
        """Whether the id of this allocation is one of the system's own."""

    def claims(self, inventory: Inventory) -> Iterable[Claim]: ...


@runtime_checkable
class Withdrawing(Protocol):
    """A system that knows better than another, and takes back what that one claims."""

    def withdraws(self, claim: Claim, inventory: Inventory) -> bool: ...


@runtime_checkable
class Yielding(Protocol):
    """A system that speaks only for containers of which no other one's note or file tells anything."""

    YIELDS: bool


@runtime_checkable
class Observing(Protocol):
    """A system that leaves something to read on the node itself."""

    def observe(self, host: Host) -> Observation: ...


def systems() -> tuple[SharingSystem, ...]:
    names = sorted(module.name for module in pkgutil.iter_modules(__path__) if module.name != "inventory")
    return tuple(import_module(f"{__name__}.{name}") for name in names)


def claims(inventory: Inventory, known: Iterable[SharingSystem]) -> tuple[Claim, ...]:
    known = tuple(known)
    found = [claim for system in known for claim in system.claims(inventory)]
    better = [system for system in known if isinstance(system, Withdrawing)]
    left = [claim for claim in found if not any(one.withdraws(claim, inventory) for one in better)]
    modest = {system.NAME for system in known if isinstance(system, Yielding)}
    noted = {claim.container for claim in left if claim.source in TENANTS_WORD}
    left = [claim for claim in left if claim.system not in modest or claim.container not in noted]
    return tuple(_within_what_was_given(left))


def _within_what_was_given(claims: Sequence[Claim]) -> Iterator[Claim]:
    """Leave out what a tenant's word says of a card that another pod was given as a whole."""
    whole: dict[str, set[tuple[str, str]]] = {}
    for claim in claims:
        if claim.source not in TENANTS_WORD and not claim.mig and claim.share >= 1:
            whole.setdefault(claim.gpu, set()).add((claim.container.namespace, claim.container.pod))
    for claim in claims:
        pod = (claim.container.namespace, claim.container.pod)
        if claim.source not in TENANTS_WORD or not whole.get(claim.gpu, set()) - {pod}:
            yield claim


def unclaimed(inventory: Inventory, known: Iterable[SharingSystem]) -> tuple[Allocation, ...]:
    """List the allocations of GPU resources that no system understands."""
    known = tuple(known)
    signs = tuple(sign for system in known for sign in system.SIGNS)
    return tuple(
        allocation
        for allocation in (*inventory.allocations, *inventory.dynamic_allocations)
        if _is_gpu(allocation.resource, signs)
        and not any(one.explains(allocation, inventory) for one in known)
    )


def statuses(
    inventory: Inventory, claims: Iterable[Claim], known: Iterable[SharingSystem]
) -> tuple[SharingStatus, ...]:
    """Say which systems were found, and what is missing where there is a sign but no claim.

    A resource that another system claims by is no sign: an instance of MIG may be handed out in replicas.
    """
    claims = tuple(claims)
    counts = Counter(claim.system for claim in claims)
    names = _names(inventory) - {claim.resource for claim in claims}
    found = [SharingStatus(system=name, claims=count) for name, count in counts.items()]
    found += [
        SharingStatus(system=system.NAME, missing=system.NEEDS)
        for system in known
        if system.NAME not in counts and any(name.startswith(system.SIGNS) for name in names)
    ]
    return tuple(sorted(found, key=lambda status: status.system))


def observed(host: Host, known: Iterable[SharingSystem]) -> Observation:
    seen = [system.observe(host) for system in known if isinstance(system, Observing)]
    return Observation(
        vgpus=tuple(vgpu for one in seen for vgpu in one.vgpus),
        errors=sum((one.errors for one in seen), Counter()),
    )


def _is_gpu(resource: str, signs: tuple[str, ...]) -> bool:
    """Device plugins also hand out network cards and the like."""
    vendor, _, name = resource.partition("/")
    return "gpu" in name or "nvidia" in vendor or resource.startswith(signs)


def _names(inventory: Inventory) -> set[str]:
    """Collect whatever may be a sign."""
    names = {resource for resource, _ in inventory.allocatable}
    names |= {one.resource for one in (*inventory.allocations, *inventory.dynamic_allocations)}
    for pod in inventory.pods:
        if not pod.finished:
            names.update(pod.annotations, pod.labels, *(one.limits for one in pod.containers))
    return names
