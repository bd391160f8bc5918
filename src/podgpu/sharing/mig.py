"""MIG instances: the device plugin's id is the instance's UUID, or its place on the card with old drivers.

The resource is `nvidia.com/gpu` if all instances of the node are alike. Otherwise each profile has its own.
"""

import re
from collections.abc import Iterator

from podgpu.model import Allocation, Claim, Device, MigInstance
from podgpu.model.fit import INSTANCE
from podgpu.sharing import kube_cards
from podgpu.sharing.inventory import Inventory
from podgpu.sharing.system import PartRequest, SharingSystem

NAME = "mig"
BY_PROFILE = "nvidia.com/mig-"
REPLICA = "::"  # an instance may be handed out several times

_OLD = re.compile(r"MIG-(?P<card>GPU-[-0-9a-f]{36})/(?P<gi>[0-9]{1,3})/(?P<ci>[0-9]{1,3})")


def explains(allocation: Allocation, inventory: Inventory) -> bool:
    return allocation.device_id in inventory.mig_names


def claims(inventory: Inventory) -> Iterator[Claim]:
    for allocation in inventory.allocations:
        if instance := inventory.mig_names.get(allocation.device_id):
            yield inventory.claim(allocation, instance, system=NAME)


def cards(inventory: Inventory) -> Iterator[Device]:
    """Put all instances on one card without a UUID: an instance's UUID does not name its card."""
    homeless: dict[str, MigInstance] = {}
    for held in inventory.allocations:
        name = held.device_id.partition(REPLICA)[0]
        profile = held.resource.removeprefix(BY_PROFILE) if held.resource.startswith(BY_PROFILE) else ""
        if kube_cards.MIG.fullmatch(name):
            homeless.setdefault(name, kube_cards.instance(name, profile=profile))
        elif old := _OLD.fullmatch(name):
            instance = kube_cards.instance(name, profile=profile, place=(int(old["gi"]), int(old["ci"])))
            yield kube_cards.card(old["card"], instances=[instance])
    if homeless:
        yield kube_cards.card(instances=homeless.values())


SYSTEM = SharingSystem(
    name=NAME,
    signs=(BY_PROFILE,),
    needs="device ids that are the UUID of a MIG instance of this node",
    explains=explains,
    claims=claims,
    cards=cards,
    request=PartRequest(INSTANCE, lambda wanted: f"{BY_PROFILE}{wanted.profile}: {wanted.devices}"),
)
