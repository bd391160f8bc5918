"""Volcano: its vGPUs, and the older sharing of cards. The ids say how much, the pod's annotation which card.

A vGPU's ids are `UUID-N`, `UUID-memory-N` and `UUID-core-N`. The names of their resources can be configured. The older
plugin has ids `INDEX-N` for units of memory, and UUIDs for whole cards. It does not keep to either: an annotation of
the pod has the indices of its cards. Without it, the ids name the card only if there is a single one.

The annotation of vGPUs has an entry for each container with a vGPU, joined by `;`, in which each device is ended by
`:`. A device is `UUID,TYPE,UNITS,CORES%`. Anyone who may edit the pod can write there, so an entry counts only for a
container with as many ids as it has devices. Entries are in the order of the spec; where that is not known, containers
with equally many ids and different entries cannot be told apart, and have none.

A share is the part of the cores, if these are limited, else the part of the card's memory. If that is not known, it is
0: the limit is a fact, a share would be a guess.
"""

import re
from collections import Counter
from collections.abc import Iterator, Mapping
from functools import lru_cache
from typing import TypeAlias

from msgspec import Struct
from msgspec.structs import replace

from podgpu.model import Allocation, Claim, Device, Pod
from podgpu.model.fit import PORTION, WantedPart
from podgpu.model.kube import quantity
from podgpu.sharing import kube_cards
from podgpu.sharing.inventory import MIB, Inventory, by_number
from podgpu.sharing.system import AmbiguousClaims, MinimumClaim, PartRequest, SharingSystem

NAME = "volcano"
VGPU, VGPU_MEMORY, VGPU_CORES = "volcano.sh/vgpu-number", "volcano.sh/vgpu-memory", "volcano.sh/vgpu-cores"
VGPU_PERCENT = "volcano.sh/vgpu-memory-percentage"
VGPU_IDS = "volcano.sh/vgpu-ids-new"
MEMORY, NUMBER, INDICES = "volcano.sh/gpu-memory", "volcano.sh/gpu-number", "volcano.sh/gpu-index"
NODE_CARDS = "volcano.sh/node-vgpu-register"
ALL_CORES = 100
ANNOTATION = "annotation"  # as a source
MOST_UNITS = 1 << 24
MOST_ENTRIES = 512  # more than a pod has containers
MOST_DEVICES = 1024  # in all entries
REMEMBERED = 512  # annotations whose content is cached
ANY_CARD = 32_767  # the number of ids that plugins 1.9.2 to 1.11 offer for every card
UNKNOWN_UNIT = (
    "limits of memory are not known: the ids that the plugin offers do not show the size of a unit. "
    "Those of plugin 1.12 do, and so does a container's file in /usr/local/vgpu"
)
_UUID = kube_cards.UUID.pattern
_VGPU = re.compile(rf"(?P<card>{_UUID})-[0-9]{{1,5}}")
_PART = re.compile(rf"(?P<card>{_UUID})-(?P<kind>memory|core)-[0-9]{{1,8}}")
_UNIT = re.compile(r"(?P<index>[0-9]{1,3})-[0-9]{1,8}")
_INDICES = re.compile(r"[0-9]{1,3}(?:,[0-9]{1,3}){0,63}")
# In MIG mode template and slot stand in brackets after the UUID.
_DEVICE = re.compile(
    r"([-0-9A-Za-z]{1,64})(?:\[[-.+\w]{0,64}\])?,[\x20-\x2b\x2d-\x7e]{1,80},([0-9]{1,8}),([0-9]{1,3})",
    re.ASCII,
)
_ROUND = {1 << power for power in range(21)} | {digit * 10**power for digit in (1, 2, 5) for power in range(6)}


class VolcanoDevice(Struct, frozen=True, kw_only=True):
    """What a container has of a card: units of memory, and percent of the cores. 0 is no limit."""

    text: str
    card: str
    units: int
    cores: int = 0


class MemoryUnit(Struct, frozen=True, kw_only=True):
    """A unit of memory: `mib` is how many MiB it has, a factor that is a setting of Volcano's plugins.

    `of_card` is how many units a card has, by its UUID, where that is known.

    A plugin offers a card's MiB divided by the factor, rounded down, as ids. So the factor is one of those that lead
    to the number of ids, for all cards alike. If there are several, it is the only round number among them; if there
    are two round ones, it is not known. Older plugins offer no memory and no cores, and count in MiB. Newer ones may
    offer no memory either: the kubelet refuses lists that are too long.
    """

    of_card: Mapping[str, int]
    mib: int | None = None

    def share(self, card: str, units: int) -> float:
        total = self.of_card.get(card)
        return min(1.0, units / total) if total else 0.0

    def size(self, card: str, units: int) -> int | None:
        """Return bytes. If there are more units than a card has, the kubelet still lists those of an earlier factor."""
        is_possible = 0 < units <= self.of_card.get(card, 0)
        return units * self.mib * MIB if self.mib and is_possible else None


Entry: TypeAlias = tuple[VolcanoDevice | None, ...]  # one container's devices; None is one that cannot be read


def explains(allocation: Allocation, inventory: Inventory) -> bool:
    """Memory and cores of a vGPU are in the same annotation as the vGPU itself."""
    pod = inventory.pod(allocation)
    kind = _kind(allocation, inventory)
    if pod is None or kind is None:
        return False
    if kind in (VGPU_MEMORY, VGPU_CORES):
        return VGPU_IDS in pod.annotations
    return (pod.uid, allocation.container) in inventory.once(_holders)


def claims(inventory: Inventory) -> Iterator[Claim]:
    yield from inventory.once(_claims)


def cards(inventory: Inventory) -> Iterator[Device]:
    """Yield what the vGPU plugin lists on its node, `UUID,…:`, and the cards that the older plugin counts."""
    listed = inventory.node.annotations.get(NODE_CARDS, "").split(":")
    yield from kube_cards.by_uuid(card.partition(",")[0] for card in listed)
    yield from kube_cards.numbered(kube_cards.offered(inventory.node.capacity, NUMBER))


def withdraws(claim: Claim, inventory: Inventory) -> bool:
    """Withdraw claims by UUID if the pod has an annotation, which is what the plugin follows."""
    if claim.resource != NUMBER or claim.system == NAME:
        return False
    return claim.container.pod_uid in inventory.once(_indexed)


def ambiguous_claims(inventory: Inventory) -> Iterator[AmbiguousClaims]:
    """Yield containers whose annotation and UUIDs differ. The plugin follows the annotation, if it can read it."""
    given = inventory.once(_given)
    for pod in inventory.pods if given else ():
        for held in given.get((NUMBER, pod.uid), {}).values():
            annotated = tuple(_whole(pod, held, inventory))
            named = (allocation for allocation in held if allocation.device_id)
            listed = tuple(inventory.claim(each, each.device_id, system=NAME) for each in named)
            if annotated and listed and {claim.gpu for claim in annotated} != {claim.gpu for claim in listed}:
                yield AmbiguousClaims(options=(annotated, listed), usual=0)


def minimum(claim: Claim, inventory: Inventory) -> MinimumClaim | None:
    """Return what the ids of memory and cores say of each card. Older plugins have none: then go by the spec.

    Without either, Volcano gives the whole card, unless an annotation says less: that is at least one of its parts.
    """
    if claim.resource == NUMBER:
        return MinimumClaim(share=1.0)
    if claim.resource == MEMORY:
        held, unit = _asked(MEMORY, claim, inventory), inventory.once(_memory_unit)
        return MinimumClaim(share=unit.share(claim.gpu, held), memory=unit.size(claim.gpu, held) or 0)
    units, cores = (_asked(kind, claim, inventory) for kind in (VGPU_MEMORY, VGPU_CORES))
    limits = inventory.limits(claim.container) or {}
    percent = float(quantity(limits.get(VGPU_PERCENT, "")) or 0) / ALL_CORES
    unit = inventory.once(_vgpu_unit)
    return MinimumClaim(
        share=cores / ALL_CORES or unit.share(claim.gpu, units) or percent or _unlimited(claim, units, inventory),
        memory=unit.size(claim.gpu, units) or 0,
        cores=cores / ALL_CORES,
    )


def _unlimited(claim: Claim, units: int, inventory: Inventory) -> float:
    """Return the share of a container without limits; 0 if it has some, or if its spec is not known."""
    if units or inventory.limits(claim.container) is None:
        return 0.0
    if claim.source != ANNOTATION:
        return 1.0
    parts = inventory.once(_vgpus_of_card)[claim.gpu]
    return 1 / parts if parts and claim.share else 0.0  # what is not known does not become a small number


def _vgpus_of_card(inventory: Inventory) -> Counter[str]:
    """Count the vGPUs that each card offers."""
    found = (_VGPU.fullmatch(device_id) for _, device_id in inventory.allocatable)
    return Counter(vgpu["card"] for vgpu in found if vgpu)


def _asked(kind: str, claim: Claim, inventory: Inventory) -> int:
    held = inventory.once(_given).get((kind, claim.container.pod_uid), {}).get(claim.container.container, [])
    limits = inventory.limits(claim.container) or {}
    return _number(held) or kube_cards.count(limits.get(kind, ""))


def holdings(inventory: Inventory) -> Iterator[Allocation]:
    """Each id is a part of another card, or a whole one; units of memory are all of one card."""
    for (kind, _), containers in inventory.once(_given).items():
        for held in containers.values() if kind in (VGPU, MEMORY, NUMBER) else ():
            yield replace(held[0], units=1 if kind == MEMORY else _number(held))


def doubts(inventory: Inventory) -> Iterator[str]:
    vgpu, memory = inventory.once(_vgpu_unit), inventory.once(_memory_unit)
    for claim in inventory.once(_claims):
        unit = memory if claim.resource == MEMORY else vgpu
        if claim.resource != NUMBER and not claim.memory_limit_bytes and unit.mib is None:
            yield UNKNOWN_UNIT
            return


def _claims(inventory: Inventory) -> tuple[Claim, ...]:
    vgpu, memory = inventory.once(_vgpu_unit), inventory.once(_memory_unit)
    given = inventory.once(_given)
    found: list[Claim] = []
    for pod in inventory.pods if given else ():
        found += [_claim(held, device, vgpu, inventory) for held, device in _vgpus(pod, inventory)]
        for container in given.get((MEMORY, pod.uid), {}).values():
            shared = _units(pod, container, inventory)
            found += [_claim(container[0], device, memory, inventory) for device in shared]
        for container in given.get((NUMBER, pod.uid), {}).values():
            found += _whole(pod, container, inventory)
    return tuple(found)


def _holders(inventory: Inventory) -> set[tuple[str, str]]:
    return {(claim.container.pod_uid, claim.container.container) for claim in inventory.once(_claims)}


def _kind(allocation: Allocation, inventory: Inventory) -> str | None:
    """Return the usual name of an id's resource: the plugin may be configured to use another."""
    resource, device_id = allocation.resource, allocation.device_id
    if not device_id:
        return resource if resource in (VGPU, VGPU_MEMORY, VGPU_CORES, MEMORY, NUMBER) else None
    if part := _PART.fullmatch(device_id):
        return VGPU_MEMORY if part["kind"] == "memory" else VGPU_CORES
    if _UNIT.fullmatch(device_id):
        return resource if resource in (VGPU_MEMORY, MEMORY) else None
    if resource == NUMBER:
        return NUMBER if device_id in inventory.gpus else None
    pod = inventory.pod(allocation) if inventory.once(_is_renamed) else None
    is_vgpu = resource == VGPU or (pod is not None and VGPU_IDS in pod.annotations)
    return VGPU if is_vgpu and _VGPU.fullmatch(device_id) else None


def _is_renamed(inventory: Inventory) -> bool:
    """Whether Volcano's plugin offers vGPUs under another name: no other plugin has parts of memory and cores."""
    return bool(inventory.once(_parts)) and not any(resource == VGPU for resource, _ in inventory.allocatable)


def _parts(inventory: Inventory) -> Counter[str]:
    """Count the units of memory that each card offers."""
    found = (_PART.fullmatch(device_id) for _, device_id in inventory.allocatable)
    return Counter(part["card"] for part in found if part and part["kind"] == "memory")


def _given(inventory: Inventory) -> dict[tuple[str, str], dict[str, list[Allocation]]]:
    """Return the ids of each container, by the kind of resource and the pod's UID."""
    given: dict[tuple[str, str], dict[str, list[Allocation]]] = {}
    for allocation in inventory.allocations:
        if (kind := _kind(allocation, inventory)) and (pod := inventory.pod(allocation)):
            given.setdefault((kind, pod.uid), {}).setdefault(allocation.container, []).append(allocation)
    return given


def _vgpus(pod: Pod, inventory: Inventory) -> Iterator[tuple[Allocation, VolcanoDevice]]:
    """Yield a pod's devices on this node's cards, each with one of the container's ids."""
    given = inventory.once(_given).get((VGPU, pod.uid), {}) if VGPU_IDS in pod.annotations else {}
    entries = matched(pod, {container: _number(held) for container, held in given.items()}) if given else {}
    for container, entry in entries.items():
        yield from ((given[container][0], device) for device in entry if device and device.card in inventory.gpus)


def _units(pod: Pod, held: list[Allocation], inventory: Inventory) -> Iterator[VolcanoDevice]:
    """A pod that shares memory has one card."""
    indexed = inventory.once(_indexed).get(pod.uid, ())
    if len(indexed) == 1:
        text = f"{pod.annotations[INDICES]}-* ({_number(held)} units)"
        yield VolcanoDevice(text=text, card=indexed[0], units=_number(held))


def _whole(pod: Pod, held: list[Allocation], inventory: Inventory) -> Iterator[Claim]:
    indexed = inventory.once(_indexed).get(pod.uid, ())
    for card in indexed if len(indexed) == _number(held) else ():
        name = f"index {pod.annotations[INDICES]}"
        yield inventory.claim(held[0], card, system=NAME, device_id=name, source=ANNOTATION)


def _number(held: list[Allocation]) -> int:
    return sum(given.units for given in held)


def _indexed(inventory: Inventory) -> dict[str, tuple[str, ...]]:
    """Return the cards in the annotations of indices, by the UID of the pod; none, if one of them is not here."""
    by_index = inventory.by_index
    annotated = {pod.uid: pod.annotations.get(INDICES, "") for pod in inventory.pods}
    read = {uid: text.split(",") for uid, text in annotated.items() if _INDICES.fullmatch(text)}
    return {
        uid: tuple(by_index[index] for index in indices) if set(indices) <= by_index.keys() else ()
        for uid, indices in read.items()
        if len(set(indices)) == len(indices)
    }


def _vgpu_unit(inventory: Inventory) -> MemoryUnit:
    if parts := inventory.once(_parts):
        return offered(parts, inventory.memory)
    if by_index := _by_index(inventory, VGPU_MEMORY):
        return offered(by_index, inventory.memory)
    if _is_old(inventory):
        return MemoryUnit(of_card={card: size // MIB for card, size in inventory.memory.items()}, mib=1)
    return MemoryUnit(of_card={})


def _is_old(inventory: Inventory) -> bool:
    """Whether the plugin offers vGPUs, but neither memory nor cores, and no container has any of these."""
    has_vgpus = any(resource == VGPU for resource, _ in inventory.allocatable)
    has_parts = any(_PART.fullmatch(device_id) for _, device_id in inventory.allocatable)
    return has_vgpus and not has_parts and not any(kind != VGPU for kind, _ in inventory.once(_given))


def _memory_unit(inventory: Inventory) -> MemoryUnit:
    return offered(_by_index(inventory, MEMORY), inventory.memory)


def _by_index(inventory: Inventory, resource: str) -> Counter[str]:
    by_index = inventory.by_index
    ids = (_UNIT.fullmatch(device_id) for offered, device_id in inventory.allocatable if offered == resource)
    return Counter(by_index[match["index"]] for match in ids if match and match["index"] in by_index)


def _claim(allocation: Allocation, device: VolcanoDevice, unit: MemoryUnit, inventory: Inventory) -> Claim:
    """Claim a part of a card. If a unit's size is not known, the file of the library in the container has the limit."""
    cores = device.cores / 100 if device.cores else None
    pod = inventory.pod(allocation)
    enforced = inventory.enforced.get((pod.uid if pod else "", allocation.container, device.card))
    limit = unit.size(device.card, device.units) if device.card in inventory.memory else None
    return inventory.claim(
        allocation,
        device.card,
        system=NAME,
        share=cores or unit.share(device.card, device.units),
        memory=limit or enforced,
        cores=cores,
        device_id=device.text,
        source=ANNOTATION,
    )


def matched(pod: Pod, given: Mapping[str, int]) -> dict[str, Entry]:
    """Find the entry of each container. `given` is how many ids each has."""
    text = pod.annotations[VGPU_IDS]
    if text.count(";") > MOST_ENTRIES or text.count(":") > MOST_DEVICES:
        return {}
    entries = _entries(text)
    # The spec of a pod without a phase is not known.
    listed = [container.name for container in pod.containers if pod.phase and not container.is_init]
    names = [name for name in listed if name in given]
    if len(names) == len(given) and [given[name] for name in names] == list(map(len, entries)):
        return dict(zip(names, entries, strict=True))
    return by_number(entries, given)


@lru_cache(REMEMBERED)
def _entries(text: str) -> tuple[Entry, ...]:
    listed = (filter(None, entry.split(":")) for entry in text.split(";"))
    return tuple(entry for devices in listed if (entry := tuple(map(_device, devices))))


def _device(text: str) -> VolcanoDevice | None:
    match = _DEVICE.fullmatch(text)
    units, cores = (int(match[2]), int(match[3])) if match else (0, 0)
    if match is None or units > MOST_UNITS or cores > 100:
        return None
    return VolcanoDevice(text=text, card=match[1], units=units, cores=cores)


def offered(counts: Counter[str], memory: Mapping[str, int]) -> MemoryUnit:
    """Return the unit that fits the number of ids of each card. `memory` has the cards' memory in bytes."""
    known = {card: count for card, count in counts.items() if count != ANY_CARD}
    sizes = {card: memory[card] // MIB for card in known if memory.get(card)}
    least = max((mib // (known[card] + 1) + 1 for card, mib in sizes.items()), default=1)
    most = min((mib // known[card] for card, mib in sizes.items()), default=0)
    return MemoryUnit(of_card=known, mib=_only(least, most))


def _only(least: int, most: int) -> int | None:
    fitting = [least] if least == most else [number for number in _ROUND if least <= number <= most]
    return fitting[0] if len(fitting) == 1 else None


def _request_lines(wanted: WantedPart) -> str:
    size = -(-(wanted.memory_bytes or 0) // MIB)
    return f"{VGPU_MEMORY}: {size}\n{VGPU_CORES}: {round((wanted.core_ratio or 1.0) * ALL_CORES)}"


SYSTEM = SharingSystem(
    name=NAME,
    signs=("volcano.sh/vgpu-", "volcano.sh/gpu-"),
    own_resources=(NUMBER,),
    needs="the kubelet's list of devices, and the pods' annotations",
    explains=explains,
    claims=claims,
    withdraws=withdraws,
    ambiguous_claims=ambiguous_claims,
    doubts=doubts,
    cards=cards,
    node_annotations=(NODE_CARDS,),
    annotations=(VGPU_IDS, INDICES),
    minimum=minimum,
    holdings=holdings,
    lasts=True,  # without limits, nothing else shows how much
    request=PartRequest(PORTION, _request_lines),
)
