"""Volcano: its vGPUs, and the older sharing of cards. The ids say how much, the pod's note which card.

A vGPU's ids are `UUID-N`, `UUID-memory-N` and `UUID-core-N`. Their resources have names that can be set. The older
plugin has ids `INDEX-N` for units of memory, and UUIDs for whole cards. It does not keep to either: the pod's note has
the indices of its cards.

A share is the part of the cores, if these are limited, else the part of the card's memory. Where that is not known it
is 0: the limit is a fact, a share would be a guess.
"""

import re
from collections import Counter
from collections.abc import Iterator

import msgspec

from podgpu.model import Allocation, Claim, Device, Pod
from podgpu.sharing import kube_cards
from podgpu.sharing.ambiguity import AmbiguousClaims
from podgpu.sharing.inventory import Inventory
from podgpu.sharing.quantity import MinimumClaim, quantity
from podgpu.sharing.volcano.note import NOTE, VolcanoDevice, matched
from podgpu.sharing.volcano.unit import MemoryUnit, mebibyte, offered

NAME = "volcano"
SIGNS: tuple[str, ...] = ("volcano.sh/vgpu-", "volcano.sh/gpu-")
NEEDS = "the kubelet's list of devices, and the pods' annotations"
VGPU, VGPU_MEMORY, VGPU_CORES = "volcano.sh/vgpu-number", "volcano.sh/vgpu-memory", "volcano.sh/vgpu-cores"
VGPU_PERCENT = "volcano.sh/vgpu-memory-percentage"
VGPU_NOTE = NOTE
MEMORY, NUMBER, INDICES = "volcano.sh/gpu-memory", "volcano.sh/gpu-number", "volcano.sh/gpu-index"
REGISTER = "volcano.sh/node-vgpu-register"
REGISTERS: tuple[str, ...] = (REGISTER,)
NOTES: tuple[str, ...] = (NOTE, INDICES)
ALL_CORES = 100
UNKNOWN_UNIT = (
    "limits of memory are not known: the ids that the plugin offers do not show the size of a unit. "
    "Those of plugin 1.12 do, and so does a container's file in /usr/local/vgpu"
)

_UUID = r"GPU-[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}"
_VGPU = re.compile(rf"{_UUID}-[0-9]{{1,5}}")
_PART = re.compile(rf"(?P<card>{_UUID})-(?P<kind>memory|core)-[0-9]{{1,8}}")
_UNIT = re.compile(r"(?P<index>[0-9]{1,3})-[0-9]{1,8}")
_INDICES = re.compile(r"[0-9]{1,3}(?:,[0-9]{1,3}){0,63}")


def explains(allocation: Allocation, inventory: Inventory) -> bool:
    """Memory and cores of a vGPU are in the same note as the vGPU itself."""
    pod = inventory.pod(allocation)
    kind = _kind(allocation, inventory)
    if pod is None or kind is None:
        return False
    if kind in (VGPU_MEMORY, VGPU_CORES):
        return NOTE in pod.annotations
    return (pod.uid, allocation.container) in inventory.once(_holders)


def claims(inventory: Inventory) -> Iterator[Claim]:
    yield from inventory.once(_claims)


def cards(inventory: Inventory) -> Iterator[Device]:
    """Yield what the vGPU plugin notes on its node, `UUID,…:`, and the cards that the older plugin counts."""
    noted = (one.partition(",")[0] for one in inventory.node.annotations.get(REGISTER, "").split(":"))
    yield from (kube_cards.card(one) for one in noted if kube_cards.UUID.fullmatch(one))
    yield from kube_cards.numbered(kube_cards.offered(inventory.node.capacity, NUMBER))


def withdraws(claim: Claim, inventory: Inventory) -> bool:
    """Withdraw claims that go by the UUIDs of a pod with a note: the plugin goes by the note."""
    if claim.resource != NUMBER or claim.system == NAME:
        return False
    return claim.container.pod_uid in inventory.once(_indexed)


def ambiguous_claims(inventory: Inventory) -> Iterator[AmbiguousClaims]:
    """Yield where note and UUIDs name different cards. The plugin goes by the note, if it can read the pod."""
    given = inventory.once(_given)
    for pod in inventory.pods if given else ():
        for held in given.get((NUMBER, pod.uid), {}).values():
            noted = tuple(_whole(pod, held, inventory))
            listed = tuple(inventory.claim(one, one.device_id, system=NAME) for one in held if one.device_id)
            if noted and listed and {one.gpu for one in noted} != {one.gpu for one in listed}:
                yield AmbiguousClaims(readings=(noted, listed), usual=0)


def least(claim: Claim, inventory: Inventory) -> MinimumClaim | None:
    """By the ids of memory and cores, so much of each card; older plugins have none, then by the spec."""
    if claim.resource in (MEMORY, NUMBER):
        return None  # the ids say it all
    units, cores = (_asked(kind, claim, inventory) for kind in (VGPU_MEMORY, VGPU_CORES))
    limits = inventory.limits(claim.container) or {}
    percent = float(quantity(limits.get(VGPU_PERCENT, "")) or 0) / ALL_CORES
    unit = inventory.once(_vgpu_unit)
    return MinimumClaim(
        share=cores / ALL_CORES or unit.share(claim.gpu, units) or percent,
        memory=unit.size(claim.gpu, units) or 0,
        cores=cores / ALL_CORES,
    )


def _asked(kind: str, claim: Claim, inventory: Inventory) -> int:
    held = inventory.once(_given).get((kind, claim.container.pod_uid), {}).get(claim.container.container, [])
    limits = inventory.limits(claim.container) or {}
    return _number(held) or kube_cards.count(limits.get(kind, ""))


def unplaced(inventory: Inventory) -> Iterator[Allocation]:
    placed = inventory.once(_holders)
    for (kind, uid), containers in inventory.once(_given).items():
        if kind in (VGPU, MEMORY):
            yield from (held[0] for name, held in containers.items() if (uid, name) not in placed)


def doubts(inventory: Inventory) -> Iterator[str]:
    vgpu, memory = inventory.once(_vgpu_unit), inventory.once(_memory_unit)
    unlimited = [
        one for one in inventory.once(_claims) if one.resource != NUMBER and not one.memory_limit_bytes
    ]
    if any((memory if one.resource == MEMORY else vgpu).mib is None for one in unlimited):
        yield UNKNOWN_UNIT


def _claims(inventory: Inventory) -> tuple[Claim, ...]:
    vgpu, memory = inventory.once(_vgpu_unit), inventory.once(_memory_unit)
    given = inventory.once(_given)
    found: list[Claim] = []
    for pod in inventory.pods if given else ():
        found += [_claim(held, one, vgpu, inventory) for held, one in _vgpus(pod, inventory)]
        for container in given.get((MEMORY, pod.uid), {}).values():
            found += [
                _claim(container[0], one, memory, inventory) for one in _units(pod, container, inventory)
            ]
        for container in given.get((NUMBER, pod.uid), {}).values():
            found += _whole(pod, container, inventory)
    return tuple(found)


def _holders(inventory: Inventory) -> set[tuple[str, str]]:
    return {(one.container.pod_uid, one.container.container) for one in inventory.once(_claims)}


def _kind(allocation: Allocation, inventory: Inventory) -> str | None:
    """Return the usual name of the resource that an id is of; a plugin may have given it another."""
    resource, device_id = allocation.resource, allocation.device_id
    if not device_id:
        return resource if resource in (VGPU, VGPU_MEMORY, VGPU_CORES, MEMORY, NUMBER) else None
    if part := _PART.fullmatch(device_id):
        return VGPU_MEMORY if part["kind"] == "memory" else VGPU_CORES
    if _UNIT.fullmatch(device_id):
        return resource if resource in (VGPU_MEMORY, MEMORY) else None
    if resource == NUMBER:
        return NUMBER if device_id in inventory.gpus else None
    is_vgpu = resource == VGPU or (inventory.once(_is_renamed) and _is_noted(allocation, inventory))
    return VGPU if is_vgpu and _VGPU.fullmatch(device_id) else None


def _is_noted(allocation: Allocation, inventory: Inventory) -> bool:
    pod = inventory.pod(allocation)
    return pod is not None and NOTE in pod.annotations


def _is_renamed(inventory: Inventory) -> bool:
    """Whether a plugin of Volcano's offers vGPUs by another name: no other plugin has parts of memory and cores."""
    return bool(inventory.once(_parts)) and not any(one == VGPU for one, _ in inventory.allocatable)


def _parts(inventory: Inventory) -> Counter[str]:
    """Count the units of memory that are offered of each card."""
    found = (_PART.fullmatch(device_id) for _, device_id in inventory.allocatable)
    return Counter(part["card"] for part in found if part and part["kind"] == "memory")


def _given(inventory: Inventory) -> dict[tuple[str, str], dict[str, list[Allocation]]]:
    """Return what the kubelet gave, by the kind of resource and the pod's UID, for each container."""
    given: dict[tuple[str, str], dict[str, list[Allocation]]] = {}
    for one in inventory.allocations:
        if (kind := _kind(one, inventory)) and (pod := inventory.pod(one)):
            given.setdefault((kind, pod.uid), {}).setdefault(one.container, []).append(one)
    return given


def _vgpus(pod: Pod, inventory: Inventory) -> Iterator[tuple[Allocation, VolcanoDevice]]:
    """Yield what a pod holds of this node's cards, with one of its ids."""
    given = inventory.once(_given).get((VGPU, pod.uid), {}) if NOTE in pod.annotations else {}
    entries = matched(pod, {container: _number(held) for container, held in given.items()}) if given else {}
    for container, entry in entries.items():
        yield from ((given[container][0], one) for one in entry if one and one.card in inventory.gpus)


def _units(pod: Pod, held: list[Allocation], inventory: Inventory) -> Iterator[VolcanoDevice]:
    """A pod that shares memory has one card."""
    indexed = inventory.once(_indexed).get(pod.uid, ())
    if len(indexed) == 1:
        text = f"{pod.annotations[INDICES]}-* ({_number(held)} units)"
        yield VolcanoDevice(text=text, card=indexed[0], units=_number(held))


def _whole(pod: Pod, held: list[Allocation], inventory: Inventory) -> Iterator[Claim]:
    indexed = inventory.once(_indexed).get(pod.uid, ())
    for card in indexed if len(indexed) == _number(held) else ():
        claim = inventory.claim(held[0], card, system=NAME)
        yield msgspec.structs.replace(
            claim, device_id=f"index {pod.annotations[INDICES]}", source="annotation"
        )


def _number(held: list[Allocation]) -> int:
    return sum(one.units for one in held)


def _indexed(inventory: Inventory) -> dict[str, tuple[str, ...]]:
    """Return the cards that pods were given by index, by the UID of the pod; none, if one of them is not here."""
    by_index = inventory.by_index
    noted = {pod.uid: pod.annotations.get(INDICES, "") for pod in inventory.pods}
    read = {uid: text.split(",") for uid, text in noted.items() if _INDICES.fullmatch(text)}
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
    return mebibyte(inventory.memory) if _is_old(inventory) else MemoryUnit(of_card={})


def _is_old(inventory: Inventory) -> bool:
    """Whether the plugin offers vGPUs and neither memory nor cores, and nobody was given any."""
    has_vgpus = any(resource == VGPU for resource, _ in inventory.allocatable)
    has_parts = any(_PART.fullmatch(device_id) for _, device_id in inventory.allocatable)
    return has_vgpus and not has_parts and not any(kind != VGPU for kind, _ in inventory.once(_given))


def _memory_unit(inventory: Inventory) -> MemoryUnit:
    return offered(_by_index(inventory, MEMORY), inventory.memory)


def _by_index(inventory: Inventory, resource: str) -> Counter[str]:
    by_index = inventory.by_index
    ids = (_UNIT.fullmatch(device_id) for one, device_id in inventory.allocatable if one == resource)
    return Counter(by_index[one["index"]] for one in ids if one and one["index"] in by_index)


def _claim(allocation: Allocation, one: VolcanoDevice, unit: MemoryUnit, inventory: Inventory) -> Claim:
    """Claim a part of a card. Where a unit's size is not known, the library in the container may keep the limit."""
    cores = one.cores / 100 if one.cores else None
    claim = inventory.claim(allocation, one.card, system=NAME, share=cores or unit.share(one.card, one.units))
    limit = unit.size(one.card, one.units) if one.card in inventory.memory else None
    holder = claim.container.pod_uid, claim.container.container, one.card
    return msgspec.structs.replace(
        claim,
        memory_limit_bytes=limit or inventory.enforced.get(holder),
        core_limit_ratio=cores,
        device_id=one.text,
        source="annotation",
    )
