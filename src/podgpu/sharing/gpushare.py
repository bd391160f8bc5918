"""Aliyun gpushare: memory units of a card, one device id each, `UUID-_-N`.

The kubelet picks any ids: only how many a container has is reliable. The scheduler writes the number of the card on the
pod. Plugins up to 0.3.0 take it for the N of /dev/nvidiaN, newer ones pass it to NVIDIA's runtime, which takes it for
NVML's index. Nothing on the node shows the version. So if these are two different cards, it is undecided which of them
a container has until its processes show it.

A newer annotation spreads a container over several cards, by its place in the spec: `{"PLACE": {"NUMBER": UNITS}}`.
Anyone who may edit the pod can write there, so it counts only up to what the kubelet allocated. If the pod is not known
or has no annotation, its card is known only if the plugin shares a single one.

A unit is a GiB or a MiB. The plugin does not say which, but the number of units of a card shows it.
"""

from collections import Counter
from collections.abc import Iterator, Mapping
from functools import lru_cache
from typing import Annotated, TypeAlias

import msgspec
from msgspec import Meta, Struct
from msgspec.structs import replace

from podgpu.model import Allocation, Claim, Device, Pod
from podgpu.model.kube import grouped
from podgpu.sharing import kube_cards
from podgpu.sharing.inventory import GIB, MIB, Inventory, decoded
from podgpu.sharing.system import AmbiguousClaims, MinimumClaim, SharingSystem

NAME = "gpushare"
RESOURCE = "aliyun.com/gpu-mem"
COUNT = "aliyun.com/gpu-count"
SEPARATOR = "-_-"
SPREAD = "scheduler.framework.gpushare.allocation"
NUMBER = "ALIYUN_COM_GPU_MEM_IDX"
UNITS_OF_CARD = "ALIYUN_COM_GPU_MEM_DEV"
MOST_GIB = 1024  # a card of more units than this is counted in MiB
REMEMBERED = 512  # annotations whose content is cached
MOST_CONTAINERS = 512  # of a pod; an annotation with more is not read
UNDECIDED = (
    "which card is meant is not known for {count}: the number on the pod is the index of one card and the number in "
    "/dev of another, and only the plugin's version says which of them counts. A process on one of the two settles it"
)
NEAR = 0.05  # how far the units may be from the memory: the plugin rounds, the driver reserves some

Container: TypeAlias = tuple[str, str, str]
Units = Annotated[int, Meta(ge=1, lt=1 << 24)]


class HeldUnits(Struct, frozen=True, kw_only=True):
    """A container's units on each card, by each reading of the annotation. `allocation` is one of its ids.

    `units` is how many it has, `annotated` how many of them the annotation puts on a card of this node. `source` is
    empty without one.
    """

    allocation: Allocation
    units: int
    annotated: int
    readings: tuple[Mapping[str, int], ...]
    source: str


_decode = msgspec.json.Decoder(dict[str, dict[str, Units]]).decode


def explains(allocation: Allocation, inventory: Inventory) -> bool:
    return allocation.resource == RESOURCE and allocation.names in inventory.once(_holdings)


def claims(inventory: Inventory) -> Iterator[Claim]:
    """One claim per container and card: its units together."""
    for holding in inventory.once(_holdings).values():
        if len(holding.readings) == 1:
            yield from _claims(holding, holding.readings[0], inventory)


def ambiguous_claims(inventory: Inventory) -> Iterator[AmbiguousClaims]:
    """Yield what each container that may mean two cards would claim by either reading."""
    for holding in inventory.once(_holdings).values():
        if len(holding.readings) > 1:
            options = tuple(tuple(_claims(holding, held, inventory)) for held in holding.readings)
            yield AmbiguousClaims(options=options, doubt=UNDECIDED)


def minimum(claim: Claim, inventory: Inventory) -> MinimumClaim | None:
    """Count all ids, in the proportions of the annotation. Without an annotation they are all on this card."""
    holding = inventory.once(_holdings).get(claim.container.names)
    if holding is None:
        units = sum(allocation.units for allocation in inventory.once(_allocated).get(claim.container.names, ()))
        of_card = _of_card(claim.gpu, 0, inventory)
        return MinimumClaim(share=units / max(of_card, units) if of_card else 0.0)
    more = holding.units / (holding.annotated or holding.units)
    return MinimumClaim(share=claim.share * more, memory=round((claim.memory_limit_bytes or 0) * more))


def holdings(inventory: Inventory) -> Iterator[Allocation]:
    """A container has at least one card, however many units."""
    yield from (replace(ids[0], units=1) for ids in inventory.once(_allocated).values())


def _claims(holding: HeldUnits, held: Mapping[str, int], inventory: Inventory) -> Iterator[Claim]:
    annotated = units_of_card(inventory.pod(holding.allocation))
    for card, units in held.items():
        of_card = _of_card(card, annotated, inventory)
        of = f"{units} of {of_card} units" if of_card else f"{units} units"
        yield inventory.claim(
            holding.allocation,
            card,
            system=NAME,
            share=units / max(of_card, units) if of_card else 0.0,
            memory=units * _unit(of_card, inventory.memory.get(card, 0)) if of_card else None,
            device_id=f"{card}{SEPARATOR}* ({of})",
            source=holding.source,
        )


def _of_card(card: str, annotated: int, inventory: Inventory) -> int:
    """Return how many units a card has. An annotation may say so, but not that they are smaller than a MiB."""
    offered = inventory.once(_offered)[card] if inventory.is_seen else inventory.once(by_node)[1]
    most = inventory.memory.get(card, 0) // MIB or annotated
    return offered or min(annotated, most) or _by_memory(card, inventory)


def _unit(of_card: int, memory: int) -> int:
    for unit in (GIB, MIB):
        if abs(of_card * unit - memory) <= NEAR * memory:
            return unit
    return usual_unit(of_card)


def _allocated(inventory: Inventory) -> dict[Container, list[Allocation]]:
    ids = (allocation for allocation in inventory.allocations if allocation.resource == RESOURCE)
    return grouped(ids, lambda allocation: allocation.names)


def _holdings(inventory: Inventory) -> dict[Container, HeldUnits]:
    allocated = inventory.once(_allocated)
    pods = Counter((namespace, pod) for namespace, pod, _ in allocated)
    found = {names: _holding(ids, inventory, is_alone=pods[names[:2]] == 1) for names, ids in allocated.items()}
    return {names: holding for names, holding in found.items() if holding.readings}


def _holding(ids: list[Allocation], inventory: Inventory, *, is_alone: bool) -> HeldUnits:
    """`is_alone` says that no other container of the pod has any ids."""
    pod = inventory.pod(ids[0])
    source, units = "annotation", sum(allocation.units for allocation in ids)
    annotated = units
    if pod and SPREAD in pod.annotations:
        spread = _spread(pod, ids[0].container, is_alone=is_alone)
        annotated = sum(spread.values())
        readings = _readings(spread, inventory) if annotated <= units else ()
    elif pod and NUMBER in pod.annotations:
        readings = _readings({pod.annotations[NUMBER]: units}, inventory)
    else:
        cards = inventory.once(_offered).keys() or inventory.gpus
        readings = tuple({card: units} for card in cards & inventory.gpus if len(cards) == 1)
        source = ""
    # What it says of cards that are not here counts for those that are.
    annotated = min((sum(held.values()) for held in readings), default=annotated)
    return HeldUnits(allocation=ids[0], units=units, annotated=annotated, readings=readings, source=source)


def _readings(units: Mapping[str, int], inventory: Inventory) -> tuple[Mapping[str, int], ...]:
    """Return units by card, as each version reads them. Prefer readings whose cards are all here."""
    found = [
        {cards[number]: count for number, count in units.items() if number in cards}
        for cards in (inventory.by_minor, inventory.by_index)
    ]
    here = [cards for cards in found if cards]
    whole = [cards for cards in here if len(cards) == len(units)] or here
    return tuple(cards for place, cards in enumerate(whole) if cards not in whole[:place])


def _spread(pod: Pod, container: str, *, is_alone: bool) -> Mapping[str, int]:
    """Return a container's units by the number of the card. The spec of a pod without a phase is not known."""
    annotation = _spreads(pod.annotations[SPREAD])
    if not pod.phase:
        return next(iter(annotation.values())) if len(annotation) == 1 and is_alone else {}
    names = [each.name for each in pod.main_containers]
    return annotation.get(str(names.index(container)), {}) if container in names else {}


def _offered(inventory: Inventory) -> Counter[str]:
    """Count the units of each card that the plugin offers: for a while after a kubelet's restart there are none."""
    return Counter(
        device_id.partition(SEPARATOR)[0] for resource, device_id in inventory.allocatable if resource == RESOURCE
    )


def _by_memory(card: str, inventory: Inventory) -> int:
    """Count a card's units as the plugin does: its whole GiB or MiB."""
    return inventory.memory.get(card, 0) // (MIB if inventory.once(_is_in_mib) else GIB)


def _is_in_mib(inventory: Inventory) -> bool:
    """Whether units are MiB: then the number in an id may be higher than any card has GiB."""
    most = max(inventory.memory.values(), default=0) // GIB
    ids = (allocation.device_id for allocation in inventory.allocations if allocation.resource == RESOURCE)
    return any((kube_cards.number(device_id.partition(SEPARATOR)[2]) or 0) >= most for device_id in ids)


@lru_cache(REMEMBERED)
def _spreads(text: str) -> dict[str, dict[str, int]]:
    found = decoded(text, _decode) or {}
    return found if len(found) <= MOST_CONTAINERS else {}


def units_of_card(pod: Pod | None) -> int:
    """Return how many units a card has by the pod's annotation; 0 if it does not say."""
    return kube_cards.number(pod.annotations.get(UNITS_OF_CARD, "") if pod else "") or 0


def cards(inventory: Inventory) -> Iterator[Device]:
    """Yield the cards by the scheduler's numbers. Ids do not say which card has which number, unless there is one."""
    count, of_card = inventory.once(by_node)
    ids = (allocation.device_id for allocation in inventory.allocations if allocation.resource == RESOURCE)
    named = {device_id.partition(SEPARATOR)[0] for device_id in ids}
    uuid = next(iter(named)) if len(named) == count == 1 and kube_cards.UUID.fullmatch(min(named)) else ""
    for place in _numbers(inventory, count):
        yield kube_cards.card(uuid, number=place, memory=of_card * usual_unit(of_card) or None)


def memory_of(allocation: Allocation, inventory: Inventory) -> int | None:
    """Return its units in bytes, if the node shows how large a unit is."""
    _, of_card = inventory.once(by_node)
    is_known = allocation.resource == RESOURCE and of_card
    return allocation.units * usual_unit(of_card) if is_known else None


def usual_unit(of_card: int) -> int:
    return GIB if of_card <= MOST_GIB else MIB


def by_node(inventory: Inventory) -> tuple[int, int]:
    """Return how many cards the node has, and how many units each of them, as far as Kubernetes knows."""
    units = kube_cards.offered(inventory.node.allocatable, RESOURCE)
    annotated = min({units_of_card(pod) for pod in inventory.pods} - {0}, default=0)
    count = kube_cards.offered(inventory.node.allocatable, COUNT) or (units // annotated if annotated else 0)
    return count, units // count if count else annotated


def _numbers(inventory: Inventory, count: int) -> list[int]:
    """Count from 0. A node that does not say how many cards it has may share only those in annotations."""
    annotated = _annotated(inventory)
    if annotated and COUNT not in inventory.node.allocatable and len(annotated) <= (count or kube_cards.MOST_CARDS):
        return sorted(annotated)
    return list(range(min(count, kube_cards.MOST_CARDS)))


def _annotated(inventory: Inventory) -> set[int]:
    """Return the numbers of cards on the pods."""
    found = {pod.annotations.get(NUMBER, "") for pod in inventory.pods if not pod.finished}
    for pod in inventory.pods:
        if SPREAD in pod.annotations and not pod.finished:
            found.update(place for spread in _spreads(pod.annotations[SPREAD]).values() for place in spread)
    return {number for text in found if (number := kube_cards.number(text, 3)) is not None}


SYSTEM = SharingSystem(
    name=NAME,
    signs=("aliyun.com/gpu-", "ALIYUN_COM_GPU_", "scheduler.framework.gpushare."),
    needs="the kubelet's list of devices, and the pods' annotations",
    explains=explains,
    claims=claims,
    ambiguous_claims=ambiguous_claims,
    cards=cards,
    memory_of=memory_of,
    annotations=(SPREAD, NUMBER, UNITS_OF_CARD),
    minimum=minimum,
    holdings=holdings,
)
