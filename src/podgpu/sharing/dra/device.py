"""Which card or MIG instance a device of a DRA driver is: by its ResourceSlice, else by its name.

The number in a name is that of /dev/nvidiaN. An instance's name ends in its profile's id and where it starts. Names of
instances by NVIDIA's driver 25.3 to 25.8 (`gpu-0-mig-19-0-1`) have no profile in words: these need the slices.
"""

import re
from collections.abc import Iterator, Mapping
from typing import TypeAlias

from podgpu.model import Device, MigInstance, PoolDevice
from podgpu.sharing import kube_cards
from podgpu.sharing.inventory import Inventory
from podgpu.sharing.quantity import size

NVIDIA = "gpu.nvidia.com"
HAMI = "hami-core-gpu.project-hami.io"

_CARDS = {
    NVIDIA: re.compile(r"gpu-(?P<minor>[0-9]{1,4})"),
    HAMI: re.compile(r"hami-gpu-(?P<minor>[0-9]{1,4})"),
}
_MIG = re.compile(r"gpu-(?P<minor>[0-9]{1,4})-mig-(?P<profile>.+)-[0-9]{1,4}-(?P<start>[0-9]{1,4})")

Place: TypeAlias = tuple[str, str, str]  # driver, pool, device


def found(place: Place, inventory: Inventory) -> str | None:
    """Return the UUID of the card or the MIG instance, if this node has it."""
    offered = inventory.once(pool).get(place)
    attributes = offered.attributes if offered else {}
    if uuid := attributes.get("uuid"):
        return uuid if uuid in inventory.gpus or uuid in inventory.instances else None
    driver, _, name = place
    if driver not in _CARDS:
        return None
    if card := _CARDS[driver].fullmatch(name):
        return inventory.by_minor.get(card["minor"])
    mig = _MIG.fullmatch(name) if driver == NVIDIA else None
    return _instance(mig, attributes.get("parentUUID"), inventory) if mig else None


def pool(inventory: Inventory) -> Mapping[Place, PoolDevice]:
    """Return what drivers offer."""
    return {(one.driver, one.pool, one.device): one for one in reversed(inventory.pool_devices)}


def sighted(inventory: Inventory) -> Iterator[Device]:
    """Yield the cards of the slices, and those that their MIG instances are on."""
    for one in inventory.pool_devices:
        if one.driver not in _CARDS:
            continue
        if card := _CARDS[one.driver].fullmatch(one.device):
            uuid = one.attributes.get("uuid", "")
            memory, model = size(one.capacity.get("memory", "")), one.attributes.get("productName", "")
            yield kube_cards.card(uuid, number=int(card["minor"]), model=model, memory=memory)
        elif mig := _MIG.fullmatch(one.device):
            instance = kube_cards.instance(
                one.attributes.get("uuid") or one.device,
                profile=one.attributes.get("profile", mig["profile"]),
                start=int(mig["start"]),
            )
            parent = one.attributes.get("parentUUID", "")
            yield kube_cards.card(parent, number=int(mig["minor"]), instances=[instance])


def _instance(name: re.Match[str], parent: str | None, inventory: Inventory) -> str | None:
    """Find an instance by its profile and where it starts. The driver cannot know the UUID of one made on demand."""
    card = inventory.by_minor.get(name["minor"], parent)
    if parent not in (None, card):
        return None
    migs = inventory.migs.get(card or "", ())
    alike = [mig for mig in migs if _bare(mig.profile) == _bare(name["profile"])]
    there = [mig for mig in alike if mig.start == int(name["start"])]
    return _only(there) or (_only(alike) if all(mig.start is None for mig in alike) else None)


def _bare(profile: str) -> str:
    """A device's name has no room for dots and plus signs."""
    return "".join(filter(str.isalnum, profile)).lower()


def _only(migs: list[MigInstance]) -> str | None:
    return migs[0].uuid if len(migs) == 1 else None
