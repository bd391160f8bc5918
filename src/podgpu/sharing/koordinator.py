"""Koordinator: the scheduler notes on the pod which part of which card it gave. There are no device ids.

The note is the pod's. Its claims go to the container that the kubelet lists with a GPU, else to the one that asks for a
GPU in the spec, else to the pod's only container, else to the pod: a container without a name.
"""

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from fractions import Fraction
from typing import Annotated

import msgspec
from msgspec import Meta, Struct

from podgpu.model import Allocation, Claim, ContainerRef, Pod, PodContainer
from podgpu.sharing.inventory import Inventory

NAME = "koordinator"
ANNOTATION = "scheduling.koordinator.sh/device-allocated"
GPUS = "koordinator.sh/gpu"
SIGNS: tuple[str, ...] = (GPUS, ANNOTATION)
NEEDS = "the pods' annotations"
CORE = "koordinator.sh/gpu-core"
MEMORY = "koordinator.sh/gpu-memory"
MEMORY_RATIO = "koordinator.sh/gpu-memory-ratio"
WHOLE_GPU = "nvidia.com/gpu"
PERCENT = 100
MOST_BYTES = 1 << 44  # no card has as much

_QUANTITY = re.compile(r"(?P<number>[0-9]{1,18}(?:\.[0-9]{1,9})?)(?P<unit>[A-Za-z]{0,2}|[eE][0-9]{1,2})")
_UNITS = (
    {"": Fraction(1), "m": Fraction(1, 1000)}
    | {unit: Fraction(1000**power) for power, unit in enumerate("kMGTPE", 1)}
    | {f"{unit}i": Fraction(1024**power) for power, unit in enumerate("KMGTPE", 1)}
    | {f"{mark}{power}": Fraction(10**power) for mark in "eE" for power in range(19)}
)


class Entry(Struct):
    """`id` is the card's UUID, or something else that helps nobody."""

    minor: Annotated[int, Meta(ge=0, lt=1 << 16)] | None = None
    id: str = ""
    resources: dict[str, str | int] = {}


class Note(Struct):
    gpu: list[Entry] = []


class Part(Struct, frozen=True, kw_only=True):
    """What the note gives of one card."""

    name: str
    resource: str
    share: float
    memory_limit_bytes: int | None


_decode = msgspec.json.Decoder(Note).decode


def explains(allocation: Allocation, inventory: Inventory) -> bool:
    pod = inventory.pod(allocation) if allocation.resource.startswith(GPUS) else None
    return pod is not None and bool(_parts(pod, inventory))


def claims(inventory: Inventory) -> Iterator[Claim]:
    listed = _listed(inventory)
    for pod in inventory.pods:
        # Anybody can write a note, nobody a kubelet's list: a pod that was given a card by its UUID needs no note.
        noted = ANNOTATION in pod.annotations and not pod.finished
        if noted and not _names_a_card(listed[pod.uid], inventory):
            container = ContainerRef(pod.namespace, pod.name, _container(pod, listed[pod.uid]), pod.uid)
            for card, part in _parts(pod, inventory).items():
                yield Claim(
                    gpu=card,
                    container=container,
                    share=part.share,
                    memory_limit_bytes=part.memory_limit_bytes,
                    resource=part.resource,
                    device_id=part.name,
                    system=NAME,
                    source="annotation",
                )


def _listed(inventory: Inventory) -> defaultdict[str, list[Allocation]]:
    """Return what the kubelet gave, by the UID of the pod."""
    listed: defaultdict[str, list[Allocation]] = defaultdict(list)
    for allocation in inventory.allocations:
        if pod := inventory.pod(allocation):
            listed[pod.uid].append(allocation)
    return listed


def _names_a_card(allocations: Iterable[Allocation], inventory: Inventory) -> bool:
    uuids = (*inventory.gpus, *inventory.instances)
    return any(uuid in allocation.device_id for allocation in allocations for uuid in uuids)


def _container(pod: Pod, allocations: Iterable[Allocation]) -> str:
    listed = {one.container for one in allocations if _is_gpu(one.resource)}
    names = listed or _asking(pod) or {one.name for one in _lasting(pod)}
    return next(iter(names)) if len(names) == 1 else ""


def _asking(pod: Pod) -> set[str]:
    """Name who has a limit on GPUs. What an init container asked for is what others have after it."""
    asking = {
        one.name
        for one in pod.containers
        if any(_is_gpu(resource) and _quantity(limit) for resource, limit in one.limits.items())
    }
    return asking.intersection(one.name for one in _lasting(pod)) or asking


def _lasting(pod: Pod) -> list[PodContainer]:
    return [one for one in pod.containers if not (one.is_init or one.is_ephemeral)]


def _is_gpu(resource: str) -> bool:
    return resource.startswith(GPUS) or resource == WHOLE_GPU


def _parts(pod: Pod, inventory: Inventory) -> dict[str, Part]:
    """Return what the note gives, by the card's UUID. A card that it names twice has been written by no scheduler."""
    entries = _entries(pod.annotations.get(ANNOTATION, ""))
    cards = [_card(entry, inventory) for entry in entries]
    times = Counter(cards)
    return {
        card: part
        for card, entry in zip(cards, entries, strict=True)
        if card and times[card] == 1 and (part := _part(entry))
    }


def _entries(text: str) -> list[Entry]:
    try:
        return _decode(text).gpu if text else []
    except (ValueError, RecursionError):  # what is no note, or no text, or nested without end
        return []


def _card(entry: Entry, inventory: Inventory) -> str | None:
    """Return the card, if this node has it and the note does not contradict itself."""
    by_minor = None if entry.minor is None else inventory.by_minor.get(str(entry.minor))
    if not entry.id.startswith("GPU-"):
        return by_minor
    return entry.id if entry.id in inventory.gpus and by_minor in (None, entry.id) else None


def _part(entry: Entry) -> Part | None:
    for resource in (CORE, MEMORY_RATIO):
        percent = _quantity(entry.resources.get(resource, ""))
        if percent:
            return Part(
                name=entry.id if entry.minor is None else f"minor {entry.minor}",
                resource=resource,
                share=float(min(percent / PERCENT, Fraction(1))),
                memory_limit_bytes=_bytes(entry.resources.get(MEMORY, "")),
            )
    return None


def _bytes(value: str | int) -> int | None:
    size = _quantity(value)
    return int(size) if size and 1 <= size <= MOST_BYTES else None


def _quantity(value: str | int) -> Fraction | None:
    """Read a Kubernetes quantity that is more than nothing: `8Gi`, `1500m`, `16e9`."""
    if isinstance(value, int):
        return Fraction(value) if value > 0 else None
    found = _QUANTITY.fullmatch(value)
    if found is None or found["unit"] not in _UNITS:
        return None
    return Fraction(found["number"]) * _UNITS[found["unit"]] or None
