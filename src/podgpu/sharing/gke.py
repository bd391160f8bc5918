"""Google's device plugin on GKE: `nvidiaN` is /dev/nvidiaN, which need not be the N-th card.

`nvidia0/gi3` is a MIG instance, `nvidia0/vgpu1` one of several replicas of a card, `nvidia0/gi3/vgpu1` one of an
instance. A container's share is what it holds of all replicas, held or not. The ids are the same for time-sharing and
for MPS, which keeps a container to its part of memory and threads.
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
COMPUTE_INSTANCE = 0  # of a GPU instance the plugin hands out this one alone
UNLIMITED = "whether MPS limits those who share a card shows only while a process of theirs is on it"

_ID = re.compile(r"nvidia(?P<minor>[0-9]{1,4})(?:/gi(?P<gi>[0-9]{1,4}))?(?:/vgpu(?P<number>[0-9]{1,4}))?")


def explains(allocation: Allocation, inventory: Inventory) -> bool:
    return _device(inventory, allocation.resource, allocation.device_id) is not None


def claims(inventory: Inventory) -> Iterator[Claim]:
    replicas = inventory.parts(partial(_replica, inventory), SHARED_CLIENTS)
    for device, given in _given(inventory):
        is_replica = _replica(inventory, given[0].resource, given[0].device_id) is not None
        if is_replica and inventory.served.get(device) and replicas[device]:
            yield _limited(device, given, replicas[device], inventory)
            continue
        share = (1 / replicas[device] if replicas[device] else 0.0) if is_replica else 1.0
        for allocation in given:
            yield inventory.claim(allocation, device, system=NAME, share=share)


def doubts(inventory: Inventory) -> Iterator[str]:
    shared = (device for device, given in _given(inventory) if _replica(inventory, RESOURCE, given[0].device_id))
    if any(device in inventory.gpus and device not in inventory.served for device in shared):
        yield UNLIMITED


def cards(inventory: Inventory) -> Iterator[Device]:
    """Yield what ids name: cards by their numbers in /dev, and MIG instances by the plugin's names."""
    ids = (_ID.fullmatch(given.device_id) for given in inventory.allocations if given.resource == RESOURCE)
    for match in filter(None, ids):
        name, place = f"nvidia{match['minor']}/gi{match['gi']}", (int(match["gi"] or 0), COMPUTE_INSTANCE)
        instances = [kube_cards.instance(name, place=place)] if match["gi"] else []
        yield kube_cards.card(number=int(match["minor"]), instances=instances)


def _given(inventory: Inventory) -> Iterator[tuple[str, list[Allocation]]]:
    """Yield what each container has of each card or instance."""
    given: dict[tuple[str, str, str, str], list[Allocation]] = {}
    for allocation in inventory.allocations:
        if device := _device(inventory, allocation.resource, allocation.device_id):
            holder = allocation.namespace, allocation.pod, allocation.container
            given.setdefault((*holder, device), []).append(allocation)
    return ((device, held) for (*_, device), held in given.items())


def _limited(device: str, given: Sequence[Allocation], replicas: int, inventory: Inventory) -> Claim:
    """A container's limits are those of all its replicas together, in whole MiB and whole per cent."""
    held, memory = len(given), inventory.memory.get(device)
    return inventory.claim(
        given[0],
        device,
        system=NAME,
        share=held / replicas,
        memory=None if memory is None else memory * held // replicas // MIB * MIB,
        cores=held * 100 // replicas / 100 or None,
        device_id=", ".join(allocation.device_id for allocation in given),
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
