"""Volcano: its vGPUs, and the older sharing of a card's memory. The ids say how much, the pod's note which card.

A vGPU's ids are `UUID-N`. The note has an entry for each container with a vGPU, joined by `;`, each device of it ended
by `:`, a device being `UUID,TYPE,MEMORY,CORES%`. Whoever may edit the pod may write there, so an entry counts only for
a container with as many ids as it has devices. Entries are in the order of the spec; where that is not known,
containers with equally many ids and different entries cannot be told apart, and claim nothing.

The older ids are `INDEX-N`, one for each unit of memory; the note is the index of the pod's one card.

A share is the part of the cores, if these are limited, else the part of the card's memory. Where that is not known it
is 0: the limit is a fact, a share would be a guess.
"""

import re
from collections import Counter
from collections.abc import Iterator, Mapping
from typing import TypeAlias

import msgspec
from msgspec import Struct

from podgpu.model import Allocation, Claim, Pod
from podgpu.sharing.inventory import Inventory, by_number

NAME = "volcano"
SIGNS: tuple[str, ...] = ("volcano.sh/vgpu-", "volcano.sh/gpu-")
NEEDS = "the kubelet's list of devices, and the pods' annotations"
VGPU, VGPU_MEMORY, VGPU_CORES = "volcano.sh/vgpu-number", "volcano.sh/vgpu-memory", "volcano.sh/vgpu-cores"
VGPU_NOTE = "volcano.sh/vgpu-ids-new"
MEMORY, MEMORY_NOTE = "volcano.sh/gpu-memory", "volcano.sh/gpu-index"
MIB = 1 << 20
MOST_UNITS = 1 << 24
MOST_ENTRIES = 512  # no pod has as many containers

_UUID = r"GPU-[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}"
_INDEX_ID = r"[0-9]{1,3}-[0-9]{1,8}"
_IDS = {
    VGPU: re.compile(rf"{_UUID}-[0-9]{{1,5}}"),
    VGPU_CORES: re.compile(rf"{_UUID}-core-[0-9]{{1,3}}"),
    VGPU_MEMORY: re.compile(rf"{_UUID}-memory-[0-9]{{1,8}}|{_INDEX_ID}"),
    MEMORY: re.compile(_INDEX_ID),
}
# In MIG mode template and slot stand in brackets after the UUID.
_DEVICE = re.compile(
    r"([-0-9A-Za-z]{1,64})(?:\[[-.+\w]{0,64}\])?,[\x20-\x2b\x2d-\x7e]{1,80},([0-9]{1,8}),([0-9]{1,3})",
    re.ASCII,
)

Offered: TypeAlias = Counter[tuple[str, str]]  # memory units, by resource and what their ids begin with


class Slice(Struct, frozen=True, kw_only=True):
    text: str
    card: str
    units: int
    cores: int = 0


Entry: TypeAlias = tuple[Slice | None, ...]  # one container's devices; None cannot be read


def explains(allocation: Allocation, inventory: Inventory) -> bool:
    """Memory and cores of a vGPU are told by the same note as the vGPU itself."""
    pod = inventory.pod(allocation)
    if pod is None or not _is_own(allocation):
        return False
    if allocation.resource in (VGPU_MEMORY, VGPU_CORES):
        return VGPU_NOTE in pod.annotations
    if allocation.resource == MEMORY:  # there may be thousands of these
        return _noted_card(pod, inventory) is not None
    return any(given.container == allocation.container for given, _ in _vgpus(pod, inventory))


def claims(inventory: Inventory) -> Iterator[Claim]:
    offered: Offered = Counter(
        (resource, device_id.partition("-")[0])
        for resource, device_id in inventory.allocatable
        if resource in (VGPU_MEMORY, MEMORY)
    )
    for pod in inventory.pods:
        for given, one in (*_vgpus(pod, inventory), *_memories(pod, inventory)):
            yield _claim(given, one, offered, inventory)


def _is_own(allocation: Allocation) -> bool:
    form = _IDS.get(allocation.resource)
    return form is not None and form.fullmatch(allocation.device_id) is not None


def _vgpus(pod: Pod, inventory: Inventory) -> Iterator[tuple[Allocation, Slice]]:
    """Yield what a pod holds of this node's cards, with one of its ids."""
    if VGPU_NOTE in pod.annotations:
        given = _given(inventory).get((VGPU, pod.uid), {})
        entries = _matched(pod, {container: len(held) for container, held in given.items()}) if given else {}
        for container, entry in entries.items():
            yield from ((given[container][0], one) for one in entry if one and one.card in inventory.gpus)


def _memories(pod: Pod, inventory: Inventory) -> Iterator[tuple[Allocation, Slice]]:
    card = _noted_card(pod, inventory)
    if card is not None:
        for held in _given(inventory).get((MEMORY, pod.uid), {}).values():
            text = f"{pod.annotations[MEMORY_NOTE]}-* ({len(held)} units)"
            yield held[0], Slice(text=text, card=card, units=len(held))


def _noted_card(pod: Pod, inventory: Inventory) -> str | None:
    noted = pod.annotations.get(MEMORY_NOTE)
    return next((one.gpu.uuid for one in inventory.devices if str(one.gpu.index) == noted), None)


def _given(inventory: Inventory) -> dict[tuple[str, str], dict[str, list[Allocation]]]:
    """Return what the kubelet gave, by resource and the pod's UID, for each container."""
    given: dict[tuple[str, str], dict[str, list[Allocation]]] = {}
    for one in filter(_is_own, inventory.allocations):
        if pod := inventory.pod(one):
            held = given.setdefault((one.resource, pod.uid), {})
            held.setdefault(one.container, []).append(one)
    return given


def _matched(pod: Pod, given: Mapping[str, int]) -> dict[str, Entry]:
    """Find the entry of each container that was given ids, by their numbers."""
    if pod.annotations[VGPU_NOTE].count(";") > MOST_ENTRIES:
        return {}
    listed = (filter(None, entry.split(":")) for entry in pod.annotations[VGPU_NOTE].split(";"))
    entries = [entry for devices in listed if (entry := tuple(map(_slice, devices)))]
    # A pod without a phase is not known by its spec.
    names = [one.name for one in pod.containers if pod.phase and not one.is_init and one.name in given]
    counts = [given[name] for name in names]
    if len(names) == len(given) and counts == list(map(len, entries)):
        return dict(zip(names, entries, strict=True))
    return by_number(entries, given)


def _slice(text: str) -> Slice | None:
    match = _DEVICE.fullmatch(text)
    units, cores = (int(match[2]), int(match[3])) if match else (0, 0)
    if match is None or units > MOST_UNITS or cores > 100:
        return None
    return Slice(text=text, card=match[1], units=units, cores=cores)


def _claim(allocation: Allocation, one: Slice, offered: Offered, inventory: Inventory) -> Claim:
    resource = MEMORY if allocation.resource == MEMORY else VGPU_MEMORY
    of_card = _units_of_card(one.card, resource, offered, inventory)
    of_memory = min(1.0, one.units / of_card) if of_card else 0.0
    of_cores = one.cores / 100 if one.cores else None
    # How many MiB a unit has is the plugin's setting, and not told.
    unit = round(inventory.memory.get(one.card, 0) / MIB / of_card) if of_card else 0
    return msgspec.structs.replace(
        inventory.claim(allocation, one.card, system=NAME, share=of_cores or of_memory),
        memory_limit_bytes=one.units * unit * MIB or None,
        core_limit_ratio=of_cores,
        device_id=one.text,
        source="annotation",
    )


def _units_of_card(card: str, resource: str, offered: Offered, inventory: Inventory) -> int:
    """Count what is offered of a card. Plugins that name units after the UUID offer any number; theirs are MiB."""
    if offered[resource, "GPU"]:
        return inventory.memory.get(card, 0) // MIB
    index = next(device.gpu.index for device in inventory.devices if device.gpu.uuid == card)
    return offered[resource, str(index)]
