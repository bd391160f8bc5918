"""MIG instances: the device plugin's id is the instance's UUID."""

from collections.abc import Iterator

from podgpu.model import Allocation, Claim
from podgpu.sharing.inventory import Inventory

NAME = "mig"
SIGNS: tuple[str, ...] = ("nvidia.com/mig-",)
NEEDS = "device ids that are the UUID of a MIG instance of this node"


def explains(allocation: Allocation, inventory: Inventory) -> bool:
    return allocation.device_id in inventory.instances


def claims(inventory: Inventory) -> Iterator[Claim]:
    for allocation in inventory.allocations:
        if explains(allocation, inventory):
            yield inventory.claim(allocation, allocation.device_id, system=NAME)
