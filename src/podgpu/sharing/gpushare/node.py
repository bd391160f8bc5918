"""The cards of a node that nobody looks at, as the plugin's resources and the scheduler's notes show them."""

from collections.abc import Iterator

from podgpu.model import Allocation, Device
from podgpu.sharing import kube_cards
from podgpu.sharing.gpushare.note import NUMBER, SPREAD, UNITS_OF_CARD, number, spreads
from podgpu.sharing.inventory import Inventory

RESOURCE = "aliyun.com/gpu-mem"
COUNT = "aliyun.com/gpu-count"
SEPARATOR = "-_-"
GIB, MIB = 1 << 30, 1 << 20
MOST_GIB = 1024  # a card of more units than this is counted in MiB


def cards(inventory: Inventory) -> Iterator[Device]:
    """Yield the cards by the numbers that the scheduler counts them with. Ids do not say which card is which number.

    Where the node has one card of this kind, its ids name that one.
    """
    count, of_card = inventory.once(by_node)
    named = {
        one.device_id.partition(SEPARATOR)[0] for one in inventory.allocations if one.resource == RESOURCE
    }
    uuid = next(iter(named)) if len(named) == count == 1 and kube_cards.UUID.fullmatch(min(named)) else ""
    for place in _numbers(inventory, count):
        yield kube_cards.card(uuid, number=place, memory=of_card * usual_unit(of_card) or None)


def memory_of(allocation: Allocation, inventory: Inventory) -> int | None:
    """Return what it asks for in bytes, as far as the node shows how large a unit is."""
    _, of_card = inventory.once(by_node)
    is_known = allocation.resource == RESOURCE and of_card
    return allocation.units * usual_unit(of_card) if is_known else None


def usual_unit(of_card: int) -> int:
    return GIB if of_card <= MOST_GIB else MIB


def by_node(inventory: Inventory) -> tuple[int, int]:
    """Return how many cards the node has, and the units of each, as far as Kubernetes knows."""
    units = kube_cards.offered(inventory.node.allocatable, RESOURCE)
    noted = min({number(pod, UNITS_OF_CARD) for pod in inventory.pods} - {0}, default=0)
    count = kube_cards.offered(inventory.node.allocatable, COUNT) or (units // noted if noted else 0)
    return count, units // count if count else noted


def _numbers(inventory: Inventory, count: int) -> list[int]:
    """Count from 0. Where the node does not say how many cards it has, it may share some alone: notes name those."""
    noted = _noted(inventory)
    is_said = COUNT in inventory.node.allocatable
    return (
        sorted(noted)
        if noted and not is_said and len(noted) <= (count or kube_cards.MOST_CARDS)
        else list(range(min(count, kube_cards.MOST_CARDS)))
    )


def _noted(inventory: Inventory) -> set[int]:
    """Return the numbers of cards on the pods."""
    found = {pod.annotations.get(NUMBER, "") for pod in inventory.pods if not pod.finished}
    for pod in inventory.pods:
        if SPREAD in pod.annotations and not pod.finished:
            found.update(place for spread in spreads(pod).values() for place in spread)
    return {int(one) for one in found if one.isascii() and one.isdigit() and len(one) < 4}
