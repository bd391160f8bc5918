"""The counters that a report is made of, added up exactly: an increase is the difference of two samples, no estimate.

An increase counts when it is first seen, so two periods side by side add up to the one that covers both. A counter that
restarts does so from 0.
"""

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from enum import StrEnum
from typing import NamedTuple

from msgspec import Struct, field

from podgpu.catalog.row import Scope
from podgpu.cluster.store.promql import own_labels

# A GPU whose agent restarted was there in between, but for how long is not known: at most this long is assumed.
LONGEST_RESTART_SECONDS = 300.0


class Measure(StrEnum):
    BUSY = "busy"
    ENERGY = "energy"
    HELD = "held"


class CounterScope(StrEnum):
    """Whose a counter is. `METER` is the GPU's own counter of energy, which no agent resets."""

    CONTAINER = "container"
    UNATTRIBUTED = "unattributed"
    BOOKED = "booked"
    METER = "meter"


class CounterFamily(NamedTuple):
    """A family of counters. `unit` makes integers of its values: the books are kept in integers."""

    metric: str
    scope: CounterScope
    measure: Measure
    unit: int


_MICRO, _MILLI = 1_000_000, 1_000
_CONTAINER, _UNATTRIBUTED, _GPU = (scope.prefix for scope in (Scope.CONTAINER, Scope.UNATTRIBUTED, Scope.GPU))

FAMILIES = (
    CounterFamily(f"{_CONTAINER}allocated_seconds_total", CounterScope.CONTAINER, Measure.HELD, _MICRO),
    CounterFamily(f"{_CONTAINER}busy_seconds_total", CounterScope.CONTAINER, Measure.BUSY, _MICRO),
    CounterFamily(f"{_CONTAINER}energy_joules_total", CounterScope.CONTAINER, Measure.ENERGY, _MILLI),
    CounterFamily(f"{_UNATTRIBUTED}busy_seconds_total", CounterScope.UNATTRIBUTED, Measure.BUSY, _MICRO),
    CounterFamily(f"{_UNATTRIBUTED}energy_joules_total", CounterScope.UNATTRIBUTED, Measure.ENERGY, _MILLI),
    CounterFamily(f"{_GPU}booked_busy_seconds_total", CounterScope.BOOKED, Measure.BUSY, _MICRO),
    CounterFamily(f"{_GPU}booked_energy_joules_total", CounterScope.BOOKED, Measure.ENERGY, _MILLI),
    CounterFamily(f"{_GPU}energy_joules_total", CounterScope.METER, Measure.ENERGY, _MILLI),
)


class CardKey(NamedTuple):
    """A GPU. Demo nodes have the same UUIDs, so the node counts too, and so may two clusters' nodes have one name."""

    cluster: str
    node: str
    uuid: str


class PodKey(NamedTuple):
    cluster: str
    node: str
    namespace: str
    pod: str


class CounterKey(NamedTuple):
    """A counter, by podgpu's own labels. Who scraped it, and from which address, does not matter."""

    card: CardKey
    scope: CounterScope
    measure: Measure
    mig: str = ""
    namespace: str = ""
    pod: str = ""
    container: str = ""
    reason: str = ""

    @property
    def pod_key(self) -> PodKey:
        return PodKey(self.card.cluster, self.card.node, self.namespace, self.pod)


def card_of(labels: Mapping[str, str]) -> CardKey | None:
    """Return None where the labels name no card: it is not podgpu's own series."""
    labels = own_labels(labels)
    node, uuid = labels.get("node", ""), labels.get("uuid", "")
    return CardKey(labels.get("cluster", ""), node, uuid) if node and uuid else None


def counter_of(family: CounterFamily, labels: Mapping[str, str]) -> CounterKey | None:
    card = card_of(labels)
    if card is None:
        return None
    if family.scope is CounterScope.CONTAINER:
        labels = own_labels(labels)
        names = (labels.get(name, "") for name in ("mig", "namespace", "pod", "container"))
        return CounterKey(card, family.scope, family.measure, *names)
    return CounterKey(card, family.scope, family.measure, reason=labels.get("reason", ""))


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
