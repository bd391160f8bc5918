"""Dynamic resource allocation: devices by resource claims, as NVIDIA's and HAMi's DRA drivers hand them out.

The pod's status, the kubelet's list and the claim itself, best first, say which devices of its claims a container uses.
The kubelet lists a claim's devices under each of its containers; the claim says which of them are for which request.

Several claims may have parts of a device. A part is the greatest of what its claim consumes of any capacity: who has
all multiprocessors of an instance leaves nothing, whatever it has of the rest. Parts that consume nothing are equal,
and the containers of one part share it equally. Only the claim says that it has a part: until it is read, its share is
not known. NVIDIA's driver limits nobody to what is consumed. HAMi's does; there cores are the share, else memory. A
claim may also give admin access, to look at a device that others hold. Only the claim itself says that, too.

A device's ResourceSlice, or else its name, says which card or MIG instance it is. The number in a name is that of
/dev/nvidiaN. An instance's name ends in its profile's id and where it starts. The names that NVIDIA's driver 25.3 to
25.8 gives to instances (`gpu-0-mig-19-0-1`) do not name the profile: these need the slices.
"""

import re
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping
from fractions import Fraction
from typing import TypeAlias

from podgpu.model import (
    MONITOR,
    Allocation,
    Claim,
    ContainerRef,
    Device,
    DynamicAllocation,
    Excused,
    MigInstance,
    PoolDevice,
)
from podgpu.model.kube import amount, quantity
from podgpu.sharing import kube_cards
from podgpu.sharing.dra.held_devices import (
    ALL,
    ClaimIndex,
    ContainerDevices,
    HeldDevice,
    Place,
    cut,
    place_of,
    row_held,
)
from podgpu.sharing.inventory import MIB, Inventory
from podgpu.sharing.kube_cards import size
from podgpu.sharing.system import SharingSystem

NAME = "dra"
NO_GPU = "compute-domain.nvidia.com"  # channels between nodes
UNREAD = "for {count} it is not known whether devices are held, or admin access is all: ResourceClaims are not read"
CORES, MEMORY = "cores", "memory"
NVIDIA = "gpu.nvidia.com"
HAMI = "hami-core-gpu.project-hami.io"
_CARDS = {
    NVIDIA: re.compile(r"gpu-(?P<minor>[0-9]{1,4})"),
    HAMI: re.compile(r"hami-gpu-(?P<minor>[0-9]{1,4})"),
}
_MIG = re.compile(r"gpu-(?P<minor>[0-9]{1,4})-mig-(?P<profile>.+)-[0-9]{1,4}-(?P<start>[0-9]{1,4})")

# What containers hold of one device, by the share id: `""` where that is not known.
Holders: TypeAlias = dict[ContainerRef, dict[str, HeldDevice]]


def explains(allocation: Allocation, inventory: Inventory) -> bool:
    if allocation.resource == NO_GPU:
        return True
    pool_name, _, device = allocation.device_id.rpartition("/")
    return _device((allocation.resource, pool_name, device), inventory) is not None


def claims(inventory: Inventory) -> Iterator[Claim]:
    held_by: defaultdict[str, Holders] = defaultdict(dict)
    for container, held in _all_held(inventory):
        if device := _device(held.place, inventory):
            held_by[device].setdefault(container, {}).setdefault(held.share_id, held)
    for device, holders in held_by.items():
        users = Counter(share_id for parts in holders.values() for share_id in parts)
        sizes = _sizes(holders, device, inventory)
        for container, parts in holders.items():
            for share_id, held in parts.items():
                yield _claim(container, held, device, sizes[share_id] / users[share_id], inventory)


def doubts(inventory: Inventory) -> Iterator[str]:
    held = [(container, held.place) for container, held in _all_held(inventory) if held.consumed is None]
    if unread := {container for container, place in held if _device(place, inventory)}:
        yield UNREAD.format(count="1 container" if len(unread) == 1 else f"{len(unread)} containers")


def excused(inventory: Inventory) -> Iterator[tuple[str, Excused]]:
    known = ClaimIndex(inventory.resource_claims)
    for pod in inventory.pods:
        for container in pod.containers if not pod.finished else ():
            devices = ContainerDevices(pod, container, known).monitored() if container.uses or pod.extended else ()
            ref = ContainerRef(pod.namespace, pod.name, container.name, pod.uid)
            found = ((_device(place, inventory), name) for name, place in devices)
            cards = {inventory.instances.get(device, device): name for device, name in found if device}
            for card, name in cards.items():
                yield card, Excused(role=MONITOR, proof=f"its ResourceClaim {name} has admin access", container=ref)


def _claim(container: ContainerRef, held: HeldDevice, device: str, share: Fraction, inventory: Inventory) -> Claim:
    gpu = inventory.instances.get(device, device)
    driver, pool, name = held.place
    memory, cores = _limits(held, inventory) if driver == HAMI else (None, None)
    return Claim(
        gpu=gpu,
        mig=device if gpu != device else "",
        container=container,
        share=float(share),
        memory_limit_bytes=memory,
        core_limit_ratio=cores,
        resource=driver,
        device_id=f"{pool}/{name}",
        system=NAME,
        source=held.source,
    )


def _sizes(holders: Holders, device: str, inventory: Inventory) -> dict[str, Fraction]:
    """Return how much of the device each part is, by the share id; 0 if that is not known.

    Parts that consume nothing have no more than the others leave. How many they are is not known as long as a claim is
    not read.
    """
    found: dict[str, Fraction | None] = {}
    for share_id, held in (part for parts in holders.values() for part in parts.items()):
        if found.get(share_id) is None:  # else another container of the part has its claim
            found[share_id] = _consumed(held, device, inventory)
    known = [size for size in found.values() if size is not None]
    equal = Fraction(0)
    if 0 in known and len(known) == len(found):
        left = max(1 - sum(known, Fraction(0)), Fraction(0))
        equal = min(Fraction(1, len(known)), left / known.count(Fraction(0)))
    return {share_id: size or (equal if size is not None else Fraction(0)) for share_id, size in found.items()}


def _consumed(held: HeldDevice, device: str, inventory: Inventory) -> Fraction | None:
    """Return the greatest part of a capacity that the claim consumes; None if that is not known."""
    if held.consumed is None:
        return None
    offered = inventory.once(_pool).get(held.place)
    capacity = offered.capacity if offered else {}
    parts = {name: _ratio(consumed, capacity.get(name, "")) for name, consumed in held.consumed.items()}
    if parts.get(MEMORY, 0) is None:
        parts[MEMORY] = _ratio(held.consumed[MEMORY], str(inventory.memory.get(device, "")))
    if held.place[0] == HAMI and parts:
        return parts[CORES] if parts.get(CORES, 0) != 0 else parts.get(MEMORY)
    return None if None in parts.values() else max(filter(None, parts.values()), default=Fraction(0))


def _ratio(consumed: str, capacity: str) -> Fraction | None:
    part, total = quantity(consumed), quantity(capacity)
    if part and total:
        return min(Fraction(1), part / total)
    return Fraction(0) if amount(consumed) == 0 else None


def _limits(held: HeldDevice, inventory: Inventory) -> tuple[int | None, float | None]:
    """Return the limits of memory and cores that HAMi's library enforces. It counts memory in MiB."""
    consumed = held.consumed or {}
    offered = inventory.once(_pool).get(held.place)
    memory = size(consumed.get(MEMORY, ""))
    cores = _ratio(consumed.get(CORES, ""), offered.capacity.get(CORES, "") if offered else "")
    return memory and memory - memory % MIB, float(cores) if cores else None


def _all_held(inventory: Inventory) -> Iterator[tuple[ContainerRef, HeldDevice]]:
    listed = _listed(inventory)
    known = ClaimIndex(inventory.resource_claims)
    named = set()
    for pod in inventory.pods:
        for container in pod.containers if not pod.finished else ():
            if not (listed or container.uses or container.devices or pod.extended):
                continue  # as with most pods
            ref = ContainerRef(pod.namespace, pod.name, container.name, pod.uid)
            use = ContainerDevices(pod, container, known)
            for held in use.held(listed.pop(ref, []), inventory.source):
                named.add(ref.names)
                yield ref, held
    for ref, rows in listed.items():
        # Of two pods of one name the kubelet does not say which it means; their own status is enough.
        if ref.names not in named:
            for row in rows:
                devices = cut([row_held(row, inventory.source)], known.listed(row), ALL)
                yield from ((ref, held) for held in devices)


def _listed(inventory: Inventory) -> dict[ContainerRef, list[DynamicAllocation]]:
    listed: dict[ContainerRef, list[DynamicAllocation]] = {}
    for row, allocation in zip(inventory.dynamic, inventory.dynamic_allocations, strict=True):
        listed.setdefault(inventory.container(allocation), []).append(row)
    return listed


def _device(place: Place, inventory: Inventory) -> str | None:
    """Return the UUID of the card or the MIG instance, if this node has it."""
    offered = inventory.once(_pool).get(place)
    attributes = offered.attributes if offered else {}
    if uuid := attributes.get("uuid"):
        return uuid if uuid in inventory.gpus or uuid in inventory.instances else None
    driver, _, name = place
    if driver not in _CARDS:
        return None
    if card := _CARDS[driver].fullmatch(name):
        return inventory.by_minor.get(card["minor"])
    mig = _MIG.fullmatch(name) if driver == NVIDIA else None
    return _instance(mig, attributes.get("parentUUID"), inventory) if mig else None


def _pool(inventory: Inventory) -> Mapping[Place, PoolDevice]:
    """Return the devices that drivers offer. Of two with the same name, the first counts."""
    return {place_of(device): device for device in reversed(inventory.pool_devices)}


def cards(inventory: Inventory) -> Iterator[Device]:
    """Yield the cards of the slices, and those that their MIG instances are on."""
    for offered in inventory.pool_devices:
        if offered.driver not in _CARDS:
            continue
        if card := _CARDS[offered.driver].fullmatch(offered.device):
            uuid = offered.attributes.get("uuid", "")
            memory = size(offered.capacity.get(MEMORY, ""))
            model = offered.attributes.get("productName", "")
            yield kube_cards.card(uuid, number=int(card["minor"]), model=model, memory=memory)
        elif mig := _MIG.fullmatch(offered.device):
            instance = kube_cards.instance(
                offered.attributes.get("uuid") or offered.device,
                profile=offered.attributes.get("profile", mig["profile"]),
                start=int(mig["start"]),
            )
            parent = offered.attributes.get("parentUUID", "")
            yield kube_cards.card(parent, number=int(mig["minor"]), instances=[instance])


def _instance(name: re.Match[str], parent: str | None, inventory: Inventory) -> str | None:
    """Find an instance by its profile and where it starts: one that is created on demand has no UUID in the slice."""
    card = inventory.by_minor.get(name["minor"], parent)
    if parent not in (None, card):
        return None
    migs = inventory.migs.get(card or "", ())
    alike = [mig for mig in migs if _bare(mig.profile) == _bare(name["profile"])]
    there = [mig for mig in alike if mig.start == int(name["start"])]
    return _only(there) or (_only(alike) if all(mig.start is None for mig in alike) else None)


def _bare(profile: str) -> str:
    """Write a profile as in a device's name, which cannot have dots and plus signs."""
    return "".join(filter(str.isalnum, profile)).lower()


def _only(migs: list[MigInstance]) -> str | None:
    return migs[0].uuid if len(migs) == 1 else None


SYSTEM = SharingSystem(
    name=NAME,
    signs=(NVIDIA, HAMI),
    needs="the driver's ResourceSlices from the API server, or its device names: gpu-0, gpu-0-mig-1g10gb-19-0",
    explains=explains,
    claims=claims,
    doubts=doubts,
    excused=excused,
    cards=cards,
)
