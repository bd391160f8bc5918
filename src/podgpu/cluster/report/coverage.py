"""For each GPU of a period: the time it was seen, the time it was there and not seen, and the time it was not there."""

from collections.abc import Iterable, Mapping, Sequence

from msgspec import Struct, field

from podgpu.cluster.report.counters import CardKey
from podgpu.cluster.report.growth import CardPresence, longest_pause, microseconds
from podgpu.model import Coverage

Stretch = tuple[float, float]


class GpuEvidence(Struct, frozen=True):
    """What else is known of the GPUs, besides what was scraped of them within the period.

    `earlier` and `later` are the GPUs that were scraped before and after the period. `node_times` is when each node
    was in the cluster, according to kube-state-metrics; None if the store does not have that. `unscraped` are GPUs
    that Kubernetes counts on nodes of which no agent ever reported, with their models.
    """

    earlier: frozenset[CardKey] = frozenset()
    later: frozenset[CardKey] = frozenset()
    node_times: Mapping[str, Sequence[Stretch]] | None = None
    unscraped: Mapping[CardKey, str] = field(default_factory=dict)


class CardCoverage(Struct, frozen=True):
    seen_us: int
    unseen: tuple[Stretch, ...]
    total: Coverage


def coverage(
    period: Stretch, presence: Mapping[CardKey, CardPresence], evidence: GpuEvidence
) -> dict[CardKey, CardCoverage]:
    """Judge every GPU that is known from the period, from before and after it, or from Kubernetes."""
    found = {card: _card(card, period, presence, evidence) for card in presence}
    others = (evidence.earlier | evidence.later | evidence.unscraped.keys()) - presence.keys()
    for card in others:
        is_surrounded = card in evidence.earlier and card in evidence.later
        unseen = _there(card, period, evidence, otherwise=is_surrounded)
        unseen = _without(unseen, _elsewhere(card, presence))
        if unseen or card in evidence.unscraped:
            found[card] = _summed(period, unseen)
    return found


def _card(
    card: CardKey, period: Stretch, presence: Mapping[CardKey, CardPresence], evidence: GpuEvidence
) -> CardCoverage:
    start, end = period
    own = presence[card]
    pause = longest_pause(own.interval)
    edges = [edge for edge in ((start, own.first), (own.last, end)) if edge[1] - edge[0] > pause]
    unseen: list[Stretch] = list(own.gaps)
    for edge in edges:
        elsewhere = _elsewhere(card, presence)
        # A GPU that was moved is missed between its two nodes once, after it left the first.
        has_moved_here = edge[0] == start and any(last <= own.first for _, last in elsewhere)
        if not has_moved_here:
            unseen += _without(_there(card, edge, evidence, otherwise=True), elsewhere)
    return _summed(period, unseen, absent=edges)


def _there(card: CardKey, stretch: Stretch, evidence: GpuEvidence, *, otherwise: bool) -> list[Stretch]:
    """When the card was there within a stretch, by Kubernetes if it is known there."""
    if evidence.node_times is None:
        return [stretch] if otherwise else []
    times = evidence.node_times.get(card.node, ())
    return [
        (max(begin, stretch[0]), min(end, stretch[1]))
        for begin, end in times
        if _overlap((begin, end), stretch)
    ]


def _elsewhere(card: CardKey, presence: Mapping[CardKey, CardPresence]) -> list[Stretch]:
    """When the same GPU was seen in another node. Demo nodes have the same UUIDs at the same time, so those are two."""
    own = presence.get(card)
    found = [
        (other.first, other.last)
        for key, other in presence.items()
        if key.uuid == card.uuid and key.cluster == card.cluster and key.node != card.node
    ]
    return [each for each in found if own is None or not _overlap(each, (own.first, own.last))]


def _overlap(one_stretch: Stretch, other: Stretch) -> bool:
    return one_stretch[0] < other[1] and other[0] < one_stretch[1]


def _without(stretches: Iterable[Stretch], taken: Iterable[Stretch]) -> list[Stretch]:
    left = list(stretches)
    for begin, end in taken:
        cut = [((first, min(last, begin)), (max(first, end), last)) for first, last in left]
        left = [piece for pieces in cut for piece in pieces if piece[0] < piece[1]]
    return left


def _summed(
    period: Stretch, unseen: Sequence[Stretch], absent: Sequence[Stretch] | None = None
) -> CardCoverage:
    """`absent` holds the stretches in which the card was not scraped; None is all of the period."""
    whole = microseconds(period[1]) - microseconds(period[0])
    unseen_us = sum(microseconds(end) - microseconds(begin) for begin, end in unseen)
    if absent is None:
        absent_us = whole - unseen_us
    else:
        at_edges = sum(microseconds(end) - microseconds(begin) for begin, end in absent)
        unseen_at_edges = sum(
            microseconds(end) - microseconds(begin)
            for begin, end in unseen
            if any(edge[0] <= begin and end <= edge[1] for edge in absent)
        )
        absent_us = at_edges - unseen_at_edges
    seen_us = whole - unseen_us - absent_us
    return CardCoverage(
        seen_us, tuple(sorted(unseen)), Coverage(seen_us=seen_us, unseen_us=unseen_us, absent_us=absent_us)
    )
