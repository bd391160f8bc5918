"""Google's device plugin on GKE: `nvidiaN` is /dev/nvidiaN, which need not be the N-th card.

`nvidia0/gi3` is a MIG instance, `nvidia0/vgpu1` one of several replicas of a card, `nvidia0/gi3/vgpu1` one of an
instance. A container's share is what it holds of all replicas, held or not.
"""

import re
from collections import Counter
from collections.abc import Iterator

from podgpu.model import Allocation, Claim
from podgpu.sharing.inventory import Inventory

NAME = "gke"
SIGNS: tuple[str, ...] = ()
NEEDS = "device ids like nvidia0, by the number in /dev"
RESOURCE = "nvidia.com/gpu"
COMPUTE_INSTANCE = 0  # of a GPU instance the plugin hands out this one alone

_ID = re.compile(
    r"(?P<device>nvidia(?P<minor>[0-9]{1,4})(?:/gi(?P<gi>[0-9]{1,4}))?)(?P<replica>/vgpu[0-9]+)?"
)


def explains(allocation: Allocation, inventory: Inventory) -> bool:
    return allocation.resource == RESOURCE and _device(allocation.device_id, inventory) is not None


def claims(inventory: Inventory) -> Iterator[Claim]:
    replicas = _replicas(inventory)
    for allocation in inventory.allocations:
        device = _device(allocation.device_id, inventory) if allocation.resource == RESOURCE else None
        if device:
            share = 1 / replicas.get(_replicated(allocation.device_id), 1)
            yield inventory.claim(allocation, device, system=NAME, share=share)


def _device(device_id: str, inventory: Inventory) -> str | None:
    """Return the UUID of the card or the MIG instance, if this node has it."""
    found = _ID.fullmatch(device_id)
    card = inventory.by_minor.get(found["minor"]) if found else None
    if found is None or card is None or found["gi"] is None:
        return card
    migs = (one.mig for device in inventory.devices if device.gpu.uuid == card for one in device.instances)
    wanted = (found["gi"], COMPUTE_INSTANCE)
    return next(
        (mig.uuid for mig in migs if (str(mig.gpu_instance_id), mig.compute_instance_id) == wanted), None
    )


def _replicated(device_id: str) -> str:
    """Return what the id is a replica of; nothing if it is none."""
    found = _ID.fullmatch(device_id)
    return found["device"] if found and found["replica"] else ""


def _replicas(inventory: Inventory) -> dict[str, int]:
    """Count what the plugin offers and, as that is empty after a kubelet restart, what is given out."""
    ids = {device_id for resource, device_id in inventory.allocatable if resource == RESOURCE}
    ids |= {one.device_id for one in inventory.allocations if one.resource == RESOURCE}
    counted = Counter(map(_replicated, ids))
    return {device: count for device, count in counted.items() if device}
