"""What a report asks a store: the counters of some nodes, their samples, and what is known of pods."""

import asyncio
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cache
from math import ceil, floor
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
from podgpu.cluster.store.targets import NodeTargets, Replica, ScrapeTarget, replica_of

# At most so many values of each counter are asked for at once.
SLOTS_OF_A_WINDOW = 31
LAST_PART = 1.5  # rather a longer last part than a tiny one
# Asked about midnight UTC, VictoriaMetrics does not look into the day that begins, and misses a series whose first
# sample lies exactly there. So every time that is asked about ends a millisecond late, and the next begins as late.
EDGE_SECONDS = 0.001
LATE = "offset -1ms"

PodFacts = dict[PodKey, list[dict[str, str]]]
CardScrapes = Mapping[float, dict[CounterKey, int]]  # when, and the counters in their integer units
Scrapes = Mapping[CardKey, CardScrapes]
# The scrapes of each card, by each of the copies that a store may have of its series.
ReplicatedScrapes = Mapping[CardKey, Mapping[Replica, CardScrapes]]

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


def windows(start: float, end: float, step: float | None, longest: float) -> Iterator[TimeWindow]:
    """With a step, a window that goes beyond a multiple of it begins and ends at one."""
    if not step:
        yield from TimeWindow(start, end).parts(longest)
        return
    first, last = ceil(start / step) * step, floor(end / step) * step
    if first > last:
        yield TimeWindow(start, end)
        return
    if start < first:
        yield TimeWindow(start, first)
    if first < last:
        yield from TimeWindow(first, last, step).parts(min(max(longest // step, 1), SLOTS_OF_A_WINDOW) * step)
    if last < end:
        yield TimeWindow(last, end)


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


def _known_labels(family: CounterFamily) -> Callable[[bytes], tuple[CounterKey, ScrapeTarget] | None]:
    """Return a function from the labels of a series to its counter, and who said so.

    A store sends the same labels for each window.
    """

    def known(text: bytes) -> tuple[CounterKey, ScrapeTarget] | None:
        labels = _labels(text)
        counter = counter_of(family, labels)
        return (counter, ScrapeTarget.of(labels)) if counter else None

    return cache(known)


def _is_shared(family: CounterFamily) -> bool:
    return family.scope in (CounterScope.CONTAINER, CounterScope.UNATTRIBUTED)


def _same_scrape(replica: Replica, known: Iterable[Replica]) -> Replica:
    """Return the replica whose scrapes a series is of: relabelling may have added labels to some series alone."""
    return max((each for each in known if each <= replica), key=len, default=replica)


class CounterQueries:
    """`facts` names the labels of pods that the report needs. `targets` says whose counters are believed."""

    def __init__(
        self, store: Store, families: Sequence[CounterFamily], facts: Sequence[str], targets: NodeTargets
    ) -> None:
        self._store = store
        self._targets = targets
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
            for (counter, target), value in await self._store.values(question, window.end, self._known[family]):
                if self._targets.is_believed(target, counter.node):
                    found.add(window.end, counter, round(value * family.unit))
            return
        for series in await self._store.series(f"({question}){window.by_step}", window.end):
            if known := self._believed(family, series.labels):
                for at, value in series.samples:
                    found.add(at, known, round(value * family.unit))

    def _believed(self, family: CounterFamily, labels: Mapping[str, str]) -> CounterKey | None:
        counter = counter_of(family, labels)
        return counter if counter and self._targets.is_believed(ScrapeTarget.of(labels), counter.node) else None

    async def samples(self, window: TimeWindow, chosen: str) -> ReplicatedScrapes:
        """The samples of one counter may be in several series, by who scraped them."""
        questions = (self._select(family, chosen) + window.range for family in self._families)
        answers = await asyncio.gather(*(self._store.series(question, window.end) for question in questions))
        found: dict[CardKey, dict[Replica, dict[float, dict[CounterKey, int]]]] = {}
        # A card's own counters come first: they tell its replicas apart.
        for family, answer in sorted(zip(self._families, answers, strict=True), key=lambda each: _is_shared(each[0])):
            for series in answer:
                if counter := self._believed(family, series.labels):
                    replicas = found.setdefault(counter.card, {})
                    replica = replica_of(series.labels)
                    if _is_shared(family):
                        replica = _same_scrape(replica, replicas)
                    times = replicas.setdefault(replica, {})
                    for at, value in series.samples:
                        times.setdefault(at, {})[counter] = round(value * family.unit)
        return found

    async def pods(self, window: TimeWindow, chosen: Sequence[str]) -> PodFacts:
        """Find what is known of pods within the window, also of those that have ended."""
        if not self._facts:
            return {}
        # A scrape without honor_labels renames the pod's own labels.
        names = (*PodKey._fields, *(f"exported_{name}" for name in PodKey._fields), *ScrapeTarget._fields, *self._facts)
        info = self._store.select("podgpu_pod_info", *chosen)
        found: PodFacts = {}
        for point in await self._store.points(
            f"group by ({', '.join(names)}) (last_over_time({info}{window.range}))", window.end
        ):
            labels: Mapping[str, str] = own_labels(point.labels)
            key = PodKey(*(labels.get(name, "") for name in PodKey._fields))
            facts = {name: labels.get(name, "") for name in self._facts}
            is_new = any(facts.values()) and facts not in found.get(key, ())
            if is_new and self._targets.is_believed(ScrapeTarget.of(point.labels), key.node):
                found.setdefault(key, []).append(facts)
        return found

    def _select(self, family: CounterFamily, *chosen: str) -> str:
        return self._store.select(family.metric, *chosen)
