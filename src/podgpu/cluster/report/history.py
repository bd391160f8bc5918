"""Reads the counters of a period from a store, as few samples as an exact sum needs.

Where no counter restarted within a window, its lowest and highest value are its first and last: the store finds them,
and thousands of samples need not travel. Where one did, or a GPU came or went, the samples themselves are fetched.
"""

import asyncio
from collections.abc import AsyncIterator, Callable, Collection, Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple, Protocol

from msgspec import Struct

from podgpu.cluster.report.counters import (
    FAMILIES,
    CardKey,
    CounterFamily,
    CounterKey,
    PodKey,
    card_of,
    counter_of,
)
from podgpu.cluster.report.growth import Samples, longest_pause
from podgpu.cluster.store.promql import any_of, own_labels
from podgpu.cluster.store.response import ANSWERABLE_IN_PARTS, Point, Series, StoreFault

# For how long before the period a counter's last value is looked for.
LOOKBACK_SECONDS = 3600.0
COARSE_SECONDS, MIDDLE_SECONDS, FINE_SECONDS = 86_400.0, 6 * 3600.0, 1800.0
# A question must not grow too long, nor an answer too large.
NODES_IN_A_QUESTION, NODES_WITH_SAMPLES, FEW_NODES = 150, 20, 4
LONGER = 1.25
LAST_PART = 1.5  # rather a longer last part than a tiny one
_INFO = "podgpu_gpu_info"
_INSTANT = 0.001  # stores know time to the millisecond

PodFacts = dict[PodKey, list[dict[str, str]]]


class StoreQueries(Protocol):
    """What a report needs of a store."""

    def select(self, metric: str, *more: str) -> str: ...

    async def points(self, query: str, at: float) -> list[Point]: ...

    async def series(self, query: str, at: float) -> list[Series]: ...


class HistoryPart(Struct, frozen=True):
    """Some nodes' counters until some time. `pods` are the pods' infos of that time.

    `intervals` has the seconds between two scrapes of the cards whose samples are not all here.
    """

    until: float
    samples: Samples
    models: Mapping[CardKey, str]
    pods: PodFacts
    intervals: Mapping[CardKey, float]


class _TimeWindow(NamedTuple):
    start: float
    end: float

    @property
    def range(self) -> str:
        return f"[{round((self.end - self.start) * 1000)}ms]"

    def is_at_most(self, seconds: float) -> bool:
        return self.end - self.start <= seconds * LAST_PART

    def parts(self, seconds: float) -> Iterator["_TimeWindow"]:
        start = self.start
        while self.end - start > seconds * LAST_PART:
            yield _TimeWindow(start, start + seconds)
            start += seconds
        yield _TimeWindow(start, self.end)


class _WindowSummary(NamedTuple):
    """A window as the store sums it up: lowest and highest values, who was there at its end, and who is not plain."""

    ends: Mapping[CounterKey, tuple[int, int]]
    alive: Mapping[CardKey, float]  # when each was scraped last
    intervals: Mapping[CardKey, float]
    models: Mapping[CardKey, str]
    pods: PodFacts
    unsteady: set[str]
    mixed: set[str]  # those of them where two pods had one name


class CounterHistory:
    """One reading of a period. Parts of the same node come in order of time.

    `facts` names the labels of pods that the report needs.
    """

    def __init__(
        self,
        store: StoreQueries,
        facts: Sequence[str] = (),
        families: Sequence[CounterFamily] = FAMILIES,
        *,
        coarse: float = COARSE_SECONDS,
        fine: float = FINE_SECONDS,
    ) -> None:
        self._store = store
        self._facts = facts
        self._families = families
        self._coarse = coarse
        self._fine = fine
        self._alive: set[CardKey] = set()  # those that were there at the end of what was read of their node
        self._interval = 0.0  # between two scrapes, in seconds, as far as is known; 0 if it is not

    async def before(self, start: float) -> dict[CounterKey, int]:
        """Return the counters' last values at the start of the period."""
        within = f"[{round(LOOKBACK_SECONDS * 1000)}ms]"
        info = self._store.select(_INFO)
        found, models, seen = await asyncio.gather(
            self._values(lambda metric: f"last_over_time({metric}{within})", start, ()),
            self._store.points(info, start),
            self._store.points(f"count_over_time({info}{within})", start),
        )
        self._alive = set(_models(models))
        self._interval_within(LOOKBACK_SECONDS, _by_card(seen))
        last = dict(found)
        # Which of two series of one counter is the newer one, only their samples show.
        for some in _batches(sorted(_divided(found)), NODES_WITH_SAMPLES):
            samples = await self._samples(_TimeWindow(start - LOOKBACK_SECONDS, start), some)
            last |= {counter: own_samples[-1][1] for counter, own_samples in samples.items() if own_samples}
        return last

    async def read(self, start: float, end: float) -> AsyncIterator[HistoryPart]:
        for window in _TimeWindow(start, end).parts(self._coarse):
            async for part in self._window(window, ()):
                yield part

    async def _window(self, window: _TimeWindow, nodes: Sequence[str]) -> AsyncIterator[HistoryPart]:
        """Read a window of these nodes, or of all: in one piece if that is exact and the store can, else in smaller."""
        try:
            summary = await self._summary(window, nodes)
        except StoreFault as fault:
            self._give_up(fault, window)
            async for part in self._parts(window, nodes):
                yield part
            return
        plain = {
            counter: ends
            for counter, ends in summary.ends.items()
            if counter.card.node not in summary.unsteady
        }
        self._update_alive(summary.alive, {counter.card.node for counter in plain})
        samples = _thinned(plain, window, summary.alive)
        yield HistoryPart(window.end, samples, summary.models, summary.pods, summary.intervals)
        async for part in self._unsteady(window, summary):
            yield part

    async def _unsteady(self, window: _TimeWindow, summary: _WindowSummary) -> AsyncIterator[HistoryPart]:
        """A few nodes' samples are fetched at once. Of many nodes most may be plain in most parts of the window.

        Where two pods had one name, the parts show which was when.
        """
        is_finest = window.is_at_most(self._fine)
        by_parts = set() if is_finest else summary.mixed
        if not is_finest and len(summary.unsteady - by_parts) > FEW_NODES:
            by_parts = summary.unsteady
        for some in _batches(sorted(by_parts), NODES_IN_A_QUESTION):
            async for part in self._parts(window, some):
                yield part
        for some in _batches(sorted(summary.unsteady - by_parts), NODES_WITH_SAMPLES if is_finest else 1):
            try:
                yield await self._sampled(window, some, summary)
            except StoreFault as fault:
                self._give_up(fault, window)
                async for part in self._parts(window, some):
                    yield part

    def _give_up(self, fault: StoreFault, window: _TimeWindow) -> None:
        """Raise the fault, unless the store may well answer the same about less time."""
        if fault.reason not in ANSWERABLE_IN_PARTS or window.is_at_most(self._fine):
            raise fault

    async def _parts(self, window: _TimeWindow, nodes: Sequence[str]) -> AsyncIterator[HistoryPart]:
        is_small = window.is_at_most(MIDDLE_SECONDS)
        for smaller in window.parts(self._fine if is_small else MIDDLE_SECONDS):
            async for part in self._window(smaller, nodes):
                yield part

    async def _sampled(
        self, window: _TimeWindow, nodes: Sequence[str], summary: _WindowSummary
    ) -> HistoryPart:
        samples = await self._samples(window, nodes)
        self._update_alive(summary.alive, nodes)
        return HistoryPart(window.end, samples, summary.models, summary.pods, {})

    async def _samples(
        self, window: _TimeWindow, nodes: Sequence[str]
    ) -> dict[CounterKey, list[tuple[float, int]]]:
        """Those of one counter may be in several series, by who scraped them."""
        chosen = any_of("node", nodes)
        found: dict[CounterKey, dict[float, int]] = {}
        questions = (
            self._store.select(family.metric, chosen, *family.matchers) + window.range
            for family in self._families
        )
        answers = await asyncio.gather(*(self._store.series(question, window.end) for question in questions))
        for family, answer in zip(self._families, answers, strict=True):
            for series in answer:
                if counter := counter_of(family, series.labels):
                    own_samples = ((at, round(value * family.unit)) for at, value in series.samples)
                    found.setdefault(counter, {}).update(own_samples)
        return {counter: sorted(own_samples.items()) for counter, own_samples in found.items()}

    async def _summary(self, window: _TimeWindow, nodes: Sequence[str]) -> _WindowSummary:
        chosen = (any_of("node", nodes),) if nodes else ()
        end, within = window.end, window.range
        info = self._store.select(_INFO, *chosen)
        lowest, highest, fallen, there, seen, pods = await asyncio.gather(
            self._values(lambda metric: f"min_over_time({metric}{within})", end, chosen),
            self._values(lambda metric: f"max_over_time({metric}{within})", end, chosen),
            self._values(lambda metric: f"resets({metric}{within}) > 0", end, chosen),
            self._store.points(f"timestamp({info})", end),
            self._store.points(f"count_over_time({info}{within})", end),
            self._pods(window, chosen),
        )
        alive, counts = _by_card(there), _by_card(seen)
        seconds = window.end - window.start
        sparse = _sparse(counts, seconds, self._interval_within(seconds, counts))
        unsteady = {counter.card.node for counter, _ in fallen} | _divided(lowest) | sparse
        low, high = dict(lowest), dict(highest)
        stayed = self._alive & alive.keys()
        unsteady |= {counter.card.node for counter in low if counter.card not in stayed}
        ends = {counter: (low[counter], high[counter]) for counter in low.keys() & high.keys()}
        mixed = {pod.node for pod, facts in pods.items() if len(facts) > 1}
        intervals = {card: seconds / count for card, count in counts.items() if count}
        return _WindowSummary(ends, alive, intervals, _models(seen), pods, unsteady | mixed, mixed)

    async def _values(
        self, question: Callable[[str], str], at: float, chosen: Sequence[str]
    ) -> list[tuple[CounterKey, int]]:
        """Ask the same of every family."""
        asked = (
            question(self._store.select(family.metric, *chosen, *family.matchers))
            for family in self._families
        )
        answers = await asyncio.gather(*(self._store.points(question, at) for question in asked))
        return [
            (counter, round(point.value * family.unit))
            for family, answer in zip(self._families, answers, strict=True)
            for point in answer
            if (counter := counter_of(family, point.labels))
        ]

    async def _pods(self, window: _TimeWindow, chosen: Sequence[str]) -> PodFacts:
        """Find what is known of pods within the window, also of those that have ended."""
        if not self._facts:
            return {}
        # A scrape without honor_labels renames the pod's own labels.
        names = (*PodKey._fields, *(f"exported_{name}" for name in PodKey._fields), *self._facts)
        labels = ", ".join(names)
        info = self._store.select("podgpu_pod_info", *chosen)
        found: PodFacts = {}
        for point in await self._store.points(
            f"group by ({labels}) (last_over_time({info}{window.range}))", window.end
        ):
            info_labels = own_labels(point.labels)
            key = PodKey(*(info_labels.get(name, "") for name in PodKey._fields))
            facts = {name: info_labels.get(name, "") for name in self._facts}
            if any(facts.values()):
                found.setdefault(key, []).append(facts)
        return found

    def _interval_within(self, seconds: float, counts: Mapping[CardKey, float]) -> float:
        """Return the seconds between two scrapes.

        If all cards have fewer scrapes than before, they were missed; if that goes on, the interval has become longer.
        """
        if not (most := max(counts.values(), default=0)):
            return self._interval
        found = seconds / most
        expected = min(found, self._interval or found)
        self._interval = min(found, expected * LONGER)
        return expected

    def _update_alive(self, alive: Collection[CardKey], nodes: Collection[str]) -> None:
        self._alive = {card for card in self._alive if card.node not in nodes}
        self._alive |= {card for card in alive if card.node in nodes}


def _models(points: Iterable[Point]) -> dict[CardKey, str]:
    return {card: point.labels.get("model", "") for point in points if (card := card_of(point.labels))}


def _by_card(points: Iterable[Point]) -> dict[CardKey, float]:
    return {card: point.value for point in points if (card := card_of(point.labels))}


def _sparse(counts: Mapping[CardKey, float], seconds: float, interval: float) -> set[str]:
    """Return nodes with a card that was scraped too seldom, by more than an update of its agent takes.

    That may be all of them: if the store itself was away, or if there is only one card, and it was.
    """
    expected = seconds / interval if interval else 0
    return {
        card.node for card, count in counts.items() if (expected - count) * interval > longest_pause(interval)
    }


def _divided(found: Iterable[tuple[CounterKey, int]]) -> set[str]:
    """Return nodes with a counter in two series: its agent moved, or two Prometheus servers scrape it."""
    seen: set[CounterKey] = set()
    nodes = set()
    for counter, _ in found:
        if counter in seen:
            nodes.add(counter.card.node)
        seen.add(counter)
    return nodes


def _thinned(
    ends: Mapping[CounterKey, tuple[int, int]], window: _TimeWindow, alive: Mapping[CardKey, float]
) -> Samples:
    """Put the first value right after the window's start: that it came later makes no difference to the sum."""
    first = window.start + _INSTANT
    last = {card: at for card, at in alive.items() if first < at <= window.end}
    return {
        counter: ((first, low), (last.get(counter.card, window.end), high))
        for counter, (low, high) in ends.items()
    }


def _batches(names: Sequence[str], size: int) -> Iterator[Sequence[str]]:
    return (names[at : at + size] for at in range(0, len(names), size))
