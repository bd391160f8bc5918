"""What a report asks a store: the counters of some nodes, their samples, and what is known of pods."""

import asyncio
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache
from typing import NamedTuple

import msgspec

from podgpu.cluster.report.counters import (
    CardKey,
    CardValues,
    CounterFamily,
    CounterKey,
    CounterScope,
    PodKey,
    counter_of,
)
from podgpu.cluster.store.client import Store
from podgpu.cluster.store.response import own_labels

LAST_PART = 1.5  # rather a longer last part than a tiny one
# Asked about midnight UTC, VictoriaMetrics does not look into the day that begins, and misses a series whose first
# sample lies exactly there. So every time that is asked about ends a millisecond late, and the next begins as late.
EDGE_SECONDS = 0.001
LATE = "offset -1ms"

PodFacts = dict[PodKey, list[dict[str, str]]]
CardScrapes = Mapping[float, dict[CounterKey, int]]  # when, and the counters in their integer units
Scrapes = Mapping[CardKey, CardScrapes]
Replica = frozenset[tuple[str, str]]  # one of several copies of a card's series, by their labels


class SampledScrapes(NamedTuple):
    """`replicas` has the times of the scrapes that each replica of a card has."""

    scrapes: Scrapes
    replicas: Mapping[CardKey, Mapping[Replica, Sequence[float]]]


_labels = msgspec.json.Decoder(dict[str, str]).decode


class TimeWindow(NamedTuple):
    """A time that is asked about at once. `step` is the length of the slots in it, if it may have several.

    Then it begins and ends at a multiple of the step, or is within one slot.
    """

    start: float
    end: float
    step: float = 0.0

    @property
    def seconds(self) -> float:
        return self.end - self.start

    @property
    def range(self) -> str:
        return range_of(self.seconds)

    @property
    def ends(self) -> Sequence[float]:
        """Return where each slot ends."""
        count = round(self.seconds / self.step) if self.step else 1
        return [self.end - self.step * left for left in reversed(range(max(count, 1)))]

    @property
    def by_step(self) -> str:
        """What makes a query about the end of the window one about the end of each slot."""
        return f"[{round(self.seconds)}s:{round(self.step)}s]"

    def is_at_most(self, seconds: float) -> bool:
        return self.seconds <= seconds * LAST_PART

    def parts(self, seconds: float) -> Iterator["TimeWindow"]:
        start = self.start
        while self.end - start > seconds * LAST_PART:
            yield TimeWindow(start, start + seconds, self.step)
            start += seconds
        yield TimeWindow(start, self.end, self.step)


def range_of(seconds: float) -> str:
    return f"[{round(seconds * 1000)}ms] {LATE}"


class CounterValues(NamedTuple):
    """Values of counters at the end of each slot, and the nodes where one of them was in two series."""

    by_end: Mapping[float, CardValues]
    divided: set[str]

    def add(self, end: float, counter: CounterKey, value: int) -> None:
        cards = self.by_end.get(end)
        if cards is None:  # a store may also answer about the start
            return
        own = cards.setdefault(counter.card, {})
        if counter in own:
            self.divided.add(counter.node)
        own[counter] = value


def _known_labels(family: CounterFamily) -> Callable[[bytes], CounterKey | None]:
    """Return a function from the labels of a series to its counter. A store sends the same labels for each window."""
    return cache(lambda labels: counter_of(family, _labels(labels)))


class CounterQueries:
    """`facts` names the labels of pods that the report needs."""

    def __init__(self, store: Store, families: Sequence[CounterFamily], facts: Sequence[str] = ()) -> None:
        self._store = store
        self._families = families
        self._facts = facts
        self._known = {family: _known_labels(family) for family in families}

    async def values(
        self,
        question: Callable[[str], str],
        window: TimeWindow,
        chosen: Sequence[str] = (),
        wanted: Callable[[CounterFamily], bool] = lambda _: True,
    ) -> CounterValues:
        """Ask the same of every family that is wanted, about the end of each slot of the window."""
        families = [family for family in self._families if wanted(family)]
        found = CounterValues({end: {} for end in window.ends}, set())
        await asyncio.gather(
            *(self._find(found, family, question(self._select(family, *chosen)), window) for family in families)
        )
        return found

    async def _find(self, found: CounterValues, family: CounterFamily, question: str, window: TimeWindow) -> None:
        if len(found.by_end) == 1:
            for key, value in await self._store.values(question, window.end, self._known[family]):
                found.add(window.end, key, round(value * family.unit))
            return
        for series in await self._store.series(f"({question}){window.by_step}", window.end):
            if counter := counter_of(family, series.labels):
                for at, value in series.samples:
                    found.add(at, counter, round(value * family.unit))

    async def samples(self, window: TimeWindow, chosen: str) -> SampledScrapes:
        """The samples of one counter may be in several series, by who scraped them."""
        questions = (self._select(family, chosen) + window.range for family in self._families)
        answers = await asyncio.gather(*(self._store.series(question, window.end) for question in questions))
        found: dict[CardKey, dict[float, dict[CounterKey, int]]] = {}
        replicas: dict[CardKey, dict[CounterFamily, dict[Replica, list[float]]]] = {}
        for family, answer in zip(self._families, answers, strict=True):
            for series in answer:
                if counter := counter_of(family, series.labels):
                    times = found.setdefault(counter.card, {})
                    for at, value in series.samples:
                        times.setdefault(at, {})[counter] = round(value * family.unit)
                    if counter.scope in (CounterScope.BOOKED, CounterScope.METER) and series.samples:
                        replica = frozenset((name, text) for name, text in series.labels.items() if name != "__name__")
                        own = replicas.setdefault(counter.card, {}).setdefault(family, {})
                        own[replica] = [at for at, _ in series.samples]
        # All samples of a scrape have the same time: one counter of the card shows of which replica they are.
        return SampledScrapes(found, {card: next(iter(by_family.values())) for card, by_family in replicas.items()})

    async def pods(self, window: TimeWindow, chosen: Sequence[str]) -> PodFacts:
        """Find what is known of pods within the window, also of those that have ended."""
        if not self._facts:
            return {}
        # A scrape without honor_labels renames the pod's own labels.
        names = (*PodKey._fields, *(f"exported_{name}" for name in PodKey._fields), *self._facts)
        info = self._store.select("podgpu_pod_info", *chosen)
        found: PodFacts = {}
        for point in await self._store.points(
            f"group by ({', '.join(names)}) (last_over_time({info}{window.range}))", window.end
        ):
            labels: Mapping[str, str] = own_labels(point.labels)
            key = PodKey(*(labels.get(name, "") for name in PodKey._fields))
            facts = {name: labels.get(name, "") for name in self._facts}
            if any(facts.values()):
                found.setdefault(key, []).append(facts)
        return found

    def _select(self, family: CounterFamily, *chosen: str) -> str:
        return self._store.select(family.metric, *chosen)
