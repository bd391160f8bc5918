"""HAMi: parts of a card's memory and cores.

The kubelet's ids are `UUID-N`, picked as it likes: only how many it gave to which container holds. Which cards these
are the scheduler noted on the pod. Where no note can be seen, the file says it that the library in the container keeps.
Others than HAMi can write both, so neither counts for more than the kubelet gave.

A share is the part of the cores, if these are limited, else the part of the card's memory. Where that is not known it
is 0: the limit is a fact, a share would be a guess.
"""

import re
from collections.abc import Iterator, Sequence
from functools import lru_cache
from typing import TypeAlias

import msgspec

from podgpu.model import Allocation, Claim, VirtualGpu
from podgpu.sharing.hami.cache import observe
from podgpu.sharing.hami.note import NOTE, Slice, matched
from podgpu.sharing.inventory import Inventory

__all__ = ["NAME", "NEEDS", "SIGNS", "claims", "explains", "observe"]

NAME = "hami"
SIGNS: tuple[str, ...] = ("hami.io/vgpu-", "nvidia.com/gpumem", "nvidia.com/gpucores")
NEEDS = "the kubelet's list of devices, and the pods' annotations or the node's /usr/local/vgpu"
VENDOR = "nvidia.com/"
ALL_CORES = 100
ROUNDING = 1e-6

_ID = re.compile(r"GPU-[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}-[0-9]{1,5}")

Given: TypeAlias = dict[str, dict[str, list[Allocation]]]  # what the kubelet gave, by pod UID and container


def explains(allocation: Allocation, inventory: Inventory) -> bool:
    pod = inventory.pod(allocation) if _is_own(allocation) else None
    held = (claim.container for claim in _claims(inventory))
    return pod is not None and any(
        (one.pod_uid, one.container) == (pod.uid, allocation.container) for one in held
    )


def claims(inventory: Inventory) -> Iterator[Claim]:
    yield from _claims(inventory)


@lru_cache(maxsize=1)  # each id asks for it
def _claims(inventory: Inventory) -> tuple[Claim, ...]:
    given = _given(inventory)
    noted = list(_by_note(given, inventory))
    return (*noted, *_within(list(_by_cache(given, inventory)), noted))


def _is_own(allocation: Allocation) -> bool:
    return allocation.resource.startswith(VENDOR) and _ID.fullmatch(allocation.device_id) is not None


def _given(inventory: Inventory) -> Given:
    given: Given = {}
    for one in filter(_is_own, inventory.allocations):
        if pod := inventory.pod(one):
            given.setdefault(pod.uid, {}).setdefault(one.container, []).append(one)
    return given


def _by_note(given: Given, inventory: Inventory) -> Iterator[Claim]:
    for pod in inventory.pods:
        held = given.get(pod.uid, {}) if NOTE in pod.annotations else {}
        entries = matched(pod, {container: len(ids) for container, ids in held.items()}) if held else {}
        for container, entry in entries.items():
            for index, each in enumerate(entry):
                if each and each.card in inventory.gpus:
                    claim = _claim(held[container][0], each, "annotation", inventory)
                    yield msgspec.structs.replace(claim, index=index)


def _by_cache(given: Given, inventory: Inventory) -> Iterator[Claim]:
    """Claim what a container's own file names, for pods without a note, and no more cards than it has ids."""
    unnoted = {pod.uid for pod in inventory.pods if NOTE not in pod.annotations}
    files: dict[tuple[str, str], list[VirtualGpu]] = {}
    for vgpu in inventory.vgpus:
        if vgpu.pod_uid in unnoted:
            files.setdefault((vgpu.pod_uid, vgpu.container), []).append(vgpu)
    shared = _shared(inventory)
    for (uid, container), vgpus in files.items():
        held = given.get(uid, {}).get(container, [])
        if len(vgpus) <= len(held):
            for vgpu in vgpus:
                if vgpu.gpu in shared:
                    claim = _claim(held[0], _slice(vgpu), "cache", inventory)
                    yield msgspec.structs.replace(claim, index=vgpu.index)


def _shared(inventory: Inventory) -> set[str]:
    """The cards that a file may name: whole ones, of which nobody holds anything by another system's id."""
    others = [one.device_id for one in inventory.allocations if not _is_own(one)]
    whole = inventory.gpus - set(inventory.instances.values())
    return {card for card in whole if not any(card in device_id for device_id in others)}


def _within(cached: Sequence[Claim], noted: Sequence[Claim]) -> Iterator[Claim]:
    """Make files share what notes leave of a card: who writes a large number into his own takes from nobody.

    If that is too little for all of them, each may have an equal part of it.
    """
    for card in dict.fromkeys(claim.gpu for claim in cached):
        rivals = [claim for claim in cached if claim.gpu == card]
        left = max(0.0, 1.0 - sum(claim.share for claim in noted if claim.gpu == card))
        suffices = sum(claim.share for claim in rivals) <= left + ROUNDING
        most = 1.0 if suffices else left / len(rivals)
        for claim in rivals:
            yield msgspec.structs.replace(claim, share=min(claim.share, most))


def _slice(vgpu: VirtualGpu) -> Slice:
    """All of the cores is what the library writes where no limit was set."""
    cores = round((vgpu.core_limit_ratio or 0.0) * ALL_CORES)
    return Slice(
        text=f"{vgpu.pod_uid}_{vgpu.container}/{vgpu.index}",
        card=vgpu.gpu,
        memory=vgpu.memory_limit_bytes or 0,
        cores=cores if cores < ALL_CORES else 0,
    )


def _claim(allocation: Allocation, one: Slice, source: str, inventory: Inventory) -> Claim:
    is_instance = inventory.instances.get(one.mig) == one.card
    device, share = (one.mig, 1.0) if is_instance else (one.card, _share(one, inventory))
    return msgspec.structs.replace(
        inventory.claim(allocation, device, system=NAME, share=share),
        memory_limit_bytes=one.memory or None,
        core_limit_ratio=None if is_instance or not one.cores else one.cores / ALL_CORES,
        device_id=one.text,
        source=source,
    )


def _share(one: Slice, inventory: Inventory) -> float:
    if one.cores:
        return one.cores / ALL_CORES
    total = inventory.memory.get(one.card)
    return min(1.0, one.memory / total) if total else 0.0
