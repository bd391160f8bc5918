"""Replicas by NVIDIA's device plugin: `UUID::N` is one of several of a card or a MIG instance.

A container's share is what it holds of all replicas, held or not. The id alone counts: the plugin may give replicas
any resource name. It is the same for time-slicing and for MPS, which keeps each client to its part of memory and SMs.
"""

import re
from collections.abc import Iterator
from functools import partial

import msgspec

from podgpu.model import Allocation, Claim, Device
from podgpu.sharing.inventory import Inventory

NAME = "time-slicing"
MPS = "mps"
SIGNS: tuple[str, ...] = ("nvidia.com/gpu.shared",)
NEEDS = "device ids like UUID::N"
CLIENT, SHARER = "mps", "compute"  # kinds of processes
MODE, ONE_PROCESS = "compute_mode", 3.0

_ID = re.compile(r"(?P<device>.+)::(?P<number>[0-9]{1,6})")


def explains(allocation: Allocation, inventory: Inventory) -> bool:
    return _replica(inventory, allocation.resource, allocation.device_id) is not None


def claims(inventory: Inventory) -> Iterator[Claim]:
    replicas = inventory.parts(partial(_replica, inventory))
    served = {device.gpu.uuid for device in inventory.devices if _is_served(device)}
    for allocation in inventory.allocations:
        replica = _replica(inventory, allocation.resource, allocation.device_id)
        if replica:
            device, _ = replica
            claim = inventory.claim(allocation, device, system=NAME, share=1 / replicas[device])
            yield _limited(claim, replicas[device], inventory) if device in served else claim


def _replica(inventory: Inventory, _resource: str, device_id: str) -> tuple[str, int] | None:
    """Return the UUID of the card or the MIG instance, and which of its replicas it is."""
    found = _ID.fullmatch(device_id)
    if found is None:
        return None
    named = found["device"]
    device = named if named in inventory.gpus else inventory.mig_names.get(named)
    return (device, int(found["number"])) if device else None


def _is_served(device: Device) -> bool:
    """Tell the plugin's MPS by the card's mode, which lets its server alone in; where that is not told, by clients.

    A tenant of a time-sliced card may bring an MPS of its own, which limits nobody: beside it there are others.
    """
    mode = next((one.value for one in device.readings if one.metric == MODE), None)
    if mode is not None:
        return mode == ONE_PROCESS
    sharers = [process.kinds for process in device.processes if SHARER in process.kinds]
    clients = any(CLIENT in process.kinds for process in device.processes)
    return clients and sum(CLIENT not in kinds for kinds in sharers) <= 1


def _limited(claim: Claim, replicas: int, inventory: Inventory) -> Claim:
    """The plugin's MPS server pins a client to one replica's part of the memory, and of the threads."""
    memory = inventory.memory.get(claim.gpu)
    return msgspec.structs.replace(
        claim,
        system=MPS,
        memory_limit_bytes=None if memory is None else memory // replicas,
        core_limit_ratio=1 / replicas,
    )
