"""What one container may have, where what a system left on the node can be read in more than one way.

Or in none: a container was given something, while no note says of which card, since it was struck out or is nonsense.
Where there is only one card, that one is meant. Among several the container's processes show which.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations
from math import comb
from typing import TypeAlias

from msgspec.structs import replace

from podgpu.model import Allocation, Claim, ContainerRef
from podgpu.sharing.inventory import Inventory

# One allocation of each container; its `units` are the cards that it has.
Unplaced: TypeAlias = Callable[[Inventory], Iterable[Allocation]]
MOST_READINGS = 128
UNDECIDED = "the notes of {count} name no card; it counts as soon as a process runs on one"
# Who asks, and the cards that each reading names: as long as these are the same, so is the answer.
AmbiguityKey: TypeAlias = tuple[str, ContainerRef, tuple[frozenset[str], ...]]


@dataclass(frozen=True, kw_only=True, eq=False)
class AmbiguousClaims:
    """A container's claims by each reading: at least one by each, and never the same cards.

    `usual` is the reading that the system claims by unless the container's processes are seen on the cards of another.
    Without a usual one nothing is claimed until they are seen. `doubt` is what to say meanwhile, with `{count}` for the
    number of containers. One that `is_floor` counts only where nothing else is claimed for the container. One is equal
    to itself alone, so that it costs nothing to look up.
    """

    readings: tuple[tuple[Claim, ...], ...]
    usual: int | None = None
    doubt: str = ""
    is_floor: bool = False

    @property
    def container(self) -> ContainerRef:
        return self.readings[0][0].container

    @property
    def system(self) -> str:
        return self.readings[0][0].system

    @cached_property
    def cards(self) -> tuple[frozenset[str], ...]:
        return tuple(frozenset(claim.gpu for claim in reading) for reading in self.readings)

    @cached_property
    def question(self) -> AmbiguityKey:
        return self.system, self.container, self.cards

    def settled(self, right: int) -> Iterator[Claim]:
        """Yield the claims of the right reading, with the cards that the others would have named."""
        others = sorted(frozenset().union(*self.cards) - self.cards[right])
        yield from (replace(claim, ruled_out=tuple(others)) for claim in self.readings[right])


def among_cards(inventory: Inventory, systems: Mapping[str, Unplaced]) -> Iterator[AmbiguousClaims]:
    """Yield a reading for each choice of cards, none of them usual, for each container."""
    if len(inventory.cards) < 2 or not inventory.is_seen:
        return
    whole = {one.device_id for one in inventory.allocations}
    cards = [one for one in inventory.cards if one not in whole and not inventory.migs[one]]
    for system, unplaced in systems.items():
        for allocation in unplaced(inventory):
            if 1 < comb(len(cards), allocation.units) <= MOST_READINGS:
                choices = combinations(cards, allocation.units)
                readings = (tuple(_claims(allocation, chosen, system, inventory)) for chosen in choices)
                yield AmbiguousClaims(readings=tuple(readings), doubt=UNDECIDED, is_floor=True)


def placed(
    found: Iterable[Claim],
    inventory: Inventory,
    systems: Mapping[str, Unplaced],
    settled: Mapping[AmbiguousClaims, int],
) -> Iterator[Claim]:
    """Claim for those that nobody else claims for, on the only card or where their processes are."""
    claimed = {claim.container for claim in found}
    for one, right in settled.items():
        if one.is_floor and one.container not in claimed:
            claimed.add(one.container)
            yield from one.readings[right]
    if len(inventory.cards) != 1 or inventory.instances or not inventory.is_seen:
        return
    for system, unplaced in systems.items():
        for allocation in unplaced(inventory):
            (claim,) = _claims(allocation, inventory.cards, system, inventory)
            if claim.container not in claimed:
                claimed.add(claim.container)
                yield claim


def _claims(
    allocation: Allocation, cards: Iterable[str], system: str, inventory: Inventory
) -> Iterator[Claim]:
    return (inventory.claim(allocation, card, system=system, share=0.0) for card in cards)
