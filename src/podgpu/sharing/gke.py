"""Google's device plugin on GKE: `nvidiaN` is /dev/nvidiaN, which need not be the N-th card.

`nvidia0/gi3` is a MIG instance, `nvidia0/vgpu1` one of several replicas of a card, `nvidia0/gi3/vgpu1` one of an
instance. A container's share is what it holds of all replicas, held or not.
"""

import re
from collections.abc import Iterator
from functools import partial

from podgpu.model import Allocation, Claim
from podgpu.sharing.inventory import Inventory

NAME = "gke"
SIGNS: tuple[str, ...] = ()
NEEDS = "device ids like nvidia0, by the number in /dev"
RESOURCE = "nvidia.com/gpu"
COMPUTE_INSTANCE = 0  # of a GPU instance the plugin hands out this one alone

_ID = re.compile(r"nvidia(?P<minor>[0-9]{1,4})(?:/gi(?P<gi>[0-9]{1,4}))?(?:/vgpu(?P<number>[0-9]{1,4}))?")


def explains(allocation: Allocation, inventory: Inventory) -> bool:
    return _device(inventory, allocation.resource, allocation.device_id) is not None


def claims(inventory: Inventory) -> Iterator[Claim]:
    replicas = inventory.parts(partial(_replica, inventory))
    for allocation in inventory.allocations:
        device = _device(inventory, allocation.resource, allocation.device_id)
        if device:
            is_replica = _replica(inventory, allocation.resource, allocation.device_id) is not None
            share = 1 / replicas[device] if is_replica else 1.0
            yield inventory.claim(allocation, device, system=NAME, share=share)


def _device(inventory: Inventory, resource: str, device_id: str) -> str | None:
    """Return the UUID of the card or the MIG instance, if this node has it."""
    found = _ID.fullmatch(device_id) if resource == RESOURCE else None
    card = inventory.by_minor.get(found["minor"]) if found else None
    if found is None or card is None or found["gi"] is None:
        return card
    return inventory.mig_names.get(f"MIG-{card}/{found['gi']}/{COMPUTE_INSTANCE}")


def _replica(inventory: Inventory, resource: str, device_id: str) -> tuple[str, int] | None:
    """Return what the id is a replica of, and which one."""
    device, found = _device(inventory, resource, device_id), _ID.fullmatch(device_id)
    return (device, int(found["number"])) if device and found and found["number"] else None
