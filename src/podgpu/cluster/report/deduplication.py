"""Takes a card's scrapes from one replica at a time, where its series are in the store several times.

Two Prometheus servers or two jobs may scrape one agent, or two agents may run on a node. Then a value can be less than
the one before it, because clocks differ or because each agent has counters of its own. That is no restart: taken for
one, all that the counter ever counted would be billed once more.
"""

from bisect import bisect_right
from collections.abc import Mapping, Sequence
from itertools import pairwise
from statistics import median

from msgspec import Struct, field

from podgpu.cluster.report.counters import CardKey, CounterKey
from podgpu.cluster.report.increases import longest_pause
from podgpu.cluster.report.queries import CardScrapes, Replica, SampledScrapes, Scrapes, TimeWindow

Values = dict[CounterKey, int]


class _Followed(Struct):
    """The replica whose scrapes are taken, when it was scraped last, and the newest values of the others."""

    replica: Replica
    last: float
    others: dict[Replica, Values] = field(default_factory=dict)


class Deduplication:
    """Remembers which replica is followed, from one window to the next."""

    def __init__(self) -> None:
        self._followed: dict[CardKey, _Followed] = {}

    def choose(self, sampled: SampledScrapes, window: TimeWindow) -> tuple[Scrapes, Scrapes]:
        """Return the scrapes to count; and for the first scrape of another replica, what that one had before."""
        scrapes, baselines = dict(sampled.scrapes), dict[CardKey, CardScrapes]()
        for card, replicas in sampled.replicas.items():
            if len(replicas) > 1 or card in self._followed:
                scrapes[card], baselines[card] = self._card(card, scrapes[card], replicas, window)
        return scrapes, baselines

    def _card(
        self,
        card: CardKey,
        scrapes: CardScrapes,
        replicas: Mapping[Replica, Sequence[float]],
        window: TimeWindow,
    ) -> tuple[CardScrapes, CardScrapes]:
        merged = sorted(
            ((at, replica) for replica, times in replicas.items() for at in times), key=lambda each: each[0]
        )
        followed = self._followed.setdefault(card, _Followed(merged[0][1], merged[0][0]))
        if followed.replica in replicas:  # while it was the only one, its scrapes were not looked at
            followed.last = max(followed.last, window.start)
        interval = _interval(replicas)
        known = {at for at, _ in merged}
        taken = {at: values for at, values in scrapes.items() if at not in known}
        baselines: dict[float, Values] = {}
        for at, replica in merged:
            if replica != followed.replica:
                own = replicas.get(followed.replica, ())
                later = bisect_right(own, at)
                is_parallel = replica in followed.others or later < len(own)
                back_at = own[later] if later < len(own) else window.end
                is_back_soon = back_at - followed.last <= longest_pause(interval)
                # By waiting for an interval, what both have counted is hardly counted twice.
                if is_parallel and (is_back_soon or at - followed.last < interval):
                    followed.others[replica] = scrapes[at]
                    continue
                if replica in followed.others:
                    baselines[at] = followed.others.pop(replica)
                if followed.last in taken:
                    followed.others[followed.replica] = taken[followed.last]
                followed.replica = replica
            taken[at] = scrapes[at]
            followed.last = at
        return taken, baselines


def _interval(replicas: Mapping[Replica, Sequence[float]]) -> float:
    """Return the seconds between two scrapes of the replica that is scraped most often; 0 if not known."""
    gaps = ([later - earlier for earlier, later in pairwise(times)] for times in replicas.values())
    return min((median(own) for own in gaps if own), default=0.0)
