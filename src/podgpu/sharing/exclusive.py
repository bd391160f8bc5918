"""Whole GPUs: the device plugin's id is the card's UUID.

Where cards have no UUIDs, it is `all` (WSL: every card) or `tegra` (the built-in card).
"""

from collections.abc import Iterator

from podgpu.model import Allocation, Claim, Device
from podgpu.model.fit import WHOLE, WantedPart
from podgpu.sharing import kube_cards
from podgpu.sharing.inventory import Inventory
from podgpu.sharing.system import PartRequest, SharingSystem

NAME = "exclusive"
VENDOR = "nvidia.com/"  # other plugins may have an `all` too
EVERY, BUILT_IN = "all", "tegra"


def explains(allocation: Allocation, inventory: Inventory) -> bool:
    return bool(_cards(allocation, inventory))


def claims(inventory: Inventory) -> Iterator[Claim]:
    for allocation in inventory.allocations:
        for card in _cards(allocation, inventory):
            yield inventory.claim(allocation, card, system=NAME)


def cards(inventory: Inventory) -> Iterator[Device]:
    return kube_cards.by_uuid(given.device_id for given in inventory.allocations)


def _cards(allocation: Allocation, inventory: Inventory) -> tuple[str, ...]:
    if allocation.device_id in inventory.gpus:
        return (allocation.device_id,)
    is_alone = len(inventory.cards) == 1
    is_meant = allocation.device_id == EVERY or (allocation.device_id == BUILT_IN and is_alone)
    return inventory.cards if is_meant and allocation.resource.startswith(VENDOR) else ()


def _request_lines(wanted: WantedPart) -> str:
    return f"{VENDOR}gpu: {wanted.devices}"


SYSTEM = SharingSystem(
    name=NAME,
    signs=(),
    needs="device ids that are the UUID of a card of this node",
    explains=explains,
    claims=claims,
    cards=cards,
    request=PartRequest(WHOLE, _request_lines),
)
