"""Replicas by NVIDIA's device plugin: `UUID::N` is one of several of a card or a MIG instance.

A container's share is its part of all replicas, in use or not. The id alone counts: the plugin may give replicas any
resource name. It is the same for time-slicing and for MPS, which limits each client to its part of memory and SMs.
Where cards have no UUIDs, `all::N` is a replica of all of them (WSL), `tegra::N` of the built-in card.
"""

import re
from collections.abc import Iterator

from podgpu.model import Allocation, Claim, Device
from podgpu.model.fit import TIME_SLICE, WantedPart
from podgpu.sharing import kube_cards
from podgpu.sharing.inventory import MIB, VENDOR, Inventory
from podgpu.sharing.system import PartRequest, SharingSystem

NAME = "time-slicing"
MPS = "mps"

_ID = re.compile(r"(?P<device>.+)::(?P<number>[0-9]{1,6})")


def explains(allocation: Allocation, inventory: Inventory) -> bool:
    return bool(_devices(allocation, inventory))


def claims(inventory: Inventory) -> Iterator[Claim]:
    """Claim replicas. An MPS server limits each to its part of the memory, in whole MiB, and of the threads."""
    replicas = inventory.parts(_replica)
    for allocation in inventory.allocations:
        for device in _devices(allocation, inventory):
            name, _ = _replica(allocation.resource, allocation.device_id) or ("", 0)
            number = replicas[name]
            if not (number and inventory.served.get(device)):
                yield inventory.claim(allocation, device, system=NAME, share=1 / number if number else 0.0)
                continue
            total = inventory.memory.get(device)
            memory = None if total is None else total // number // MIB * MIB
            cores = 100 // number / 100 or None
            yield inventory.claim(allocation, device, system=MPS, share=1 / number, memory=memory, cores=cores)


def cards(inventory: Inventory) -> Iterator[Device]:
    found = (_replica(held.resource, held.device_id) for held in inventory.allocations)
    return kube_cards.by_uuid(replica[0] for replica in found if replica)


def _replica(_resource: str, device_id: str) -> tuple[str, int] | None:
    """Return the device that an id is a replica of, and the replica's number."""
    found = _ID.fullmatch(device_id)
    return (found["device"], int(found["number"])) if found else None


def _devices(allocation: Allocation, inventory: Inventory) -> tuple[str, ...]:
    """Return the UUIDs of the cards or the MIG instance, if this node has them."""
    replica = _replica(allocation.resource, allocation.device_id)
    if replica is None:
        return ()
    name, _ = replica
    device = name if name in inventory.gpus else inventory.mig_names.get(name)
    return (device,) if device else inventory.cards_without_names(allocation, name)


def _request_lines(wanted: WantedPart) -> str:
    """Return the device plugin's configuration, which has one number of replicas for all cards of a node."""
    return f"timeSlicing: {{resources: [{{name: {VENDOR}gpu, replicas: {wanted.devices}}}]}}"


SYSTEM = SharingSystem(
    name=NAME,
    signs=("nvidia.com/gpu.shared",),
    needs="device ids like UUID::N",
    explains=explains,
    claims=claims,
    cards=cards,
    request=PartRequest(TIME_SLICE, _request_lines),
)
