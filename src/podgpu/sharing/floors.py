"""What a container holds at least, whatever its annotations say or no longer say.

The kubelet's ids, and the spec where there are none, say how many cards or MIG instances a container has. An annotation
says which. If one is missing, or names fewer, the others are those on which the container's processes run, or all that
it can be. What is still left has no card: that is said, and never guessed.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass

from msgspec.structs import replace

from podgpu.model import Allocation, Claim, ContainerRef, UnplacedHolding
from podgpu.model.kube import grouped
from podgpu.sharing.inventory import Inventory
from podgpu.sharing.system import SharingSystem

ANNOTATION = "annotation"
WRITTEN_BY_TENANTS = (ANNOTATION, "cache")  # sources that anyone who may edit the pod can write

Places = Mapping[ContainerRef, frozenset[str]]  # the cards and MIG instances that containers were seen on


@dataclass(frozen=True, kw_only=True, eq=False)
class AllocatedHolding:
    """`allocation` is one of a container's ids; its `units` are how many cards or instances the container has.

    `places` are the cards and MIG instances that they may be.
    """

    system: str
    container: ContainerRef
    allocation: Allocation
    places: frozenset[str]

    def missing(self, claims: Collection[Claim]) -> int:
        """Return how many of them none of the container's `claims` is about.

        None is missing if another system knows the ids. Its annotation is no proof of that: anyone can write one.
        """
        resource = self.allocation.resource
        if any(claim.system != self.system and claim.resource == resource and _is_proven(claim) for claim in claims):
            return 0
        own = {claim.mig or claim.gpu for claim in claims if claim.system == self.system}
        return self.allocation.units - len(own)


def _is_proven(claim: Claim) -> bool:
    return claim.source not in WRITTEN_BY_TENANTS


def holdings(
    inventory: Inventory, systems: Iterable[SharingSystem], unproven: Collection[str]
) -> tuple[AllocatedHolding, ...]:
    """`unproven` are resources whose ids seem to name a card, but do not."""
    if not inventory.is_seen:
        return ()
    given = {held.device_id for held in inventory.allocations if held.resource not in unproven}
    given |= {uuid for name, uuid in inventory.mig_names.items() if name in given}
    cards = [card for card in inventory.cards if card not in given]
    instances = {mig.uuid for card in cards for mig in inventory.migs[card]}
    places = frozenset(card for card in cards if not inventory.migs[card]) | (instances - given)
    return tuple(
        AllocatedHolding(system=system.name, container=inventory.container(held), allocation=held, places=places)
        for system in systems
        for held in system.holdings(inventory)
    )


def placed(
    holdings: Iterable[AllocatedHolding], claims: Iterable[Claim], inventory: Inventory, seen: Places
) -> list[Claim]:
    """Return claims on what no other claim is about: where its processes run, or on all that it can be.

    A share of a card has no size yet. An instance is held as a whole.
    """
    found: list[Claim] = []
    by_container = grouped(claims, lambda claim: claim.container)
    for holding in holdings:
        claimed = by_container.setdefault(holding.container, [])
        free = holding.places - {claim.mig or claim.gpu for claim in claimed}
        missing = holding.missing(claimed)
        is_all = len(free) == missing and not inventory.instances
        shown = free if is_all else free & seen.get(holding.container, frozenset())
        for place in sorted(shown) if len(shown) <= missing else ():
            share = 1.0 if place in inventory.instances else 0.0
            claim = inventory.claim(holding.allocation, place, system=holding.system, share=share)
            claimed.append(claim)
            found.append(claim)
    return found


def unplaced(holdings: Iterable[AllocatedHolding], claims: Iterable[Claim]) -> tuple[UnplacedHolding, ...]:
    """Return what is on no known card."""
    found: dict[ContainerRef, UnplacedHolding] = {}
    by_container = grouped(claims, lambda claim: claim.container)
    for holding in holdings:
        missing = holding.missing(by_container.get(holding.container, ()))
        held = holding.allocation
        if missing > 0 and holding.container not in found:
            found[holding.container] = UnplacedHolding(
                container=holding.container,
                system=holding.system,
                resource=held.resource,
                device_id=held.device_id,
                devices=missing,
            )
    return tuple(found.values())


def raised(claim: Claim, share: float, least_memory: int | None, least_cores: float | None) -> Claim:
    """Raise a claim to at least these values. An absent limit is already the highest."""
    memory, cores = claim.memory_limit_bytes, claim.core_limit_ratio
    return replace(
        claim,
        share=max(claim.share, min(share, 1.0)),
        memory_limit_bytes=None if memory is None else max(memory, least_memory or 0),
        core_limit_ratio=None if cores is None else max(cores, min(least_cores or 0.0, 1.0)),
    )


def at_least(found: Iterable[Claim], inventory: Inventory, systems: Iterable[SharingSystem]) -> Iterator[Claim]:
    """Let no annotation lower a claim below what the spec asks for and the kubelet allocated."""
    minimums = {system.name: system.minimum for system in systems}
    for claim in found:
        minimum = minimums.get(claim.system)
        least = minimum(claim, inventory) if minimum and not claim.mig else None
        yield raised(claim, least.share, least.memory, least.cores) if least else claim
