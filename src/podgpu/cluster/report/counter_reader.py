"""Reads the counters of a period from a store, as few samples as an exact sum needs.

Where no counter restarted within a window, its last value is enough: the increase is the difference to the last value
of the window before. Thousands of samples need not be fetched. Where a counter did restart, or a GPU came or went, the
samples themselves are fetched.
"""

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Collection, Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from itertools import pairwise
from statistics import median
from typing import NamedTuple

from msgspec import Struct

from podgpu.cluster.report.counters import (
    FAMILIES,
    CardKey,
    CardValues,
    CounterFamily,
    CounterKey,
    CounterScope,
    card_models,
    card_of,
)
from podgpu.cluster.report.deduplication import Deduplication, DisputedTime
from podgpu.cluster.report.increases import RECENT_SECONDS
from podgpu.cluster.report.queries import (
    EDGE_SECONDS,
    LATE,
    CardScrapes,
    CounterQueries,
    PodFacts,
    Scrapes,
    TimeWindow,
    range_of,
    windows,
)
from podgpu.cluster.store.client import Store
from podgpu.cluster.store.response import ANSWERABLE_IN_PARTS, Point, StoreFault, any_of
from podgpu.cluster.store.targets import GIVE_JOB, NodeTargets, Replica, ScrapeTarget, longest_pause
from podgpu.model.kube import grouped

# For how long before the period a counter's last value is looked for.
LOOKBACK_SECONDS = 3600.0
DAY_SECONDS, FINE_SECONDS = 86_400.0, 1800.0
# A window has at most so many scrapes of a card, or is a day long. It is divided into smaller ones of these lengths.
SCRAPES_OF_A_WINDOW = 10_000
SMALLER_SECONDS = (7 * DAY_SECONDS, DAY_SECONDS, 6 * 3600.0, FINE_SECONDS)
# A question must not grow too long, nor an answer too large.
NODES_IN_A_QUESTION, NODES_WITH_SAMPLES, FEW_NODES = 150, 20, 4
# Up to so many scrapes are fetched at once. Of more, smaller windows are asked about first.
SCRAPES_TO_FETCH = 2_000
USUAL_INTERVAL = 30.0  # between two scrapes, where it is not known
MOST_CARDS = 50_000
TOO_MANY = "store_too_many"
_INFO = "podgpu_gpu_info"
_NODE = frozenset({"node"})
_RECENT = range_of(RECENT_SECONDS)


class CounterBatch(Struct, frozen=True):
    """Some nodes' counters until some time. `pods` is what is known of pods at that time.

    `intervals` has the seconds between two scrapes of the cards of which only the last samples are here. `ended` are
    the counters that had ended by then: what comes later under the same name begins at 0. `baselines` has what the
    replica of a scrape had before, where the last scrape is of another replica.
    """

    until: float
    scrapes: Scrapes
    models: Mapping[CardKey, str]
    pods: PodFacts
    intervals: Mapping[CardKey, float]
    ended: Collection[CounterKey] = ()
    baselines: Scrapes = {}


class _SlotSummary(NamedTuple):
    """A slot of a window as the store sums it up: last values, and who was there at its end."""

    end: float
    last: CardValues
    ended: Collection[CounterKey]  # those of `last` that were not there at the end
    alive: Mapping[CardKey, float]  # when each was scraped last


class _WindowSummary(NamedTuple):
    """A window by its slots, and the nodes of which last values are not enough."""

    slots: Sequence[_SlotSummary]
    device_counters: Mapping[CardKey, set[CounterKey]]  # those that each card had as a card at the end
    intervals: Mapping[CardKey, float]
    pods: PodFacts
    unsteady: set[str]
    mixed: set[str]  # those of them where two pods had the same name


class CounterReader:
    """Reads a period once. Batches of the same node come in order of time.

    `facts` names the labels of pods that the report needs.
    """

    def __init__(
        self,
        store: Store,
        facts: Sequence[str] = (),
        families: Sequence[CounterFamily] = FAMILIES,
        *,
        longest: float | None = None,
    ) -> None:
        self._store = store
        self.targets = NodeTargets()
        self._queries = CounterQueries(store, families, facts, self.targets)
        self._longest = longest
        # The cards that were there at the end of what was read of their node, with their device counters.
        self._alive: dict[CardKey, set[CounterKey]] = {}
        # The seconds between two scrapes of the cards of which samples were read. The others have the usual ones.
        self._intervals: dict[CardKey, float] = {}
        self._deduplication = Deduplication()
        self._models: dict[CardKey, str] = {}
        # Which labels name each node. A scrape without honor_labels may rename its own to `exported_node`.
        self._labels: dict[str, frozenset[str]] = {}
        self._usual_interval = USUAL_INTERVAL

    @property
    def disputed(self) -> Sequence[DisputedTime]:
        return self._deduplication.disputed

    async def before(self, start: float) -> CardValues:
        """Return the counters' last values at the start of the period."""
        within, moment = range_of(LOOKBACK_SECONDS), TimeWindow(start, start)
        info = self._store.select(_INFO)
        self._note_infos(await self._store.points(f"last_over_time({info}{within})", start))
        found, recent, infos = await asyncio.gather(
            self._queries.values(lambda metric: f"last_over_time({metric}{within})", moment),
            self._queries.values(lambda metric: f"last_over_time({metric}{_RECENT})", moment),
            self._store.points(f"{info} {LATE}", start),
        )
        there = recent.by_end[start]
        self._alive = _device_counters([card for card, _ in _by_card(infos)], there)
        await self._find_interval(start)
        last = found.by_end[start]
        # Which of two series of one counter is the newer one, only their samples show.
        for some in self._batches(found.divided, NODES_WITH_SAMPLES):
            scrapes, _ = await self._samples(TimeWindow(start - LOOKBACK_SECONDS, start), some)
            unknown = {node for _, node in self._deduplication.unsettled}
            last = {card: values for card, values in last.items() if card.node not in unknown}
            for card, times in scrapes.items():
                for at in sorted(times):
                    last.setdefault(card, {}).update(times[at])
        for card in self._alive.keys() & last.keys():
            last[card] = {counter: value for counter, value in last[card].items() if counter in there.get(card, {})}
        return last

    async def _find_interval(self, start: float) -> None:
        """Find the seconds between two scrapes by the samples of a few nodes."""
        nodes = next(self._batches({card.node for card in self._alive}, FEW_NODES), ())
        if nodes:
            info = self._store.select(_INFO, self._matchers(nodes)[0])
            samples = await self._store.series(f"{info}{range_of(LOOKBACK_SECONDS)}", start)
            for series in samples:
                if card := card_of(series.labels):
                    self._take_interval(card, [at for at, _ in series.samples])
            self._usual_interval = min(self._intervals.values(), default=USUAL_INTERVAL)

    async def read(self, start: float, end: float, step: float | None = None) -> AsyncIterator[CounterBatch]:
        """With a step, no part goes beyond a multiple of it."""
        longest = self._longest or max(DAY_SECONDS, SCRAPES_OF_A_WINDOW * self._usual_interval)
        for window in windows(start, end, step, longest):
            async for part in self._window(window, ()):
                yield part

    async def _window(self, window: TimeWindow, nodes: Sequence[str]) -> AsyncIterator[CounterBatch]:
        """Read a window of these nodes, or of all: at once if that is exact and the store can, else in parts."""
        try:
            summary = await self._summary(window, nodes)
        except StoreFault as fault:
            self._give_up(fault, window)
            async for part in self._parts(window, nodes):
                yield part
            return
        for slot in summary.slots:
            scrapes = {
                card: {slot.alive[card]: values}
                for card, values in slot.last.items()
                if card.node not in summary.unsteady
            }
            ended = [counter for counter in slot.ended if counter.card in scrapes]
            yield CounterBatch(slot.end, scrapes, self._models, summary.pods, summary.intervals, ended)
        self._update_alive(summary, {card.node for card in summary.device_counters} - summary.unsteady)
        async for part in self._unsteady(window, summary):
            yield part

    async def _unsteady(self, window: TimeWindow, summary: _WindowSummary) -> AsyncIterator[CounterBatch]:
        """Fetch the samples of a few nodes at once. Of many nodes, most need no samples in most parts of the window.

        Where two pods had the same name, the parts show when each of them ran.
        """
        is_finest = window.is_at_most(FINE_SECONDS)
        by_parts = set() if is_finest else summary.mixed
        count = window.seconds / self._usual_interval
        if not is_finest and len(summary.unsteady - by_parts) * count > SCRAPES_TO_FETCH:
            by_parts = summary.unsteady
        by_parts = {node for node in by_parts if not self._has_two_names(node)}
        for some in self._batches(by_parts, NODES_IN_A_QUESTION):
            async for part in self._parts(window, some):
                yield part
        at_once = min(max(int(SCRAPES_TO_FETCH / count), 1), NODES_WITH_SAMPLES)
        for some in self._batches(summary.unsteady - by_parts, at_once):
            try:
                scrapes, baselines = await self._samples(window, some)
            except StoreFault as fault:
                self._give_up(fault, window)
                async for part in self._parts(window, some):
                    yield part
            else:
                for part in self._sampled(scrapes, baselines, some, summary):
                    yield part

    def _give_up(self, fault: StoreFault, window: TimeWindow) -> None:
        """Raise the fault, unless the store may answer about less time."""
        if fault.reason not in ANSWERABLE_IN_PARTS or window.is_at_most(FINE_SECONDS):
            raise fault

    async def _parts(self, window: TimeWindow, nodes: Sequence[str]) -> AsyncIterator[CounterBatch]:
        length = next((each for each in SMALLER_SECONDS if not window.is_at_most(each)), FINE_SECONDS)
        for smaller in window.parts(length):
            async for part in self._window(smaller, nodes):
                yield part

    async def _samples(self, window: TimeWindow, nodes: Sequence[str]) -> tuple[Scrapes, Scrapes]:
        found: dict[CardKey, dict[Replica, CardScrapes]] = {}
        for matcher in self._matchers(nodes):
            for card, replicas in (await self._queries.samples(window, matcher)).items():
                found.setdefault(card, {}).update(replicas)
        return self._deduplication.choose(found, window)

    def _note_infos(self, infos: Sequence[Point]) -> None:
        self.targets.note(point.labels for point in infos)
        self._models |= {card: model for card, model in card_models(infos).items() if model}
        for card, point in _by_card(infos):
            label = "node" if point.labels.get("node") == card.node else "exported_node"
            self._labels[card.node] = self._labels.get(card.node, frozenset()) | {label}
        if len(self._models) > MOST_CARDS:
            jobs = ", ".join(f"{job or '(none)'} {len(nodes)}" for job, nodes in self.targets.jobs.items())
            detail = f"the store has more than {MOST_CARDS} GPUs, on so many nodes by job: {jobs}"
            raise StoreFault(TOO_MANY, f"{detail}; {GIVE_JOB}, or choose less with --prometheus.selector")

    def _matchers(self, nodes: Sequence[str]) -> Sequence[str]:
        return [any_of(label, nodes) for label in sorted(self._labels.get(nodes[0], _NODE), reverse=True)]

    def _has_two_names(self, node: str) -> bool:
        return len(self._labels.get(node, _NODE)) > 1

    def _batches(self, nodes: AbstractSet[str], size: int) -> Iterator[Sequence[str]]:
        """The nodes of a batch are named by the same labels."""
        for names in grouped(sorted(nodes), lambda node: self._labels.get(node, _NODE)).values():
            yield from (names[at : at + size] for at in range(0, len(names), size))

    def _sampled(
        self, scrapes: Scrapes, baselines: Scrapes, nodes: Sequence[str], summary: _WindowSummary
    ) -> Iterator[CounterBatch]:
        for card, times in scrapes.items():
            self._take_interval(card, sorted(times))
        self._update_alive(summary, nodes)
        begin = 0.0
        for slot in summary.slots:
            within, bases = (_between(begin, slot.end, each) for each in (scrapes, baselines))
            ended = [counter for counter in slot.ended if counter.card.node in nodes]
            yield CounterBatch(slot.end, within, self._models, summary.pods, {}, ended, bases)
            begin = slot.end

    async def _summary(self, window: TimeWindow, nodes: Sequence[str]) -> _WindowSummary:
        chosen = (self._matchers(nodes)[0],) if nodes else ()
        info = self._store.select(_INFO, *chosen)
        # Longer, to see what restarted since the last sample of the window before.
        longer = TimeWindow(window.start - RECENT_SECONDS, window.end)
        slots = len(window.ends)
        of_a_slot = range_of(window.seconds / slots + RECENT_SECONDS)
        # First who speaks for which node: what others counted there is not taken.
        seen = await self._store.points(f"count_over_time({info}{longer.range})", window.end)
        self._note_infos(seen)
        recent, ended, fallen, there, pods = await asyncio.gather(
            self._queries.values(lambda metric: f"last_over_time({metric}{_RECENT})", window, chosen),
            self._queries.values(
                lambda metric: f"last_over_time({metric}{of_a_slot}) unless last_over_time({metric}{_RECENT})",
                window,
                chosen,
                _of_containers,
            ),
            self._queries.values(
                lambda metric: f"resets({metric}{longer.range}) > 0",
                TimeWindow(window.start, window.end),
                chosen,
                _restarts_by_itself,
            ),
            self._last_scrapes(info, window),
            self._queries.pods(window, chosen),
        )
        counts = Counter[CardKey]()
        for card, point in _by_card(seen):
            counts[card] += int(point.value)
        mixed = {pod.node for pod, facts in pods.items() if len(facts) > 1}
        unsteady = {card.node for card, count in counts.items() if self._is_sparse(card, count, longer.seconds)}
        unsteady |= {card.node for card in fallen.by_end[window.end]} | mixed
        # A card in two series: its agent moved, or two Prometheus servers scrape it. A node of two targets likewise.
        series = Counter(card for card, _ in _by_card(seen))
        unsteady |= recent.divided | ended.divided | {card.node for card, number in series.items() if number > 1}
        targets = {(card.cluster, card.node, ScrapeTarget.of(point.labels)) for card, point in _by_card(seen)}
        speaking = Counter((cluster, node) for cluster, node, _ in targets)
        unsteady |= {node for (_, node), number in speaking.items() if number > 1}
        unsteady |= {node for _, node in self._deduplication.unsettled}
        before = {card: own for card, own in self._alive.items() if not nodes or card.node in nodes}
        found = []
        for end in window.ends:
            alive, last, gone = there[end], recent.by_end[end], ended.by_end[end]
            unsteady |= {card.node for card in (*last, *gone) if card not in alive}
            now = _device_counters(alive, last)
            unsteady |= {card.node for card in before.keys() | now.keys() if before.get(card) != now.get(card)}
            before, left = now, list[CounterKey]()
            for card, values in gone.items():
                own = last.setdefault(card, {})
                if not own.keys().isdisjoint(values):
                    unsteady.add(card.node)
                # Of a card that is away it is not known whether a container has ended.
                left += [counter for counter in values if counter not in own and card in alive]
                own |= {counter: value for counter, value in values.items() if counter not in own}
            found.append(_SlotSummary(end, last, left, alive))
        intervals = {card: longer.seconds / count for card, count in counts.items() if count}
        return _WindowSummary(found, before, intervals, pods, unsteady, mixed)

    async def _last_scrapes(self, info: str, window: TimeWindow) -> dict[float, dict[CardKey, float]]:
        """Return for each slot the cards that were there at its end, and when they were scraped last."""
        query = f"timestamp({info} {LATE})"
        if len(window.ends) == 1:
            points = await self._store.points(query, window.end)
            return {window.end: {card: min(point.value, window.end) for card, point in _by_card(points)}}
        found: dict[float, dict[CardKey, float]] = {end: {} for end in window.ends}
        for series in await self._store.series(f"{query}{window.by_step}", window.end):
            if card := card_of(series.labels):
                for end, at in series.samples:
                    # Some stores look back by a whole step.
                    if end in found and end - at <= RECENT_SECONDS:
                        found[end][card] = min(at, end)
        return found

    def _take_interval(self, card: CardKey, scrapes: Sequence[float]) -> None:
        """Only the times of samples show the interval itself: a card that came late has few in its window."""
        if len(scrapes) > 2:
            self._intervals[card] = median(later - earlier for earlier, later in pairwise(scrapes))

    def _is_sparse(self, card: CardKey, count: float, seconds: float) -> bool:
        """Whether a card was scraped too seldom, by more than an update of its agent takes."""
        interval = self._intervals.get(card, self._usual_interval)
        return seconds - count * interval > longest_pause(interval)

    def _update_alive(self, summary: _WindowSummary, nodes: Collection[str]) -> None:
        self._alive = {card: own for card, own in self._alive.items() if card.node not in nodes}
        self._alive |= {card: own for card, own in summary.device_counters.items() if card.node in nodes}


def _between(start: float, end: float, scrapes: Scrapes) -> Scrapes:
    return {
        card: {min(at, end): values for at, values in times.items() if start + EDGE_SECONDS < at <= end + EDGE_SECONDS}
        for card, times in scrapes.items()
    }


def _of_containers(family: CounterFamily) -> bool:
    return family.scope is CounterScope.CONTAINER


def _restarts_by_itself(family: CounterFamily) -> bool:
    """What is unattributed restarts with the books of its card, and a range with what it is the range of."""
    return family.scope is not CounterScope.UNATTRIBUTED and family.most is None


def _by_card(points: Iterable[Point]) -> Iterator[tuple[CardKey, Point]]:
    return ((card, point) for point in points if (card := card_of(point.labels)))


def _device_counters(alive: Iterable[CardKey], values: CardValues) -> dict[CardKey, set[CounterKey]]:
    """Return the counters that each card has whatever runs on it."""
    return {
        card: {counter for counter in values.get(card, ()) if counter.scope is not CounterScope.CONTAINER}
        for card in alive
    }
