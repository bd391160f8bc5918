"""Reads from a store what each container held in a period, and what it used minute by minute."""

import asyncio
from collections.abc import Callable, Container, Iterable, Mapping, Sequence
from itertools import pairwise
from statistics import median

from podgpu.cluster.fit.claims import HolderQueries, holder_of
from podgpu.cluster.fit.seen_time import seen_ratio
from podgpu.cluster.fit.workload_use import (
    STEPS,
    FitHolder,
    FitPeriod,
    HolderMinutes,
    PeriodUse,
    WorkloadUseBuilder,
    counter_ratios,
)
from podgpu.cluster.report import evidence
from podgpu.cluster.report.counters import NodeKey, card_of
from podgpu.cluster.report.queries import TimeWindow, range_of
from podgpu.cluster.store.client import Store
from podgpu.cluster.store.response import ANSWERABLE_IN_PARTS, Sample, Series, StoreFault, any_of, own_labels

MOST_POINTS = 40_000_000  # of all containers
POINTS_OF_AN_ANSWER = 1_000_000
LONGEST_PART, SHORTEST_PART = 1440, 15  # steps
SHORTEST = 0.001  # seconds
FEW_CARDS, LATELY = 20, 300.0
_INFO = "podgpu_gpu_info"
_MEMORY = "podgpu_container_memory_used_bytes"
_BUSY = "podgpu_container_busy_likely_seconds_total"  # on a shared card, bounds are too wide to advise by


async def stored_use(
    store: Store,
    window: TimeWindow,
    now: float,
    progress: Callable[[float], None] = lambda _: None,
    without: Container[str] = (),
) -> PeriodUse:
    """Read a period of all nodes but some. `progress` is called with the part that has been read, from 0 to 1."""
    read = await HolderQueries(store, window).read()
    facts = {holder: found for holder, found in read.items() if holder.card.node not in without}
    interval = await _interval(store, window, facts)
    period = _period(window, len(facts), interval)
    builder = WorkloadUseBuilder(facts, period.steps, period.step)
    reader = _MinuteReader(store, period, interval, builder)
    length = min(max(POINTS_OF_AN_ANSWER // max(len(facts), 1), SHORTEST_PART), LONGEST_PART)
    for first in range(0, period.steps, length):
        await reader.read(first, min(first + length, period.steps))
        progress(min(first + length, period.steps) / period.steps)
    uses = list(builder.uses())
    if not uses:
        return PeriodUse(period, [], holders=len(facts))
    infos = await store.points(f"last_over_time({store.select(_INFO)}{window.range})", window.end)
    cards = {card for point in infos if (card := card_of(point.labels)) and card.node not in without}
    others = await evidence.gather(store, (period.start, period.end), now, cards)
    seen = seen_ratio(period, builder.scraped, cards, others)
    return PeriodUse(period, uses, coverage=seen, holders=len(facts))


def _period(window: TimeWindow, holders: int, interval: float) -> FitPeriod:
    step = next(
        (step for step in STEPS if step >= interval and window.seconds / step * holders <= MOST_POINTS),
        STEPS[-1],
    )
    return FitPeriod(-(-int(window.start) // step) * step, int(window.end) // step * step, step)


async def _interval(store: Store, window: TimeWindow, facts: Iterable[FitHolder]) -> float:
    """Find the seconds between two scrapes: by the last samples of a few cards, or by how many there are in an hour.

    How many there are tells too much where scraping began within the hour.
    """
    few = any_of("uuid", sorted({holder.card.uuid for holder in facts})[:FEW_CARDS])
    found = await store.series(f"{store.select(_INFO, few)}{range_of(LATELY)}", window.end)
    pauses = [after - before for series in found for (before, _), (after, _) in pairwise(series.samples)]
    if pauses:
        return float(round(median(pauses)))
    hour = min(window.seconds, 3600.0)
    counts = await store.points(f"count_over_time({store.select(_INFO)}{range_of(hour)})", window.end)
    return hour / max(median(point.value for point in counts), 1.0) if counts else float(STEPS[0])


class _MinuteReader:
    def __init__(self, store: Store, period: FitPeriod, interval: float, builder: WorkloadUseBuilder) -> None:
        self._store = store
        self._period = period
        self._builder = builder
        # If a step has only one scrape, that may be a little late. Some stores count the first moment of a range too.
        self._within = range_of(max(period.step, 1.5 * interval) - SHORTEST)

    async def read(self, first: int, end: int) -> None:
        """Read some steps, at once if the store can answer that, else in two halves."""
        try:
            scraped, memory, most, least = await self._answers(first, end)
        except StoreFault as fault:
            if fault.reason not in ANSWERABLE_IN_PARTS or end - first <= SHORTEST_PART:
                raise
            middle = (first + end) // 2
            await self.read(first, middle)
            await self.read(middle, end)
            return
        numbers = range(first, end)
        for series in scraped:
            if (node := _node(series)) is not None:
                self._builder.add_node(node, (self._period.number(at) for at, _ in series.samples))
        used = _by_holder(memory, lambda samples: self._peaks(samples, numbers))
        busy = [_by_holder(answer, lambda samples: self._ratios(samples, numbers)) for answer in (most, least)]
        for holder in sorted({*used, *busy[0]}):
            minutes = HolderMinutes(used.get(holder, {}), busy[0].get(holder, {}), busy[1].get(holder, {}))
            self._builder.add(holder, minutes)

    async def _answers(self, first: int, end: int) -> list[list[Series]]:
        period, store = self._period, self._store
        # Counters need the value before the first step, too.
        steps = f"[{(end - first + 1) * period.step}s:{period.step}s]"
        at = period.start + end * period.step
        info, memory = store.select(_INFO), store.select(_MEMORY)
        busy = [store.select(_BUSY, f'end="{end}"') for end in ("most", "least")]
        return await asyncio.gather(
            store.series(
                f"(group by (cluster, node, exported_node) (last_over_time({info}{self._within}))){steps}", at
            ),
            store.series(f"max_over_time({memory}{self._within}){steps}", at),
            *(store.series(f"last_over_time({end}{self._within}){steps}", at) for end in busy),
        )

    def _peaks(self, samples: Sequence[Sample], numbers: range) -> Mapping[int, float]:
        found = ((self._period.number(at), value) for at, value in samples)
        return {number: value for number, value in found if number in numbers}

    def _ratios(self, samples: Sequence[Sample], numbers: range) -> Mapping[int, float]:
        points = [(self._period.number(at), value) for at, value in samples]
        found = counter_ratios(points, self._period.step)
        return {number: ratio for number, ratio in found if number in numbers}


def _by_holder(
    answer: Iterable[Series], values: Callable[[Sequence[Sample]], Mapping[int, float]]
) -> dict[FitHolder, dict[int, float]]:
    """Join the series of each holder: its agent may have moved, or two servers may scrape it."""
    found: dict[FitHolder, dict[int, float]] = {}
    for series in answer:
        holder = holder_of(series.labels)
        if holder is None:
            continue
        minutes = found.setdefault(holder, {})
        for number, value in values(series.samples).items():
            minutes[number] = max(value, minutes.get(number, value))
    return found


def _node(series: Series) -> NodeKey | None:
    labels = own_labels(series.labels)
    return (labels.get("cluster", ""), labels["node"]) if labels.get("node") else None
