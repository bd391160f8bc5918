"""Containers that were given something, while no note says of which card: it was struck out, or makes no sense.

Where there is only one card, that one is meant. Among several the container's processes show which.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import combinations
from math import comb

from podgpu.model import Allocation, Claim
from podgpu.sharing.alternatives import Alternatives
from podgpu.sharing.inventory import Inventory

Unplaced = Callable[
    [Inventory], Iterable[Allocation]
]  # one of each container; its `units` are the cards it has
MOST_READINGS = 128
UNDECIDED = "the notes of {count} name no card; it counts as soon as a process runs on one"


def alternatives(inventory: Inventory, systems: Mapping[str, Unplaced]) -> Iterator[Alternatives]:
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
                yield Alternatives(readings=tuple(readings), doubt=UNDECIDED, is_floor=True)


def placed(
    found: Iterable[Claim],
    inventory: Inventory,
    systems: Mapping[str, Unplaced],
    settled: Mapping[Alternatives, int],
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
