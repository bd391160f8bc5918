"""Tencent's gpu-manager: hundredths of a card and blocks of its memory, by ids that name no card.

Annotations of the pod have the cards, by their numbers in /dev, under the container's position in the spec. If the
spec is not known or does not fit, an annotation counts if only one container can be meant, or if it makes no
difference which. Other ids stay unexplained.

A container is limited to its cores, unless the pod sets a limit: then it may use as much as that while others are idle.
"""

import re
from collections import Counter
from collections.abc import Iterator, Mapping
from typing import TypeAlias

from msgspec import Struct
from msgspec.structs import replace

from podgpu.model import Allocation, Claim, Device, Pod
from podgpu.model.kube import grouped
from podgpu.sharing import kube_cards
from podgpu.sharing.inventory import Inventory
from podgpu.sharing.system import MinimumClaim, SharingSystem

NAME = "gpu-manager"
CORE = "tencent.com/vcuda-core"
MEMORY = "tencent.com/vcuda-memory"
BLOCK = 256 << 20
CARDS = "tencent.com/predicate-gpu-idx-"
# The scheduler writes a plan; gpu-manager replaces it with what it did, and says so here.
ASSIGNED = "tencent.com/gpu-assigned"
CORE_LIMIT = "tencent.com/vcuda-core-limit"
CORES_OF_CARD = 100

_ID = re.compile(rf"{re.escape(CORE)}-[0-9]+|{re.escape(MEMORY)}-{BLOCK}-[0-9]+")
_LIMIT = re.compile(r"[1-9][0-9]{0,3}")
_ANNOTATION = re.compile(rf"{re.escape(CARDS)}[0-9]+")


Names: TypeAlias = tuple[str, str, str]  # of a container
AnnotatedCards: TypeAlias = Mapping[str, tuple[str, ...]]  # cards, by the place or the name of a container


class HeldCores(Struct, frozen=True, kw_only=True):
    """A container's cores and blocks of memory. `allocation` is one of its cores."""

    allocation: Allocation
    cores: int
    blocks: int

    @property
    def cards(self) -> int:
        return -(-self.cores // CORES_OF_CARD)

    @property
    def is_whole(self) -> bool:
        return self.cores >= CORES_OF_CARD


def explains(allocation: Allocation, inventory: Inventory) -> bool:
    return _is_own(allocation) and allocation.names in inventory.once(_places)


def claims(inventory: Inventory) -> Iterator[Claim]:
    for names, cards in inventory.once(_places).items():
        held, count = inventory.once(_held)[names], len(cards)
        for card in cards:
            yield inventory.claim(
                held.allocation,
                card,
                system=NAME,
                share=held.cores / CORES_OF_CARD / count,
                # Whole cards come with all of their memory, whatever was asked for.
                memory=None if held.is_whole else held.blocks * BLOCK,
                cores=None if held.is_whole else _core_limit(held, inventory),
                device_id=f"{CORE}-* ({held.cores} of {count * CORES_OF_CARD} cores)",
                source="annotation",
            )


def cards(inventory: Inventory) -> Iterator[Device]:
    """A card counts as 100 of the node's cores, and its memory in blocks, rounded down."""
    count = kube_cards.offered(inventory.node.capacity, CORE) // CORES_OF_CARD
    blocks = kube_cards.offered(inventory.node.capacity, MEMORY)
    yield from kube_cards.numbered(count, blocks // count * BLOCK if count else None)


def memory_of(allocation: Allocation, _: Inventory) -> int | None:
    return allocation.units * BLOCK if allocation.resource == MEMORY else None


def minimum(claim: Claim, inventory: Inventory) -> MinimumClaim | None:
    """Return what the ids say. A limit of the pod raises what it may use while others are idle, and lowers nothing."""
    held = inventory.once(_held).get(claim.container.names)
    if held is None:
        return None
    part = held.cores / CORES_OF_CARD / held.cards
    return MinimumClaim(share=part, memory=0 if held.is_whole else held.blocks * BLOCK, cores=part)


def holdings(inventory: Inventory) -> Iterator[Allocation]:
    yield from (replace(held.allocation, units=held.cards) for held in inventory.once(_held).values())


def _core_limit(held: HeldCores, inventory: Inventory) -> float | None:
    pod = inventory.pod(held.allocation)
    text = pod.annotations.get(CORE_LIMIT, "") if pod else ""
    if not text:
        return held.cores / CORES_OF_CARD
    return min(int(text), CORES_OF_CARD) / CORES_OF_CARD if _LIMIT.fullmatch(text) else None


def _is_own(allocation: Allocation) -> bool:
    """Whether it is gpu-manager's, also if the ids themselves are not known."""
    is_id = not allocation.device_id or _ID.fullmatch(allocation.device_id)
    return allocation.resource in (CORE, MEMORY) and bool(is_id)


def _held(inventory: Inventory) -> dict[Names, HeldCores]:
    """Return what containers hold that is a GPU to gpu-manager: whole cards, or a part with some memory."""
    own = [allocation for allocation in inventory.allocations if _is_own(allocation)]
    units: Counter[tuple[Names, str]] = Counter()
    for allocation in own:
        units[allocation.names, allocation.resource] += allocation.units
    one_core = {allocation.names: allocation for allocation in own if allocation.resource == CORE}
    held = {
        names: HeldCores(allocation=core, cores=units[names, CORE], blocks=units[names, MEMORY])
        for names, core in one_core.items()
    }
    return {names: holding for names, holding in held.items() if holding.is_whole or holding.blocks}


def _places(inventory: Inventory) -> dict[Names, tuple[str, ...]]:
    """Return the cards of each container for which they are known."""
    by_pod = grouped(inventory.once(_held).values(), lambda held: held.allocation.names[:2])
    return dict(place for holdings in by_pod.values() for place in _placed(holdings, inventory))


def _placed(holdings: list[HeldCores], inventory: Inventory) -> Iterator[tuple[Names, tuple[str, ...]]]:
    """Find the cards of a pod's containers, if its annotations are as many and as long as they must be."""
    pod = inventory.pod(holdings[0].allocation)
    annotations = _annotated_cards(pod, inventory) if pod else {}
    if pod is None or sorted(map(len, annotations.values())) != sorted(held.cards for held in holdings):
        return
    ordered = _by_order(pod, annotations)
    if all(len(ordered.get(held.allocation.container, ())) == held.cards for held in holdings):
        yield from ((held.allocation.names, ordered[held.allocation.container]) for held in holdings)
        return
    for held in holdings:
        fitting = {cards for cards in annotations.values() if len(cards) == held.cards}
        if len(fitting) == 1:
            yield held.allocation.names, fitting.pop()


def _by_order(pod: Pod, annotations: AnnotatedCards) -> AnnotatedCards:
    """Return the annotations by the names of the containers. The spec of a pod without a phase is not known."""
    names = {str(place): container.name for place, container in enumerate(pod.main_containers if pod.phase else ())}
    return {name: annotations[place] for place, name in names.items() if place in annotations}


def _annotated_cards(pod: Pod, inventory: Inventory) -> AnnotatedCards:
    """Return each annotation's cards by the container's place; nothing, if one names a card that this node lacks."""
    if pod.annotations.get(ASSIGNED) != "true":
        return {}
    texts = {key.removeprefix(CARDS): text for key, text in pod.annotations.items() if _ANNOTATION.fullmatch(key)}
    annotations = {place: _cards(text, inventory.by_minor) for place, text in texts.items()}
    return annotations if all(annotations.values()) else {}


def _cards(text: str, by_minor: Mapping[str, str]) -> tuple[str, ...]:
    """Return the cards of a list such as `0,1`; none, if it has one twice or one that is not here."""
    minors = text.split(",")
    cards = sorted({by_minor[minor] for minor in minors if minor in by_minor})
    return tuple(cards) if len(cards) == len(minors) else ()


SYSTEM = SharingSystem(
    name=NAME,
    signs=("tencent.com/vcuda-", CARDS),
    needs="the kubelet's list of devices, and the pods' annotations",
    explains=explains,
    claims=claims,
    cards=cards,
    memory_of=memory_of,
    annotations=(CARDS, ASSIGNED, CORE_LIMIT),
    minimum=minimum,
    holdings=holdings,
)
