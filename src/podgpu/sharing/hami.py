"""HAMi: parts of a card's memory and cores, as its scheduler noted them on the pod.

The kubelet's ids are `UUID-N`, picked as it likes: only how many it gave to which container holds. The cards are in the
annotation, an entry for each container ended by `;`, a device of it by `:`, a device being `UUID,TYPE,MiB,CORES%`.

Whoever may edit the pod may write there, so an entry counts only for a container with as many ids as it has devices.
Its place in the list says nothing: that goes by the pod's spec, while a pod's status goes by name. Containers with
equally many ids and different entries cannot be told apart, and claim nothing.

A share is the part of the cores, if these are limited, else the part of the card's memory. Where that is not known it
is 0: the limit is a fact, a share would be a guess.
"""

import re
from collections.abc import Iterator, Mapping
from typing import TypeAlias

import msgspec
from msgspec import Struct, field

from podgpu.model import Allocation, Claim, Pod
from podgpu.sharing.inventory import Inventory

NAME = "hami"
SIGNS: tuple[str, ...] = ("hami.io/vgpu-", "nvidia.com/gpumem", "nvidia.com/gpucores")
NEEDS = "the kubelet's list of devices, and the pods' annotations"
VENDOR = "nvidia.com/"
NOTE = "hami.io/vgpu-devices-allocated"
MIG_NOTE = "hami.io/vgpu-mig-allocations"
MIB = 1 << 20
MOST_MIB = 1 << 24

_ID = re.compile(r"GPU-[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}-[0-9]{1,5}")
# In MIG mode older versions put template and slot in brackets after the UUID.
_DEVICE = re.compile(
    r"([-0-9A-Za-z]{1,64})(?:\[[-0-9]{0,16}\])?,[\x20-\x2b\x2d-\x7e]{1,80},([0-9]{1,8}),([0-9]{1,3})"
)


class Slice(Struct, frozen=True, kw_only=True):
    """`mig` is the UUID of an instance, if the note names one."""

    text: str
    card: str
    mib: int
    cores: int
    mig: str = ""


class MigNote(Struct, rename="camel"):
    container_index: int
    device_index: int
    mig_uuid: str = field(default="", name="migUUID")


Entry: TypeAlias = tuple[Slice | None, ...]  # one container's devices; None cannot be read


def explains(allocation: Allocation, inventory: Inventory) -> bool:
    pod = inventory.pod(allocation) if _is_own(allocation) else None
    claims = _claims(pod, inventory) if pod else ()
    return any(claim.container.container == allocation.container for claim in claims)


def claims(inventory: Inventory) -> Iterator[Claim]:
    for pod in inventory.pods:
        if NOTE in pod.annotations:
            yield from _claims(pod, inventory)


def _is_own(allocation: Allocation) -> bool:
    return allocation.resource.startswith(VENDOR) and _ID.fullmatch(allocation.device_id) is not None


def _claims(pod: Pod, inventory: Inventory) -> Iterator[Claim]:
    given: dict[str, list[Allocation]] = {}
    for one in inventory.allocations:
        if one.pod == pod.name and _is_own(one) and inventory.pod(one) is pod:
            given.setdefault(one.container, []).append(one)
    entries = _matched(pod, {container: len(held) for container, held in given.items()})
    for container, entry in entries.items():
        for each in entry:
            if each and each.card in inventory.gpus:
                yield _claim(given[container][0], each, inventory)


def _matched(pod: Pod, given: Mapping[str, int]) -> dict[str, Entry]:
    """Find the entry of each container by its number of ids, if all entries with so many are the same."""
    for entries in _listed(pod, given):
        if sorted(map(len, entries)) == sorted(given.values()):
            fitting = {count: {entry for entry in entries if len(entry) == count} for count in given.values()}
            return {
                one: next(iter(fitting[count])) for one, count in given.items() if len(fitting[count]) == 1
            }
    return {}


def _listed(pod: Pod, given: Mapping[str, int]) -> Iterator[list[Entry]]:
    """Yield what may be the entries of the containers that the kubelet lists.

    Newer versions of HAMi put init containers first. Of these the kubelet lists only the ones that keep running; the
    others hold nothing that the pod's containers do not hold after them.
    """
    entries = _entries(pod)
    init = [one.name for one in pod.containers if one.is_init]
    unlisted = {place for place, name in enumerate(init) if name not in given}
    yield [entry for place, entry in enumerate(entries) if entry and place not in unlisted]
    if len(entries) <= len(pod.containers) - len(init):
        yield [entry for entry in entries if entry]


def _entries(pod: Pod) -> list[Entry]:
    migs = _migs(pod)
    return [
        tuple(
            _slice(device, migs.get((place, index), ""))
            for index, device in enumerate(filter(None, entry.split(":")))
        )
        for place, entry in enumerate(pod.annotations.get(NOTE, "").removesuffix(";").split(";"))
    ]


def _slice(text: str, mig: str) -> Slice | None:
    match = _DEVICE.fullmatch(text)
    mib, cores = (int(match[2]), int(match[3])) if match else (0, 0)
    if match is None or mib > MOST_MIB or cores > 100:
        return None
    return Slice(text=text, card=match[1], mib=mib, cores=cores, mig=mig)


def _migs(pod: Pod) -> dict[tuple[int, int], str]:
    """Instances by the places of the entry and of the device in it."""
    try:
        notes = msgspec.json.decode(pod.annotations.get(MIG_NOTE, "[]"), type=list[MigNote])
    except (msgspec.MsgspecError, ValueError, RecursionError):
        return {}
    return {(note.container_index, note.device_index): note.mig_uuid for note in notes}


def _claim(allocation: Allocation, one: Slice, inventory: Inventory) -> Claim:
    is_instance = inventory.instances.get(one.mig) == one.card
    device, share = (one.mig, 1.0) if is_instance else (one.card, _share(one, inventory))
    return msgspec.structs.replace(
        inventory.claim(allocation, device, system=NAME, share=share),
        memory_limit_bytes=one.mib * MIB or None,
        core_limit_ratio=None if is_instance or not one.cores else one.cores / 100,
        device_id=one.text,
        source="annotation",
    )


def _share(one: Slice, inventory: Inventory) -> float:
    if one.cores:
        return one.cores / 100
    total = inventory.memory.get(one.card)
    return min(1.0, one.mib * MIB / total) if total else 0.0
