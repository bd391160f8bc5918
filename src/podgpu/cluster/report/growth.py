"""Adds up counters over time, exactly: an increase is the difference of two samples, never an estimate.

An increase counts when it is first seen, so two periods side by side add up to the one that covers both. A counter that
restarts does so from 0.
"""

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence

from msgspec import Struct, field

from podgpu.cluster.report.counters import CardKey, CounterKey, CounterScope

# A GPU whose agent restarted was there in between, but for how long nobody knows: no longer than this is assumed.
LONGEST_RESTART_SECONDS = 300.0

Samples = Mapping[CounterKey, Sequence[tuple[float, int]]]  # when, and the counter in its integer unit


class CardGrowth(Struct):
    """What a card's counters grew by, and how long the card was seen."""

    counters: dict[CounterKey, int] = field(default_factory=lambda: defaultdict(int))
    seconds: float = 0.0


class _CardState(Struct):
    at: float
    last: dict[CounterKey, int]


class CounterTotals:
    """The state of every card's counters. Time only goes forward, for each card by itself."""

    def __init__(self, start: float) -> None:
        self._start = start
        self._cards: dict[CardKey, _CardState] = {}

    def begin(self, last: Mapping[CounterKey, int]) -> None:
        """Take the last values before the start: what came before them is not of this period."""
        for counter, value in last.items():
            card = self._cards.setdefault(counter.card, _CardState(self._start, {}))
            card.last[counter] = value

    def grow(self, samples: Samples) -> dict[CardKey, CardGrowth]:
        """Take samples of any cards, and return what was added since the ones before."""
        scrapes: dict[CardKey, dict[float, dict[CounterKey, int]]] = {}
        for counter, values in samples.items():
            times = scrapes.setdefault(counter.card, {})
            for at, value in values:
                times.setdefault(at, {})[counter] = value
        return {card: self._card(card, times) for card, times in scrapes.items()}

    def _card(self, key: CardKey, times: Mapping[float, dict[CounterKey, int]]) -> CardGrowth:
        growth = CardGrowth()
        for at in sorted(times):
            card = self._cards.get(key)
            if card is None:  # how its counters came to their values nobody saw
                self._cards[key] = _CardState(at, dict(times[at]))
            elif at > card.at:
                _scrape(card, at, times[at], growth)
        return growth


def _scrape(card: _CardState, at: float, now: Mapping[CounterKey, int], growth: CardGrowth) -> None:
    is_new = _is_restarted(card.last, now)
    for counter, more in _increases(card.last, now, is_restarted=is_new):
        growth.counters[counter] += more
    elapsed = at - card.at
    growth.seconds += min(elapsed, LONGEST_RESTART_SECONDS) if is_new else elapsed
    if is_new:
        card.last = {
            counter: value for counter, value in card.last.items() if counter.scope is CounterScope.METER
        }
    card.last.update(now)
    card.at = at


def _is_restarted(last: Mapping[CounterKey, int], now: Mapping[CounterKey, int]) -> bool:
    """The sum of a card's books falls only if its agent starts anew, and then all its counters do.

    A small counter may already have passed its old value by the next scrape: by itself it would seem to go on.
    """
    return any(
        value < last.get(counter, 0) for counter, value in now.items() if counter.scope is CounterScope.BOOKED
    )


def _increases(
    last: Mapping[CounterKey, int], now: Mapping[CounterKey, int], *, is_restarted: bool
) -> Iterator[tuple[CounterKey, int]]:
    for counter, value in now.items():
        before = last.get(counter)
        if counter.scope is CounterScope.METER:
            # The driver's counter began long before anybody looked.
            yield counter, 0 if before is None else value - before if value >= before else value
        elif before is None or is_restarted or value < before:
            yield counter, value
        else:
            yield counter, value - before
