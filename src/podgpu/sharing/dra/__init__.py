"""Dynamic resource allocation: devices by resource claims, as NVIDIA's and HAMi's DRA drivers hand them out.

Of a device that several containers may use, each has an equal share, unless their claims say what they consume of its
capacity. Then cores are the share, else memory, and both are limits.
"""

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping
from typing import TypeAlias

from msgspec import Struct

from podgpu.model import Allocation, Claim, ContainerRef, Device, DynamicAllocation
from podgpu.sharing.dra.device import HAMI, NVIDIA, found, pool, sighted
from podgpu.sharing.dra.use import ClaimIndex, ContainerDevices, HeldDevice, row_held
from podgpu.sharing.inventory import Inventory
from podgpu.sharing.quantity import quantity, size

NAME = "dra"
NO_GPU = "compute-domain.nvidia.com"  # channels between nodes
SIGNS: tuple[str, ...] = (NVIDIA, HAMI)
NEEDS = "the driver's ResourceSlices from the API server, or its device names: gpu-0, gpu-0-mig-1g10gb-19-0"
CORES, MEMORY = "cores", "memory"
MIB = 1 << 20

# What containers hold of one device, by the part of it: `""` where that is not known.
Holders: TypeAlias = dict[ContainerRef, dict[str, HeldDevice]]


class DeviceShare(Struct, frozen=True, kw_only=True):
    share: float
    memory: int | None = None
    cores: float | None = None


def explains(allocation: Allocation, inventory: Inventory) -> bool:
    if allocation.resource == NO_GPU:
        return True
    pool_name, _, device = allocation.device_id.rpartition("/")
    return found((allocation.resource, pool_name, device), inventory) is not None


def claims(inventory: Inventory) -> Iterator[Claim]:
    held_by: defaultdict[str, Holders] = defaultdict(dict)
    for container, held in _all_held(inventory):
        if device := found(held.place, inventory):
            held_by[device].setdefault(container, {}).setdefault(held.share_id, held)
    for device, holders in held_by.items():
        users = Counter(share_id for parts in holders.values() for share_id in parts)
        for container, parts in holders.items():
            for share_id, held in parts.items():
                part = _part(held, device, inventory)
                among = users[share_id] if held.consumed else len(holders)
                yield _claim(container, held, device, part, among, inventory)


def cards(inventory: Inventory) -> Iterator[Device]:
    return sighted(inventory)


def _claim(
    container: ContainerRef,
    held: HeldDevice,
    device: str,
    part: DeviceShare,
    among: int,
    inventory: Inventory,
) -> Claim:
    gpu = inventory.instances.get(device, device)
    return Claim(
        gpu=gpu,
        mig=device if gpu != device else "",
        container=container,
        share=part.share / among,
        memory_limit_bytes=part.memory,
        core_limit_ratio=part.cores,
        resource=held.driver,
        device_id=f"{held.pool}/{held.device}",
        system=NAME,
        source=held.source,
    )


def _part(held: HeldDevice, device: str, inventory: Inventory) -> DeviceShare:
    """Nobody says how large a part is that only the kubelet names."""
    if held.consumed:
        return _consumed(held, held.consumed, device, inventory)
    return DeviceShare(share=0.0 if held.share_id and held.consumed is None else 1.0)


def _consumed(
    held: HeldDevice, consumed: Mapping[str, str], device: str, inventory: Inventory
) -> DeviceShare:
    """Read what a claim consumes. Where that is no memory and no cores, the share is not known."""
    offered = inventory.once(pool).get(held.place)
    capacity = offered.capacity if offered else {}
    memory = size(consumed.get(MEMORY, ""))
    total = size(capacity.get(MEMORY, "")) or inventory.memory.get(device)
    cores = _ratio(consumed, capacity)
    of_memory = min(1.0, memory / total) if memory and total else 0.0
    if held.driver == HAMI and memory:
        memory -= memory % MIB  # its library counts in MiB
    return DeviceShare(share=cores or of_memory, memory=memory, cores=cores)


def _ratio(consumed: Mapping[str, str], capacity: Mapping[str, str]) -> float | None:
    """Return the part of the cores; none of them is no limit."""
    cores, total = quantity(consumed.get(CORES, "")), quantity(capacity.get(CORES, ""))
    return min(1.0, float(cores / total)) if cores and total else None


def _all_held(inventory: Inventory) -> Iterator[tuple[ContainerRef, HeldDevice]]:
    listed = _listed(inventory)
    known = ClaimIndex(inventory.resource_claims, inventory.source)
    named = set()
    for pod in inventory.pods:
        for container in pod.containers if not pod.finished else ():
            if not (listed or container.uses or container.devices or pod.extended):
                continue  # as with most pods
            ref = ContainerRef(pod.namespace, pod.name, container.name, pod.uid)
            use = ContainerDevices(pod, container, known)
            for held in use.held(listed.pop(ref, [])):
                named.add((ref.namespace, ref.pod, ref.container))
                yield ref, held
    for ref, rows in listed.items():
        # Of two pods of one name the kubelet does not say which it means; their own status is enough.
        if (ref.namespace, ref.pod, ref.container) not in named:
            yield from ((ref, row_held(row, inventory.source)) for row in rows)


def _listed(inventory: Inventory) -> dict[ContainerRef, list[DynamicAllocation]]:
    listed: dict[ContainerRef, list[DynamicAllocation]] = {}
    for row, allocation in zip(inventory.dynamic, inventory.dynamic_allocations, strict=True):
        pod = inventory.pod(allocation)
        ref = ContainerRef(row.namespace, row.pod, row.container, pod.uid if pod else "")
        listed.setdefault(ref, []).append(row)
    return listed
