"""Amazon's virtual GPU plugin: `UUID-N` is one of several parts of a card, under a resource of its own.

A container's share is what it holds of all parts, held or not.
"""

from collections import Counter
from collections.abc import Iterator

from podgpu.model import Allocation, Claim
from podgpu.sharing.inventory import Inventory

NAME = "aws-vgpu"
RESOURCE = "k8s.amazonaws.com/vgpu"
SIGNS: tuple[str, ...] = (RESOURCE,)
NEEDS = "device ids like UUID-N"
SEPARATOR = "-"


def explains(allocation: Allocation, inventory: Inventory) -> bool:
    return _card(allocation.resource, allocation.device_id, inventory) is not None


def claims(inventory: Inventory) -> Iterator[Claim]:
    parts = _parts(inventory)
    for allocation in inventory.allocations:
        card = _card(allocation.resource, allocation.device_id, inventory)
        if card:
            yield inventory.claim(allocation, card, system=NAME, share=1 / parts[card])


def _card(resource: str, device_id: str, inventory: Inventory) -> str | None:
    card, _, part = device_id.rpartition(SEPARATOR)
    is_own = resource == RESOURCE and card in inventory.gpus and part.isascii() and part.isdigit()
    return card if is_own else None


def _parts(inventory: Inventory) -> Counter[str | None]:
    """Count what the plugin offers and, as that is empty after a kubelet restart, what is given out."""
    ids = {*inventory.allocatable, *((one.resource, one.device_id) for one in inventory.allocations)}
    return Counter(_card(resource, device_id, inventory) for resource, device_id in ids)
