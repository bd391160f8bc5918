"""Amazon's virtual GPU plugin: `UUID-N` is one of several parts of a card, under a resource of its own.

A container's share is its part of all parts, in use or not.
"""

import re
from collections.abc import Iterator
from functools import partial

from podgpu.model import Allocation, Claim, Device
from podgpu.sharing import kube_cards
from podgpu.sharing.inventory import Inventory
from podgpu.sharing.system import SharingSystem

NAME = "aws-vgpu"
RESOURCE = "k8s.amazonaws.com/vgpu"

_ID = re.compile(r"(?P<card>.+)-(?P<number>[0-9]{1,6})")


def explains(allocation: Allocation, inventory: Inventory) -> bool:
    return _part(inventory, allocation.resource, allocation.device_id) is not None


def claims(inventory: Inventory) -> Iterator[Claim]:
    parts = inventory.parts(partial(_part, inventory))
    for allocation in inventory.allocations:
        if part := _part(inventory, allocation.resource, allocation.device_id):
            card, _ = part
            share = 1 / parts[card] if parts[card] else 0.0
            yield inventory.claim(allocation, card, system=NAME, share=share)


def cards(inventory: Inventory) -> Iterator[Device]:
    ids = (_ID.fullmatch(held.device_id) for held in inventory.allocations if held.resource == RESOURCE)
    return kube_cards.by_uuid(match["card"] for match in ids if match)


def _part(inventory: Inventory, resource: str, device_id: str) -> tuple[str, int] | None:
    """Return the UUID of the card, and which of its parts it is."""
    found = _ID.fullmatch(device_id) if resource == RESOURCE else None
    return (found["card"], int(found["number"])) if found and found["card"] in inventory.gpus else None


SYSTEM = SharingSystem(
    name=NAME,
    signs=(RESOURCE,),
    needs="device ids like UUID-N",
    explains=explains,
    claims=claims,
    cards=cards,
)
