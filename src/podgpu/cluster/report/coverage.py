"""For each GPU of a period: the time it was seen, the time it was there and not seen, and the time it was not there."""

from collections.abc import Iterable, Mapping, Sequence

from msgspec import Struct, field

from podgpu.cluster.report.counters import CardKey, NodeKey
from podgpu.cluster.report.increases import CardPresence, microseconds
from podgpu.cluster.store.targets import longest_pause
from podgpu.model import Coverage
from podgpu.model.kube import grouped

Stretch = tuple[float, float]


class GpuEvidence(Struct, frozen=True):
    """What else is known of the GPUs, besides what was scraped of them within the period.

    `earlier` and `later` are the GPUs that were scraped before and after the period. `node_times` is when each node
    was in the cluster, according to kube-state-metrics; None if the store does not have that. `unscraped` are GPUs
    that Kubernetes counts on nodes of which no agent ever reported, with their models.
    """

    earlier: frozenset[CardKey] = frozenset()
    later: frozenset[CardKey] = frozenset()
    node_times: Mapping[NodeKey, Sequence[Stretch]] | None = None
    unscraped: Mapping[CardKey, str] = field(default_factory=dict)

    def there(self, card: CardKey, *, is_seen: bool, period: Stretch) -> Sequence[Stretch]:
        """Return when the card's node was there, by Kubernetes if that knows the node; else all of the time, or never.

        A node that was seen and that Kubernetes does not know is a machine without Kubernetes.
        """
        if self.node_times is None:
            is_surrounded = card in self.earlier and card in self.later
            return [period] if is_seen or is_surrounded else []
        # A store may name the cluster in podgpu's series alone.
        names = (card.cluster, card.node), ("", card.node)
        known = [self.node_times[name] for name in names if name in self.node_times]
        return known[0] if known else [period] if is_seen else []


class CardCoverage(Struct, frozen=True):
    unseen: tuple[Stretch, ...]
    total: Coverage


def coverage(
    period: Stretch, presence: Mapping[CardKey, CardPresence], evidence: GpuEvidence
) -> dict[CardKey, CardCoverage]:
    """Judge every GPU that is known from the period, from before and after it, or from Kubernetes."""
    when = {card: seen(own) for card, own in presence.items()}
    by_uuid = grouped(presence, lambda card: (card.cluster, card.uuid))
    found = {}
    for card, own in presence.items():
        others = [when[other] for other in by_uuid[card.cluster, card.uuid] if other != card]
        missed_here = _missed_here(period, when[card], others)
        found[card] = _card(period, own, missed_here, evidence.there(card, is_seen=True, period=period))
    for card in (evidence.earlier | evidence.later | evidence.unscraped.keys()) - presence.keys():
        unseen = common(evidence.there(card, is_seen=False, period=period), [period])
        for other in by_uuid.get((card.cluster, card.uuid), ()):  # it has moved: from then on it is missed there
            unseen = _without(unseen, [*found[other].unseen, (presence[other].first, period[1])])
        if unseen or card in evidence.unscraped:
            found[card] = _summed(period, unseen, [period])
    return found


def _card(period: Stretch, own: CardPresence, missed_here: Sequence[Stretch], there: Sequence[Stretch]) -> CardCoverage:
    pause = longest_pause(own.interval)
    start, end = period
    edges = [edge for edge in ((start, own.first), (own.last, end)) if edge[1] - edge[0] > pause]
    # A node that is new or about to go need not be scraped at once.
    at_edges = [(begins, ends) for begins, ends in common(common(edges, missed_here), there) if ends - begins > pause]
    return _summed(period, [*common(own.gaps, missed_here), *at_edges], [*own.gaps, *edges])


def _missed_here(period: Stretch, own: Sequence[Stretch], others: Iterable[Sequence[Stretch]]) -> list[Stretch]:
    """Say when a GPU that nobody sees is missed in this node: from when it is seen here until it is seen elsewhere.

    Before it is seen for the first time, it is missed where that will be. Demo nodes have the same UUIDs at the same
    time, so those are two GPUs.
    """
    moved = [stretches for stretches in others if not common(own, stretches)]
    places = [(begin, True) for begin, _ in own]
    places += [(begin, False) for stretches in moved for begin, _ in stretches]
    places.sort()
    begins = [period[0], *(begin for begin, _ in places[1:]), period[1]]
    return [
        (begins[at], begins[at + 1])
        for at, (_, is_here) in enumerate(places)
        if is_here and begins[at] < begins[at + 1]
    ]


def seen(presence: CardPresence) -> list[Stretch]:
    return _without([(presence.first, presence.last)], presence.gaps)


def common(stretches: Iterable[Stretch], others: Sequence[Stretch]) -> list[Stretch]:
    found = [(max(begin, first), min(end, last)) for begin, end in stretches for first, last in others]
    return [stretch for stretch in found if stretch[0] < stretch[1]]


def _without(stretches: Iterable[Stretch], taken: Iterable[Stretch]) -> list[Stretch]:
    left = list(stretches)
    for begin, end in taken:
        cut = [((first, min(last, begin)), (max(first, end), last)) for first, last in left]
        left = [piece for pieces in cut for piece in pieces if piece[0] < piece[1]]
    return left


def _summed(period: Stretch, unseen: Iterable[Stretch], missing: Iterable[Stretch]) -> CardCoverage:
    """`missing` holds the stretches in which the card was not scraped, `unseen` those of them in which it was there."""
    all_unseen = tuple(sorted(unseen))
    unseen_us, missing_us = _length(all_unseen), _length(missing)
    seen_us = _length([period]) - missing_us
    total = Coverage(seen_us=seen_us, unseen_us=unseen_us, absent_us=missing_us - unseen_us)
    return CardCoverage(all_unseen, total)


def _length(stretches: Iterable[Stretch]) -> int:
    return sum(microseconds(end) - microseconds(begin) for begin, end in stretches)
