"""Adds up counters over time, exactly: an increase is the difference of two samples, never an estimate.

An increase counts when it is first seen, so two periods side by side add up to the one that covers both. A counter that
restarts does so from 0.
"""

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence

from msgspec import Struct, field

from podgpu.cluster.report.line import Account, CardKey, Line

# A GPU whose agent restarted was there in between, but for how long nobody knows: no longer than this is assumed.
LONGEST_RESTART_SECONDS = 300.0

Samples = Mapping[Line, Sequence[tuple[float, int]]]  # when, and the counter in its integer unit


class Growth(Struct):
    """What a card's counters grew by, and how long the card was seen."""

    lines: dict[Line, int] = field(default_factory=lambda: defaultdict(int))
    seconds: float = 0.0


class _Card(Struct):
    at: float
    last: dict[Line, int]


class Tally:
    """The state of every card's counters. Time only goes forward, for each card by itself."""

    def __init__(self, start: float) -> None:
        self._start = start
        self._cards: dict[CardKey, _Card] = {}

    def begin(self, last: Mapping[Line, int]) -> None:
        """Take the last values before the start: what came before them is not of this period."""
        for line, value in last.items():
            card = self._cards.setdefault(line.card, _Card(self._start, {}))
            card.last[line] = value

    def grow(self, samples: Samples) -> dict[CardKey, Growth]:
        """Take samples of any cards, and return what was added since the ones before."""
        scrapes: dict[CardKey, dict[float, dict[Line, int]]] = {}
        for line, values in samples.items():
            times = scrapes.setdefault(line.card, {})
            for at, value in values:
                times.setdefault(at, {})[line] = value
        return {card: self._card(card, times) for card, times in scrapes.items()}

    def _card(self, key: CardKey, times: Mapping[float, dict[Line, int]]) -> Growth:
        growth = Growth()
        for at in sorted(times):
            card = self._cards.get(key)
            if card is None:  # how its counters came to their values nobody saw
                self._cards[key] = _Card(at, dict(times[at]))
            elif at > card.at:
                _scrape(card, at, times[at], growth)
        return growth


def _scrape(card: _Card, at: float, now: Mapping[Line, int], growth: Growth) -> None:
    is_new = _is_restarted(card.last, now)
    for line, more in _increases(card.last, now, is_restarted=is_new):
        growth.lines[line] += more
    elapsed = at - card.at
    growth.seconds += min(elapsed, LONGEST_RESTART_SECONDS) if is_new else elapsed
    if is_new:
        card.last = {line: value for line, value in card.last.items() if line.account is Account.METER}
    card.last.update(now)
    card.at = at


def _is_restarted(last: Mapping[Line, int], now: Mapping[Line, int]) -> bool:
    """The sum of a card's books falls only if its agent starts anew, and then all its counters do.

    A small counter may already have passed its old value by the next scrape: by itself it would seem to go on.
    """
    return any(value < last.get(line, 0) for line, value in now.items() if line.account is Account.BOOKED)


def _increases(
    last: Mapping[Line, int], now: Mapping[Line, int], *, is_restarted: bool
) -> Iterator[tuple[Line, int]]:
    for line, value in now.items():
        before = last.get(line)
        if line.account is Account.METER:
            # The driver's counter began long before anybody looked.
            yield line, 0 if before is None else value - before if value >= before else value
        elif before is None or is_restarted or value < before:
            yield line, value
        else:
            yield line, value - before
