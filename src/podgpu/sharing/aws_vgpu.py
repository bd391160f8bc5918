"""Amazon's virtual GPU plugin: `UUID-N` is one of several parts of a card, under a resource of its own.

A container's share is what it holds of all parts, held or not.
"""

import re
from collections.abc import Iterator
from functools import partial

from podgpu.model import Allocation, Claim, Device
from podgpu.sharing import kube_cards
from podgpu.sharing.inventory import Inventory

NAME = "aws-vgpu"
RESOURCE = "k8s.amazonaws.com/vgpu"
SIGNS: tuple[str, ...] = (RESOURCE,)
NEEDS = "device ids like UUID-N"

_ID = re.compile(r"(?P<card>.+)-(?P<number>[0-9]{1,6})")


def explains(allocation: Allocation, inventory: Inventory) -> bool:
    return _part(inventory, allocation.resource, allocation.device_id) is not None


def claims(inventory: Inventory) -> Iterator[Claim]:
    parts = inventory.parts(partial(_part, inventory))
    for allocation in inventory.allocations:
        part = _part(inventory, allocation.resource, allocation.device_id)
        if part:
            card, _ = part
            yield inventory.claim(
                allocation, card, system=NAME, share=1 / parts[card] if parts[card] else 0.0
            )


def cards(inventory: Inventory) -> Iterator[Device]:
    found = (_ID.fullmatch(one.device_id) for one in inventory.allocations if one.resource == RESOURCE)
    named = dict.fromkeys(one["card"] for one in found if one)
    yield from (kube_cards.card(one) for one in named if kube_cards.UUID.fullmatch(one))


def _part(inventory: Inventory, resource: str, device_id: str) -> tuple[str, int] | None:
    """Return the UUID of the card, and which of its parts it is."""
    found = _ID.fullmatch(device_id) if resource == RESOURCE else None
    return (found["card"], int(found["number"])) if found and found["card"] in inventory.gpus else None
