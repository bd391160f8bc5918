"""How GPUs are shared: one file or folder per system, found by itself.

A system turns the device ids, resources and annotations it understands into claims.
"""

import pkgutil
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from importlib import import_module
from types import ModuleType

from podgpu.model import Allocation, Claim, SharingStatus
from podgpu.sharing.inventory import Host, Inventory, Observation

PART = "sharing"  # under which its errors are counted
SHARED = ("inventory", "quantity")  # modules that are no system
WRITTEN_BY_TENANTS = ("annotation", "cache")  # sources that anyone who may edit the pod can write


@dataclass(frozen=True, kw_only=True)
class SharingSystem:
    """A module of this package, by the names it must have and those it may have.

    `signs` are prefixes of names that give the system away: of resources, of drivers, of annotations and labels on
    pods. `needs` says what podgpu needs to book by it. `explains` says whether an allocation has one of the system's
    own ids. A system that `yields` makes no claim for a container that another system's note or file covers.
    """

    name: str
    signs: tuple[str, ...]
    needs: str
    explains: Callable[[Allocation, Inventory], bool]
    claims: Callable[[Inventory], Iterable[Claim]]
    withdraws: Callable[[Claim, Inventory], bool] | None = None
    observe: Callable[[Host], Observation] | None = None
    doubts: Callable[[Inventory], Iterable[str]] | None = None
    yields: bool = False


def systems() -> tuple[SharingSystem, ...]:
    names = sorted(module.name for module in pkgutil.iter_modules(__path__) if module.name not in SHARED)
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
        yields=getattr(module, "YIELDS", False),
    )


def claims(inventory: Inventory, known: Iterable[SharingSystem]) -> tuple[Claim, ...]:
    known = tuple(known)
    found = [claim for system in known for claim in system.claims(inventory)]
    better = [system.withdraws for system in known if system.withdraws]
    left = [claim for claim in found if not any(withdraws(claim, inventory) for withdraws in better)]
    yielding = {system.name for system in known if system.yields}
    noted = {claim.container for claim in left if claim.source in WRITTEN_BY_TENANTS}
    left = [claim for claim in left if claim.system not in yielding or claim.container not in noted]
    return tuple(_within_what_was_given(left))


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


def unclaimed(inventory: Inventory, known: Iterable[SharingSystem]) -> tuple[Allocation, ...]:
    """List the allocations of GPU resources that no system understands."""
    known = tuple(known)
    signs = tuple(sign for system in known for sign in system.signs)
    return tuple(
        allocation
        for allocation in (*inventory.allocations, *inventory.dynamic_allocations)
        if _is_gpu(allocation.resource, signs)
        and not any(one.explains(allocation, inventory) for one in known)
    )


def statuses(
    inventory: Inventory, claims: Iterable[Claim], known: Iterable[SharingSystem]
) -> tuple[SharingStatus, ...]:
    """List the systems that were found, with what is missing where there is a sign but no claim.

    A resource that another system has claims for is no sign: MIG instances may be handed out as replicas.
    """
    claims, known = tuple(claims), tuple(known)
    counts = Counter(claim.system for claim in claims)
    names = _names(inventory) - {claim.resource for claim in claims}
    doubts = {system.name: tuple(system.doubts(inventory)) for system in known if system.doubts}
    found = [
        SharingStatus(system=name, claims=count, doubts=doubts.get(name, ()))
        for name, count in counts.items()
    ]
    found += [
        SharingStatus(system=system.name, missing=system.needs, doubts=doubts.get(system.name, ()))
        for system in known
        if system.name not in counts and any(name.startswith(system.signs) for name in names)
    ]
    return tuple(sorted(found, key=lambda status: status.system))


def observed(host: Host, known: Iterable[SharingSystem]) -> Observation:
    seen = [system.observe(host) for system in known if system.observe]
    return Observation(
        vgpus=tuple(vgpu for one in seen for vgpu in one.vgpus),
        errors=sum((one.errors for one in seen), Counter()),
    )


def _is_gpu(resource: str, signs: tuple[str, ...]) -> bool:
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
