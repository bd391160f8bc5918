"""Whole GPUs: the device plugin's id is the card's UUID."""

from collections.abc import Iterator

from podgpu.model import Allocation, Claim
from podgpu.sharing.inventory import Inventory

NAME = "exclusive"
SIGNS: tuple[str, ...] = ()
NEEDS = "device ids that are the UUID of a card of this node"


def explains(allocation: Allocation, inventory: Inventory) -> bool:
    return allocation.device_id in inventory.gpus


def claims(inventory: Inventory) -> Iterator[Claim]:
    for allocation in inventory.allocations:
        if explains(allocation, inventory):
            yield inventory.claim(allocation, allocation.device_id, system=NAME)
