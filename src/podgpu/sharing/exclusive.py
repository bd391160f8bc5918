"""Whole GPUs: the device plugin's id is the card's UUID.

Where cards have no UUIDs, it is `all` (WSL: every card) or `tegra` (the built-in card).
"""

from collections.abc import Iterator

from podgpu.model import Allocation, Claim, Device
from podgpu.model.fit import WHOLE
from podgpu.sharing import kube_cards
from podgpu.sharing.inventory import VENDOR, Inventory
from podgpu.sharing.system import PartRequest, SharingSystem

NAME = "exclusive"


def explains(allocation: Allocation, inventory: Inventory) -> bool:
    return bool(_cards(allocation, inventory))


def claims(inventory: Inventory) -> Iterator[Claim]:
    for allocation in inventory.allocations:
        for card in _cards(allocation, inventory):
            yield inventory.claim(allocation, card, system=NAME)


def cards(inventory: Inventory) -> Iterator[Device]:
    return kube_cards.by_uuid(allocation.device_id for allocation in inventory.allocations)


def _cards(allocation: Allocation, inventory: Inventory) -> tuple[str, ...]:
    if allocation.device_id in inventory.gpus:
        return (allocation.device_id,)
    return inventory.cards_without_names(allocation, allocation.device_id)


SYSTEM = SharingSystem(
    name=NAME,
    signs=(),
    needs="device ids that are the UUID of a card of this node",
    explains=explains,
    claims=claims,
    cards=cards,
    request=PartRequest(WHOLE, lambda wanted: f"{VENDOR}gpu: {wanted.devices}"),
)
