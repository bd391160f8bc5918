"""Aliyun gpushare: memory units of a card, one device id each, `UUID-_-N`.

The kubelet picks ids as it likes: only the number that a container got is reliable. The card is the one that the
scheduler noted on the pod, by a number. Plugins up to 0.3.0 take it for the number in /dev, newer ones hand it to
NVIDIA's runtime, which takes it for NVML's index. Nothing on the node shows the version. So where these are
two different cards, it is undecided which of them a container has until its processes show it.

A newer note spreads a container over several cards, by its place in the spec: `{"PLACE": {"NUMBER": UNITS}}`. Anyone
who may edit the pod can write there, so it counts only up to what the kubelet gave. Only where the pod is not known or
has no note, the id's own UUID is used.

A unit is a GiB or a MiB. The plugin does not say which, but the number of units of a card shows it.
"""

from collections import Counter
from collections.abc import Iterator, Mapping
from typing import TypeAlias

import msgspec
from msgspec import Struct

from podgpu.model import Allocation, Claim, Pod
from podgpu.sharing.ambiguity import AmbiguousClaims
from podgpu.sharing.gpushare.node import GIB, MIB, RESOURCE, SEPARATOR, by_node, cards, memory_of, usual_unit
from podgpu.sharing.gpushare.note import NUMBER, SPREAD, UNITS_OF_CARD, number, positive, spreads
from podgpu.sharing.inventory import Inventory
from podgpu.sharing.quantity import MinimumClaim

__all__ = [
    "GIB",
    "MIB",
    "NAME",
    "NEEDS",
    "NOTES",
    "NUMBER",
    "RESOURCE",
    "SIGNS",
    "SPREAD",
    "UNITS_OF_CARD",
    "ambiguous_claims",
    "cards",
    "claims",
    "explains",
    "least",
    "memory_of",
    "unplaced",
]

NAME = "gpushare"
SIGNS: tuple[str, ...] = ("aliyun.com/gpu-", "ALIYUN_COM_GPU_", "scheduler.framework.gpushare.")
NOTES: tuple[str, ...] = (SPREAD, NUMBER, UNITS_OF_CARD)
NEEDS = "the kubelet's list of devices, and the pods' annotations"
UNDECIDED = (
    "which card is meant is not known for {count}: the number on the pod is the index of one card and the number in "
    "/dev of another, and only the plugin's version says which of them counts. A process on one of the two settles it"
)
NEAR = 0.05  # by how much the units may miss the memory: the plugin rounds, the driver keeps some for itself

Container: TypeAlias = tuple[str, str, str]


class HeldUnits(Struct, frozen=True, kw_only=True):
    """A container's units on each card, by each reading of the note. `allocation` is one of its ids.

    `given` is how many it has, `noted` how many of them the note is about.
    """

    allocation: Allocation
    given: int
    noted: int
    readings: tuple[Mapping[str, int], ...]
    source: str


def explains(allocation: Allocation, inventory: Inventory) -> bool:
    return allocation.resource == RESOURCE and _container(allocation) in inventory.once(_holdings)


def claims(inventory: Inventory) -> Iterator[Claim]:
    """One claim per container and card: its units together."""
    for holding in inventory.once(_holdings).values():
        if len(holding.readings) == 1:
            yield from _claims(holding, holding.readings[0], inventory)


def ambiguous_claims(inventory: Inventory) -> Iterator[AmbiguousClaims]:
    """Yield what each container that may mean two cards would claim by either reading."""
    for holding in inventory.once(_holdings).values():
        if len(holding.readings) > 1:
            readings = tuple(tuple(_claims(holding, held, inventory)) for held in holding.readings)
            yield AmbiguousClaims(readings=readings, doubt=UNDECIDED)


def least(claim: Claim, inventory: Inventory) -> MinimumClaim | None:
    """By the ids: all of them, in the proportions of the note. Without a note they are all on this card."""
    holder = claim.container
    container = holder.namespace, holder.pod, holder.container
    holding = inventory.once(_holdings).get(container)
    if holding is None:
        given = sum(one.units for one in inventory.once(_given).get(container, ()))
        of_card = _of_card(claim.gpu, 0, inventory)
        return MinimumClaim(share=given / max(of_card, given) if of_card else 0.0)
    more = holding.given / (holding.noted or holding.given)
    return MinimumClaim(share=claim.share * more, memory=round((claim.memory_limit_bytes or 0) * more))


def unplaced(inventory: Inventory) -> Iterator[Allocation]:
    placed = inventory.once(_holdings)
    yield from (ids[0] for container, ids in inventory.once(_given).items() if container not in placed)


def _claims(holding: HeldUnits, held: Mapping[str, int], inventory: Inventory) -> Iterator[Claim]:
    noted = number(inventory.pod(holding.allocation), UNITS_OF_CARD)
    for card, units in held.items():
        yield _claim(holding, card, units, _of_card(card, noted, inventory), inventory)


def _of_card(card: str, noted: int, inventory: Inventory) -> int:
    """Return how many units a card has. A note may say so, but not that they are smaller than a MiB."""
    offered = inventory.once(_offered)[card] if inventory.is_seen else inventory.once(by_node)[1]
    most = inventory.memory.get(card, 0) // MIB or noted
    return offered or min(noted, most) or _by_memory(card, inventory)


def _claim(holding: HeldUnits, card: str, units: int, of_card: int, inventory: Inventory) -> Claim:
    share = units / max(of_card, units) if of_card else 0.0
    of = f"{units} of {of_card} units" if of_card else f"{units} units"
    return msgspec.structs.replace(
        inventory.claim(holding.allocation, card, system=NAME, share=share),
        memory_limit_bytes=units * _unit(of_card, inventory.memory.get(card, 0)) if of_card else None,
        device_id=f"{card}{SEPARATOR}* ({of})",
        source=holding.source,
    )


def _unit(of_card: int, memory: int) -> int:
    for unit in (GIB, MIB):
        if abs(of_card * unit - memory) <= NEAR * memory:
            return unit
    return usual_unit(of_card)


def _container(allocation: Allocation) -> Container:
    return allocation.namespace, allocation.pod, allocation.container


def _given(inventory: Inventory) -> dict[Container, list[Allocation]]:
    given: dict[Container, list[Allocation]] = {}
    for one in inventory.allocations:
        if one.resource == RESOURCE:
            given.setdefault(_container(one), []).append(one)
    return given


def _holdings(inventory: Inventory) -> dict[Container, HeldUnits]:
    given = inventory.once(_given)
    pods = Counter((namespace, pod) for namespace, pod, _ in given)
    found = {
        container: _holding(ids, inventory, is_alone=pods[container[:2]] == 1)
        for container, ids in given.items()
    }
    return {container: holding for container, holding in found.items() if holding.readings}


def _holding(ids: list[Allocation], inventory: Inventory, *, is_alone: bool) -> HeldUnits:
    """`is_alone` says that no other container of the pod has been given anything."""
    pod = inventory.pod(ids[0])
    source, given = "annotation", sum(one.units for one in ids)
    noted = given
    if pod and SPREAD in pod.annotations:
        spread = _spread(pod, ids[0].container, is_alone=is_alone)
        noted = sum(spread.values())
        readings = _readings(spread, inventory) if noted <= given else ()
    elif pod and NUMBER in pod.annotations:
        readings = _readings({pod.annotations[NUMBER]: given}, inventory)
    else:
        named = Counter(one.device_id.partition(SEPARATOR)[0] for one in ids)
        here = {card: units for card, units in named.items() if card in inventory.gpus}
        readings, source = (here,) if here else (), inventory.source
    return HeldUnits(allocation=ids[0], given=given, noted=noted, readings=readings, source=source)


def _readings(units: Mapping[str, int], inventory: Inventory) -> tuple[Mapping[str, int], ...]:
    """Return units by card, as each version reads them. A reading with a card that is not here gives way."""
    found = [
        {cards[number]: count for number, count in units.items() if number in cards}
        for cards in (inventory.by_minor, inventory.by_index)
    ]
    here = [cards for cards in found if cards]
    whole = [cards for cards in here if len(cards) == len(units)] or here
    return tuple(cards for place, cards in enumerate(whole) if cards not in whole[:place])


def _spread(pod: Pod, container: str, *, is_alone: bool) -> Mapping[str, int]:
    """Return a container's units by minor. A pod without a phase is not known by its spec."""
    note = spreads(pod)
    if not pod.phase:
        return next(iter(note.values())) if len(note) == 1 and is_alone else {}
    own = [one.name for one in pod.containers if not (one.is_init or one.is_ephemeral)]
    return note.get(str(own.index(container)), {}) if container in own else {}


def _offered(inventory: Inventory) -> Counter[str]:
    """Count each card's units that the plugin offers: none, for a while, after a kubelet's restart."""
    return Counter(
        device_id.partition(SEPARATOR)[0]
        for resource, device_id in inventory.allocatable
        if resource == RESOURCE
    )


def _by_memory(card: str, inventory: Inventory) -> int:
    """Count them as the plugin does: a card's whole GiB or MiB."""
    return inventory.memory.get(card, 0) // (MIB if inventory.once(_is_in_mib) else GIB)


def _is_in_mib(inventory: Inventory) -> bool:
    """Recognise it by an id whose number is higher than any card has GiB."""
    most = max(inventory.memory.values(), default=0) // GIB
    ids = (one.device_id for one in inventory.allocations if one.resource == RESOURCE)
    return any(positive(device_id.partition(SEPARATOR)[2]) >= most for device_id in ids)
