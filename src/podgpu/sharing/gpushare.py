"""Aliyun gpushare: memory units of a card, one device id each, `UUID-_-N`.

The kubelet picks ids as it likes; the card is the one the scheduler noted on the pod, by its /dev minor. Only where
the pod is not known does the id's own UUID have to do.
"""

from collections import Counter
from collections.abc import Iterator

import msgspec

from podgpu.model import Allocation, Claim, Pod
from podgpu.sharing.inventory import Inventory

NAME = "gpushare"
SIGNS: tuple[str, ...] = ("aliyun.com/gpu-", "ALIYUN_COM_GPU_")
NEEDS = "the kubelet's list of devices, and the pods' annotations"
RESOURCE = "aliyun.com/gpu-mem"
MINOR = "ALIYUN_COM_GPU_MEM_IDX"
UNITS_OF_CARD = "ALIYUN_COM_GPU_MEM_DEV"
SEPARATOR = "-_-"
GIB, MIB = 1 << 30, 1 << 20
MOST_GIB = 4096  # a card of more units than this is counted in MiB


def explains(allocation: Allocation, inventory: Inventory) -> bool:
    return allocation.resource == RESOURCE and _card(allocation, inventory) is not None


def claims(inventory: Inventory) -> Iterator[Claim]:
    """One claim per container and card: its units together."""
    units: Counter[tuple[Allocation, str]] = Counter()
    for allocation in inventory.allocations:
        card = _card(allocation, inventory) if allocation.resource == RESOURCE else None
        if card:
            units[msgspec.structs.replace(allocation, device_id=card + SEPARATOR), card] += 1
    offered = _offered(inventory)
    for (allocation, card), held in units.items():
        noted = _number(inventory.pod(allocation), UNITS_OF_CARD)
        of_card = noted or offered[card] or _by_memory(card, held, inventory)
        claim = inventory.claim(allocation, card, system=NAME, share=held / max(of_card, held))
        unit = GIB if of_card <= MOST_GIB else MIB
        yield msgspec.structs.replace(
            claim, memory_limit_bytes=held * unit, device_id=f"{card}{SEPARATOR}* ({held} of {of_card} units)"
        )


def _card(allocation: Allocation, inventory: Inventory) -> str | None:
    pod = inventory.pod(allocation)
    if pod and MINOR in pod.annotations:
        return inventory.by_minor.get(pod.annotations[MINOR])
    uuid = allocation.device_id.partition(SEPARATOR)[0]
    return uuid if uuid in inventory.gpus else None


def _offered(inventory: Inventory) -> Counter[str]:
    """Count each card's units that the plugin offers: none, for a while, after a kubelet's restart."""
    return Counter(
        device_id.partition(SEPARATOR)[0]
        for resource, device_id in inventory.allocatable
        if resource == RESOURCE
    )


def _by_memory(card: str, held: int, inventory: Inventory) -> int:
    """Count them as the plugin does: a card's whole GiB, or MiB where somebody holds more than that."""
    memory = inventory.memory.get(card, 0)
    return memory // GIB if held <= memory // GIB else memory // MIB


def _number(pod: Pod | None, annotation: str) -> int:
    text = pod.annotations.get(annotation, "") if pod else ""
    return int(text) if text.isascii() and text.isdigit() and len(text) < 10 else 0
