"""Adds up counters over time, exactly: an increase is the difference of two samples, never an estimate.

An increase counts when it is first seen, so two periods side by side add up to the one that covers both. A counter that
restarts does so from 0.
"""

from collections.abc import Iterable, Mapping
from itertools import pairwise
from statistics import median

from msgspec import Struct, field

from podgpu.cluster.report.counters import CardKey, CardValues, CounterKey, CounterScope, Measure
from podgpu.cluster.report.queries import CardScrapes, Scrapes
from podgpu.cluster.store.targets import longest_pause

# A container's counter without a sample in this time has ended, if its card was scraped.
RECENT_SECONDS = 600.0


Counters = Mapping[CounterKey, int]


def microseconds(at: float) -> int:
    return round(at * 1_000_000)


class CardIncreases(Struct):
    """What a card's counters grew by, and for how long the card was seen."""

    counters: dict[CounterKey, int] = field(default_factory=dict)
    seen_us: int = 0

    def add(self, increases: dict[CounterKey, int]) -> None:
        if not self.counters:
            self.counters = increases
            return
        for counter, more in increases.items():
            self.counters[counter] = self.counters.get(counter, 0) + more


class CardPresence(Struct):
    """When a card was seen first and last, and the gaps in between in which no agent saw it."""

    first: float
    last: float
    interval: float = 0.0  # between two scrapes, in seconds; 0 if not known
    gaps: list[tuple[float, float]] = field(default_factory=list)
    counters: dict[CounterKey, int] = field(default_factory=dict)  # as they were last


class CounterTotals:
    """The state of every card's counters. Time only goes forward, for each card by itself."""

    def __init__(self, start: float) -> None:
        self._start = start
        self.presence: dict[CardKey, CardPresence] = {}

    def begin(self, last: CardValues) -> None:
        """Take the last values before the start: what was counted until then is not of this period."""
        for card, values in last.items():
            self.presence[card] = CardPresence(self._start, self._start, counters=values)

    def grow(
        self, scrapes: Scrapes, intervals: Mapping[CardKey, float], baselines: Scrapes
    ) -> dict[CardKey, CardIncreases]:
        """Take samples of any cards, and return what was added since the ones before.

        `intervals` has the seconds between two scrapes of those cards of which only the last samples are given.
        `baselines` are of scrapes that are of another replica than the last ones.
        """
        return {
            card: self._card(card, times, intervals.get(card), baselines.get(card, {}))
            for card, times in scrapes.items()
        }

    def forget(self, ended: Iterable[CounterKey]) -> None:
        """What comes later under the names of these counters begins at 0."""
        for counter in ended:
            if card := self.presence.get(counter.card):
                card.counters.pop(counter, None)

    def _card(
        self, key: CardKey, scrapes: CardScrapes, interval: float | None, baselines: CardScrapes
    ) -> CardIncreases:
        grown, times = CardIncreases(), sorted(scrapes)
        is_steady = interval is not None
        if interval is None and len(times) > 1:
            interval = median(later - earlier for earlier, later in pairwise(times))
        for at in times:
            card = self.presence.get(key)
            if card is None:  # nobody saw when its counters reached these values
                card = self.presence[key] = CardPresence(at, at, counters=dict(scrapes[at]))
            elif at > card.last:
                now = scrapes[at]
                # Where only the last samples are given, there was no gap.
                pause = at - card.last if is_steady else interval or card.interval
                if at in baselines:
                    card.counters = _rebased(card.counters, baselines[at], now)
                _scrape(card, at, now, grown, pause)
                if is_steady:
                    card.counters = now
            card.interval = interval or card.interval
        if not is_steady and times and times[-1] - times[0] >= RECENT_SECONDS:
            recent = set[CounterKey]().union(*(scrapes[at] for at in times if at >= times[-1] - RECENT_SECONDS))
            ended = [counter for counter in self.presence[key].counters if counter not in recent]
            self.forget(counter for counter in ended if counter.scope is CounterScope.CONTAINER)
        return grown


def _scrape(card: CardPresence, at: float, now: Counters, grown: CardIncreases, interval: float) -> None:
    before, seen_since = card.counters, card.last
    is_new = _is_restarted(before, now)
    increases = _increases(before, now, is_restarted=is_new)
    grown.add(increases)
    if at - card.last > longest_pause(interval) and (is_new or not _was_booked(before, now)):
        # When it is scraped again, it has been there for about an interval, or for as long as its books prove.
        seen_since = max(at - max(interval, _proven_seconds(increases)), card.last)
        if seen_since > card.last:
            card.gaps.append((card.last, seen_since))
    grown.seen_us += microseconds(at) - microseconds(seen_since)
    if is_new:
        card.counters = _meters(before)
    card.counters.update(now)
    card.last = at


def _meters(counters: Counters) -> dict[CounterKey, int]:
    return {counter: value for counter, value in counters.items() if counter.scope is CounterScope.METER}


def _rebased(last: Counters, baseline: Counters, now: Counters) -> dict[CounterKey, int]:
    """Return what a new replica goes on from: its own baseline, or the last values if it has read the same agent.

    Then those are near the baseline. Near is what is counted in about an interval: a mistake costs no more than that.
    """
    since_last, since_baseline = (
        sum(value - before.get(counter, 0) for counter, value in now.items() if counter.scope is CounterScope.BOOKED)
        for before in (last, baseline)
    )
    is_same_agent = 0 <= since_last <= 2 * since_baseline
    return dict(last) if is_same_agent else {**baseline, **_meters(last)}


def _is_restarted(last: Counters, now: Counters) -> bool:
    """The sum of a card's books falls only if its agent starts anew, and then all its counters do.

    A small counter may already have passed its old value by the next scrape: by itself it would seem to go on.
    """
    return any(value < last.get(counter, 0) for counter, value in now.items() if counter.scope is CounterScope.BOOKED)


def _proven_seconds(increases: Counters) -> float:
    """Return for how long an agent watched the card at least: nobody holds or uses more than one card's time."""
    held = _total(increases, CounterScope.CONTAINER, Measure.HELD)
    return max(held, _total(increases, CounterScope.BOOKED, Measure.BUSY)) / 1_000_000


def _was_booked(last: Counters, now: Counters) -> bool:
    """Whether an agent booked what the card used since: then it was the store that was away, or the scraper."""
    grown = {counter: value - last[counter] for counter, value in now.items() if counter in last}
    used = _total(grown, CounterScope.METER, Measure.ENERGY)
    return used > 0 and 2 * _total(grown, CounterScope.BOOKED, Measure.ENERGY) >= used


def _total(increases: Counters, scope: CounterScope, measure: Measure) -> int:
    return sum(more for counter, more in increases.items() if counter.scope is scope and counter.measure is measure)


def _increases(last: Counters, now: Counters, *, is_restarted: bool) -> dict[CounterKey, int]:
    found = {}
    for counter, value in now.items():
        before = last.get(counter)
        if before is not None and value >= before and (not is_restarted or counter.scope is CounterScope.METER):
            found[counter] = value - before
        else:  # the driver's counter began long before podgpu looked at it
            found[counter] = 0 if before is None and counter.scope is CounterScope.METER else value
    return found
