"""Time-slicing by NVIDIA's device plugin: `UUID::N` is one of several replicas of a card or instance.

A container's share is what it holds of all replicas, held or not.
"""

from collections import Counter
from collections.abc import Iterator

from podgpu.model import Allocation, Claim
from podgpu.sharing.inventory import Inventory

NAME = "time-slicing"
SIGNS: tuple[str, ...] = ("nvidia.com/gpu.shared",)
NEEDS = "device ids like UUID::N"
SEPARATOR = "::"


def explains(allocation: Allocation, inventory: Inventory) -> bool:
    device, separator, replica = allocation.device_id.partition(SEPARATOR)
    known = device in inventory.gpus or device in inventory.instances
    return known and bool(separator) and replica.isdigit()


def claims(inventory: Inventory) -> Iterator[Claim]:
    replicas = _replicas(inventory)
    for allocation in inventory.allocations:
        if explains(allocation, inventory):
            device = allocation.device_id.partition(SEPARATOR)[0]
            share = 1 / replicas[allocation.resource, device]
            yield inventory.claim(allocation, device, system=NAME, share=share)


def _replicas(inventory: Inventory) -> Counter[tuple[str, str]]:
    """Count what the plugin offers and, as it is empty after a kubelet restart, what is given out."""
    ids = {(resource, device_id) for resource, device_id in inventory.allocatable}
    ids |= {(one.resource, one.device_id) for one in inventory.allocations}
    return Counter((resource, device_id.partition(SEPARATOR)[0]) for resource, device_id in ids)
