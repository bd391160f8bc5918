"""MIG instances: the device plugin's id is the instance's UUID, or its place on the card with old drivers.

The resource is `nvidia.com/gpu` where all instances of the node are alike, or there is one for each profile.
"""

from collections.abc import Iterator

from podgpu.model import Allocation, Claim
from podgpu.sharing.inventory import Inventory

NAME = "mig"
SIGNS: tuple[str, ...] = ("nvidia.com/mig-",)
NEEDS = "device ids that are the UUID of a MIG instance of this node"


def explains(allocation: Allocation, inventory: Inventory) -> bool:
    return allocation.device_id in inventory.mig_names


def claims(inventory: Inventory) -> Iterator[Claim]:
    for allocation in inventory.allocations:
        instance = inventory.mig_names.get(allocation.device_id)
        if instance:
            yield inventory.claim(allocation, instance, system=NAME)
