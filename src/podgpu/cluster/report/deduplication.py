"""Takes a card's scrapes from one replica at a time, where its series are in the store several times.

Two Prometheus servers or two jobs may scrape one agent. Then a value can be less than the one before it, because clocks
differ. That is no restart: taken for one, all that the counter ever counted would be billed once more.

Two targets that say different things of a node at the same time are no replicas. One of them may be anybody's page, and
nothing here shows which: neither is counted while both speak, and the dispute is named.
"""

from bisect import bisect_right
from collections.abc import Iterable, Mapping, Sequence
from itertools import combinations, pairwise
from statistics import median
from typing import NamedTuple

from msgspec import Struct, field

from podgpu.cluster.report.counters import CardKey, CounterKey, Measure, NodeKey
from podgpu.cluster.report.queries import CardScrapes, ReplicatedScrapes, Scrapes, TimeWindow
from podgpu.cluster.store.targets import MOST_TARGETS, MOST_WATTS, Replica, ScrapeTarget, agree, longest_pause, together
from podgpu.model.kube import grouped

Values = dict[CounterKey, int]
# What a counter can grow by in a second, in the books' integers.
_SECOND, _ENERGY = 1_000_000.0, MOST_WATTS * 1000


class DisputedTime(NamedTuple):
    """Two targets that said different things of a node, from when to when."""

    node: NodeKey
    targets: frozenset[ScrapeTarget]
    start: float
    end: float


class _Followed(Struct):
    """The replica whose scrapes are taken, when it was scraped last, and the newest values of the others."""

    replica: Replica
    last: float
    others: dict[Replica, Values] = field(default_factory=dict)


class Deduplication:
    """Remembers which replica is followed, from one window to the next, and what was disputed."""

    def __init__(self) -> None:
        self._followed: dict[CardKey, _Followed] = {}
        self.disputed: list[DisputedTime] = []
        # Nodes that were disputed until the end of their last window: nobody knows what was true until then.
        self.unsettled: set[NodeKey] = set()

    def choose(self, sampled: ReplicatedScrapes, window: TimeWindow) -> tuple[Scrapes, Scrapes]:
        """Return the scrapes to count; and for the first scrape of another replica, what that one had before."""
        scrapes, baselines = dict[CardKey, CardScrapes](), dict[CardKey, CardScrapes]()
        for node, cards in grouped(sampled, lambda card: (card.cluster, card.node)).items():
            disputed = list(_disputes(node, {card: sampled[card] for card in cards}))
            self.disputed += disputed
            ends = [*(each.end for each in disputed), *([window.start] if node in self.unsettled else ())]
            is_settled = not disputed
            for card in cards:
                kept = {replica: _without(times, disputed) for replica, times in sampled[card].items()}
                taken, before = self._taken(card, {own: times for own, times in kept.items() if times}, window)
                # What was counted while it was disputed is nobody's: it goes on from there.
                starts = [at for end in ends if (at := min((at for at in taken if at > end), default=None)) is not None]
                is_settled = is_settled or any(at > max(ends) for at in starts)
                if taken:
                    scrapes[card], baselines[card] = taken, {**before, **{at: taken[at] for at in starts}}
            (self.unsettled.discard if is_settled else self.unsettled.add)(node)
        return scrapes, baselines

    def _taken(
        self, card: CardKey, replicas: Mapping[Replica, CardScrapes], window: TimeWindow
    ) -> tuple[CardScrapes, CardScrapes]:
        if len(replicas) > 1 or (replicas and card in self._followed):
            return self._followed_scrapes(card, replicas, window)
        return next(iter(replicas.values()), {}), {}

    def _followed_scrapes(
        self, card: CardKey, replicas: Mapping[Replica, CardScrapes], window: TimeWindow
    ) -> tuple[CardScrapes, CardScrapes]:
        times = {replica: sorted(scrapes) for replica, scrapes in replicas.items()}
        merged = sorted(((at, replica) for replica, own in times.items() for at in own), key=lambda each: each[0])
        followed = self._followed.setdefault(card, _Followed(merged[0][1], merged[0][0]))
        if followed.replica in replicas:  # while it was the only one, its scrapes were not looked at
            followed.last = max(followed.last, window.start)
        interval = _interval(times)
        taken: dict[float, Values] = {}
        baselines: dict[float, Values] = {}
        for at, replica in merged:
            scrape = replicas[replica][at]
            if replica != followed.replica:
                own = times.get(followed.replica, ())
                later = bisect_right(own, at)
                is_parallel = replica in followed.others or later < len(own)
                back_at = own[later] if later < len(own) else window.end
                is_back_soon = back_at - followed.last <= longest_pause(interval)
                # By waiting for an interval, what both have counted is hardly counted twice.
                if is_parallel and (is_back_soon or at - followed.last < interval):
                    followed.others[replica] = scrape
                    continue
                if replica in followed.others:
                    baselines[at] = followed.others.pop(replica)
                if followed.last in taken:
                    followed.others[followed.replica] = taken[followed.last]
                followed.replica = replica
            taken[at] = scrape
            followed.last = at
        return taken, baselines


def _interval(times: Mapping[Replica, Sequence[float]]) -> float:
    """Return the seconds between two scrapes of the replica that is scraped most often; 0 if not known."""
    gaps = ([later - earlier for earlier, later in pairwise(own)] for own in times.values())
    return min((median(own) for own in gaps if own), default=0.0)


def _disputes(node: NodeKey, cards: ReplicatedScrapes) -> Iterable[DisputedTime]:
    """A target that says nothing of a card that another one shows disputes it, too."""
    said: dict[ScrapeTarget, dict[float, dict[CounterKey, float]]] = {}
    for replicas in cards.values():
        for replica, scrapes in replicas.items():
            own = said.setdefault(ScrapeTarget.of(dict(replica)), {})
            for at, values in scrapes.items():
                own.setdefault(at, {}).update(values)
    if len(said) > MOST_TARGETS:
        times = [at for own in said.values() for at in own]
        yield DisputedTime(node, frozenset(sorted(said)[:MOST_TARGETS]), min(times), max(times))
        return
    for one, other in combinations(sorted(said), 2):
        shared = together(sorted(said[one]), sorted(said[other]))
        if shared is None:
            continue
        within = [
            {at: values for at, values in said[each].items() if shared.start <= at <= shared.end}
            for each in (one, other)
        ]
        counters = {counter for scrapes in within for values in scrapes.values() for counter in values}
        if not agree(within[0], within[1], {counter: _rate(counter) for counter in counters}):
            yield DisputedTime(node, frozenset({one, other}), shared.start - shared.pause, shared.end + shared.pause)


def _rate(counter: CounterKey) -> float:
    return _ENERGY if counter.measure is Measure.ENERGY else _SECOND


def _without(scrapes: CardScrapes, disputed: Iterable[DisputedTime]) -> CardScrapes:
    return {at: values for at, values in scrapes.items() if not any(each.start <= at <= each.end for each in disputed)}
