"""The sums of a node as series, by model and namespace. A sum of which a part is unknown is absent, never smaller."""

from collections.abc import Iterator

from podgpu.insight.holding import IDLE, UNKNOWN
from podgpu.insight.placement import NodeCard, Placement, cards_of_node, placements
from podgpu.insight.sums import grouped, of_cards, of_placements
from podgpu.model import ClusterNode

Labels = tuple[str, ...]
Series = tuple[str, Labels, float | None]


def of_node(node: ClusterNode) -> Iterator[Series]:
    """Yield family, labels and value. Of a node that is not fresh, only what it has and who was given it counts."""
    models: dict[str, list[NodeCard]] = {}
    for on in cards_of_node(node):
        models.setdefault(on.card.gpu.model, []).append(on)
    for model, cards in models.items():
        place = (node.name, model)
        yield from _cards(place, cards)
        yield from _given(place, cards)
        up = [on for on in cards if on.is_fresh and on.card.fault is None and on.card.readings]
        yield from _used(place, up)


def _cards(place: Labels, cards: list[NodeCard]) -> Iterator[Series]:
    sums = of_cards(cards)
    yield "gpus", place, sums.gpus
    yield "faulty_gpus", place, sums.lost_gpus
    if sums.lost_gpus == sums.gpus:
        return
    unknown = of_cards(on for on in cards if on.card.fault is None).unknown_shares
    yield "free_gpus", place, None if unknown else sums.free_gpus
    yield "fragmented_gpus", place, None if unknown else sums.fragmented_gpus
    if any(on.is_fresh and on.card.readings for on in cards):
        yield "busy_gpus", place, None if sums.unknown_busy else sums.busy_gpus
        yield "memory_total_bytes", place, sums.memory_total_bytes
        yield "memory_used_bytes", place, None if sums.unknown_memory else sums.memory_used_bytes
        yield "power_watts", place, None if sums.unknown_power else sums.power_watts


def _given(place: Labels, cards: list[NodeCard]) -> Iterator[Series]:
    holders = [one for one in placements(cards) if one.tenant.claims]
    for (namespace, resource), own in grouped(holders, _by_resource).items():
        sums, key = of_placements(own), (*place, namespace, resource)
        yield "allocated_gpus", key, None if sums.unknown_shares else sums.allocated_gpus
        if own[0].on.is_fresh and any(_state(one) != UNKNOWN for one in own):
            idle = of_placements(one for one in own if _state(one) == IDLE)
            yield "idle_gpus", key, None if idle.unknown_shares else idle.unused_gpus


def _used(place: Labels, up: list[NodeCard]) -> Iterator[Series]:
    for namespace, own in grouped(placements(up), lambda one: one.tenant.container.namespace).items():
        if namespace:
            sums, key = of_placements(own), (*place, namespace)
            yield "used_gpus", key, None if sums.unknown_busy else sums.busy_gpus
            yield "used_memory_bytes", key, None if sums.unknown_memory else sums.memory_used_bytes or 0
    yield from _outside(place, up)


def _outside(place: Labels, up: list[NodeCard]) -> Iterator[Series]:
    """What belongs to no pod: accounts outside Kubernetes, and what is booked to no container."""
    sums = of_placements(one for one in placements(up) if not one.tenant.container.namespace)
    rest = [one for on in up for one in on.card.rest]
    ratios = [one.use.ratio for one in rest if one.use and one.use.ratio is not None]
    sizes = [one.memory_bytes for one in rest if one.memory_bytes is not None]
    if (ratios or sums.busy_gpus is not None) and not sums.unknown_busy:
        yield "used_gpus", (*place, ""), sum(ratios) + (sums.busy_gpus or 0.0)
    if (sizes or sums.memory_used_bytes is not None) and not sums.unknown_memory:
        yield "used_memory_bytes", (*place, ""), sum(sizes) + (sums.memory_used_bytes or 0)


def _by_resource(place: Placement) -> tuple[str, str]:
    return place.tenant.container.namespace, place.tenant.claims[0].resource


def _state(place: Placement) -> str:
    return place.tenant.holding.state if place.tenant.holding else UNKNOWN
