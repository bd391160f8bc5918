"""Virtual GPUs of a plugin that provides no details: how many each card has, the ratio, is a setting of this node.

Such a plugin hands out a card's UUID more than once, or the UUID with a suffix. A container with two of a card's four
virtual GPUs holds half of the card. If there are several ratios, but not as many as cards, nobody knows which is for
which card: then no share is known.
"""

from collections.abc import Iterator

from podgpu.model import Allocation, Claim
from podgpu.sharing.inventory import Inventory
from podgpu.sharing.system import SharingSystem

NAME = "ratio"
WHOLE_CARDS = "exclusive"  # the system that takes a UUID for a whole card
VENDOR = "nvidia.com/"
UNKNOWN = 0.0
REPLICA = "::"  # NVIDIA's own plugin offers all of these, so their number is known


def explains(allocation: Allocation, inventory: Inventory) -> bool:
    return _card(allocation, inventory) is not None


def claims(inventory: Inventory) -> Iterator[Claim]:
    ratios = inventory.once(_ratios)
    for allocation in inventory.allocations if ratios else ():
        if card := _card(allocation, inventory):
            share = 1 / ratios[card] if ratios[card] != UNKNOWN else 0.0
            limit = int(inventory.memory.get(card, 0) * share) or None
            yield inventory.claim(allocation, card, system=NAME, share=share, memory=limit)


def doubts(inventory: Inventory) -> Iterator[str]:
    if inventory.cards and len(inventory.ratios) not in (0, 1, len(inventory.cards)):
        yield (
            f"the ratio file has {len(inventory.ratios)} numbers for {len(inventory.cards)} GPUs, so no share by it is "
            "known; write one number, or one for each GPU, and a fraction with a point: 2.5"
        )


def withdraws(claim: Claim, inventory: Inventory) -> bool:
    is_by_uuid = claim.system == WHOLE_CARDS and claim.device_id == claim.gpu
    return is_by_uuid and inventory.once(_ratios).get(claim.gpu, 1) != 1


def _ratios(inventory: Inventory) -> dict[str, float]:
    """Return each card's ratio, by its UUID."""
    ratios = inventory.ratios
    if len(ratios) == 1:
        return dict.fromkeys(inventory.gpus, ratios[0])
    if ratios and len(ratios) != len(inventory.cards):
        return dict.fromkeys(inventory.gpus, UNKNOWN)
    gpus = (device.gpu for device in inventory.devices)
    return {gpu.uuid: ratios[gpu.index] for gpu in gpus if 0 <= gpu.index < len(ratios)}


def _card(allocation: Allocation, inventory: Inventory) -> str | None:
    ratios = inventory.once(_ratios)
    named = inventory.named(allocation.device_id) if ratios else ()
    card = max((uuid for uuid in named if allocation.device_id.startswith(uuid)), key=len, default="")
    if card not in ratios:
        return None
    suffix = allocation.device_id.removeprefix(card)
    if not suffix:
        return card if ratios[card] != 1 else None
    # Another system knows how many replicas there are.
    is_part = not suffix[0].isalnum() and not suffix.startswith(REPLICA)
    return card if is_part and allocation.resource.startswith(VENDOR) else None


SYSTEM = SharingSystem(
    name=NAME,
    signs=(),
    needs="the ratio, and device ids that begin with the UUID of a card",
    explains=explains,
    claims=claims,
    doubts=doubts,
    withdraws=withdraws,
    yields=True,
)
