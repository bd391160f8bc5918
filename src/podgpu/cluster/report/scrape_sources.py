"""Takes a card's scrapes from one source at a time, where several sources have scraped it.

Two Prometheus servers may scrape one agent, or two agents may run on a node. Then a value can be less than the one
before it, because clocks differ or because each agent has counters of its own. That is no restart: taken for one, all
that the counter ever counted would be billed once more.
"""

from bisect import bisect_right
from collections.abc import Mapping, Sequence
from itertools import pairwise
from statistics import median

from msgspec import Struct, field

from podgpu.cluster.report.counters import CardKey, CounterKey
from podgpu.cluster.report.increases import longest_pause
from podgpu.cluster.report.queries import CardScrapes, SampledScrapes, Scrapes, Source, TimeWindow

Values = dict[CounterKey, int]


class _Followed(Struct):
    """The source whose scrapes are taken, when it was scraped last, and the newest values of the others."""

    source: Source
    last: float
    others: dict[Source, Values] = field(default_factory=dict)


class ScrapeSources:
    """Remembers which source is followed, from one window to the next."""

    def __init__(self) -> None:
        self._followed: dict[CardKey, _Followed] = {}

    def choose(self, sampled: SampledScrapes, window: TimeWindow) -> tuple[Scrapes, Scrapes]:
        """Return the scrapes to count. And for the first one after a change of sources, what that source had before."""
        scrapes, baselines = dict(sampled.scrapes), dict[CardKey, CardScrapes]()
        for card, sources in sampled.sources.items():
            if len(sources) > 1 or card in self._followed:
                scrapes[card], baselines[card] = self._card(card, scrapes[card], sources, window)
        return scrapes, baselines

    def _card(
        self,
        card: CardKey,
        scrapes: CardScrapes,
        sources: Mapping[Source, Sequence[float]],
        window: TimeWindow,
    ) -> tuple[CardScrapes, CardScrapes]:
        merged = sorted(((at, source) for source, times in sources.items() for at in times), key=lambda each: each[0])
        followed = self._followed.setdefault(card, _Followed(merged[0][1], merged[0][0]))
        if followed.source in sources:  # while it was the only one, its scrapes were not looked at
            followed.last = max(followed.last, window.start)
        interval = _interval(sources)
        known = {at for at, _ in merged}
        taken = {at: values for at, values in scrapes.items() if at not in known}
        baselines: dict[float, Values] = {}
        for at, source in merged:
            if source != followed.source:
                own = sources.get(followed.source, ())
                later = bisect_right(own, at)
                is_parallel = source in followed.others or later < len(own)
                back_at = own[later] if later < len(own) else window.end
                is_back_soon = back_at - followed.last <= longest_pause(interval)
                # By waiting for an interval, what both have counted is hardly counted twice.
                if is_parallel and (is_back_soon or at - followed.last < interval):
                    followed.others[source] = scrapes[at]
                    continue
                if source in followed.others:
                    baselines[at] = followed.others.pop(source)
                if followed.last in taken:
                    followed.others[followed.source] = taken[followed.last]
                followed.source = source
            taken[at] = scrapes[at]
            followed.last = at
        return taken, baselines


def _interval(sources: Mapping[Source, Sequence[float]]) -> float:
    """Return the seconds between two scrapes of the source that is scraped most often; 0 if not known."""
    gaps = ([later - earlier for earlier, later in pairwise(times)] for times in sources.values())
    return min((median(own) for own in gaps if own), default=0.0)
