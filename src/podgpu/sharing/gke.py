"""Google's device plugin on GKE: `nvidiaN` is /dev/nvidiaN, which need not be the N-th card.

`nvidia0/gi3` is a MIG instance, `nvidia0/vgpu1` one of several replicas of a card, `nvidia0/gi3/vgpu1` one of an
instance. A container's share is its part of all replicas, in use or not. The ids are the same for time-sharing and for
MPS, which limits a container to its part of memory and threads.
"""

import re
from collections.abc import Iterator, Sequence
from functools import partial

from podgpu.model import Allocation, Claim, Device
from podgpu.sharing import kube_cards
from podgpu.sharing.inventory import MIB, Inventory
from podgpu.sharing.system import SharingSystem

NAME = "gke"
RESOURCE = "nvidia.com/gpu"
SHARED_CLIENTS = "cloud.google.com/gke-max-shared-clients-per-gpu"  # on the node
COMPUTE_INSTANCE = 0  # the only one of a GPU instance that the plugin hands out
UNLIMITED = "whether MPS limits those who share a card shows only while a process of theirs is on it"

_ID = re.compile(r"nvidia(?P<minor>[0-9]{1,4})(?:/gi(?P<gi>[0-9]{1,4}))?(?:/vgpu(?P<number>[0-9]{1,4}))?")


def explains(allocation: Allocation, inventory: Inventory) -> bool:
    return _device(inventory, allocation.resource, allocation.device_id) is not None


def claims(inventory: Inventory) -> Iterator[Claim]:
    replicas = inventory.parts(partial(_replica, inventory), SHARED_CLIENTS)
    for device, held in _holdings(inventory):
        is_replica = _replica(inventory, held[0].resource, held[0].device_id) is not None
        if is_replica and inventory.served.get(device) and replicas[device]:
            yield _limited(device, held, replicas[device], inventory)
            continue
        share = (1 / replicas[device] if replicas[device] else 0.0) if is_replica else 1.0
        for allocation in held:
            yield inventory.claim(allocation, device, system=NAME, share=share)


def doubts(inventory: Inventory) -> Iterator[str]:
    shared = (device for device, held in _holdings(inventory) if _replica(inventory, RESOURCE, held[0].device_id))
    if any(device in inventory.gpus and device not in inventory.served for device in shared):
        yield UNLIMITED


def cards(inventory: Inventory) -> Iterator[Device]:
    """Yield what ids name: cards by their numbers in /dev, and MIG instances by the plugin's names."""
    ids = (_ID.fullmatch(held.device_id) for held in inventory.allocations if held.resource == RESOURCE)
    for match in filter(None, ids):
        name, place = f"nvidia{match['minor']}/gi{match['gi']}", (int(match["gi"] or 0), COMPUTE_INSTANCE)
        instances = [kube_cards.instance(name, place=place)] if match["gi"] else []
        yield kube_cards.card(number=int(match["minor"]), instances=instances)


def _holdings(inventory: Inventory) -> Iterator[tuple[str, list[Allocation]]]:
    """Yield what each container has of each card or instance."""
    holdings: dict[tuple[str, str, str, str], list[Allocation]] = {}
    for allocation in inventory.allocations:
        if device := _device(inventory, allocation.resource, allocation.device_id):
            holdings.setdefault((*allocation.names, device), []).append(allocation)
    return ((device, held) for (*_, device), held in holdings.items())


def _limited(device: str, held: Sequence[Allocation], replicas: int, inventory: Inventory) -> Claim:
    """A container's limits are those of all its replicas together, in whole MiB and whole per cent."""
    number, memory = len(held), inventory.memory.get(device)
    return inventory.claim(
        held[0],
        device,
        system=NAME,
        share=number / replicas,
        memory=None if memory is None else memory * number // replicas // MIB * MIB,
        cores=number * 100 // replicas / 100 or None,
        device_id=", ".join(allocation.device_id for allocation in held),
    )


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


SYSTEM = SharingSystem(
    name=NAME,
    signs=(),
    needs="device ids like nvidia0, by the number in /dev",
    explains=explains,
    claims=claims,
    doubts=doubts,
    cards=cards,
    node_labels=(SHARED_CLIENTS,),
)
