"""Makes a statement of a period: who had how much, what nobody had, and what it costs."""

import re
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence

from msgspec import Struct, field

from podgpu.cluster.report.counters import (
    CardGrowth,
    CardKey,
    CounterKey,
    CounterScope,
    CounterTotals,
    Measure,
)
from podgpu.cluster.report.history import CounterHistory, HistoryPart, PodFacts, StoreQueries
from podgpu.model import Prices, Statement, StatementLine, total_of

# Columns of each grouping, and the labels of podgpu_pod_info that it needs. Any other word is a label of pods.
_KNOWN: dict[str, tuple[tuple[str, ...], tuple[str, ...]]] = {
    "namespace": (("namespace",), ()),
    "workload": (("namespace", "workload_kind", "workload_name"), ("workload_kind", "workload_name")),
    "pod": (("namespace", "pod"), ()),
    "node": (("node",), ()),
    "model": (("model",), ()),
    "cluster": (("cluster",), ()),
}
CHOICES = tuple(_KNOWN)
_NOT_IN_A_LABEL = re.compile("[^a-zA-Z0-9_]")
MICRO = 1_000_000


class Grouping(Struct, frozen=True):
    """`by` is one of CHOICES, or the key of a pod label. With a namespace, only what is in it counts."""

    by: str
    namespace: str | None = None

    @property
    def columns(self) -> tuple[str, ...]:
        return _KNOWN[self.by][0] if self.by in _KNOWN else (self.label,)

    @property
    def facts(self) -> tuple[str, ...]:
        return _KNOWN[self.by][1] if self.by in _KNOWN else (self.label,)

    @property
    def label(self) -> str:
        """The name that podgpu_pod_info gives to the pod label."""
        return f"label_{_NOT_IN_A_LABEL.sub('_', self.by)}"

    @property
    def is_filtered(self) -> bool:
        return self.namespace is not None

    def of(self, counter: CounterKey, model: str, pods: Sequence[dict[str, str]]) -> tuple[str, ...] | None:
        """Return the values of the columns; None for what is filtered out."""
        if self.namespace not in (None, counter.namespace):
            return None
        if self.by not in _KNOWN:
            return (_only(pods, self.label),)
        known = {
            "namespace": counter.namespace,
            "pod": counter.pod or counter.container,
            "node": counter.card.node,
            "model": model,
            "cluster": counter.card.cluster,
            "workload_kind": _only(pods, "workload_kind") or ("Pod" if counter.pod else ""),
            "workload_name": _only(pods, "workload_name") or counter.pod or counter.container,
        }
        return tuple(known[name] for name in self.columns)


class GroupTotals(Struct):
    """What belongs together. What nobody measured is not in `sums`; `held` is by the model of the GPU."""

    sums: dict[Measure, int] = field(default_factory=dict)
    held: dict[str, int] = field(default_factory=lambda: defaultdict(int))

    def add(self, measure: Measure, amount: int, model: str) -> None:
        self.sums[measure] = self.sums.get(measure, 0) + amount
        if measure is Measure.HELD:
            self.held[model] += amount


class _Books(Struct):
    """All that was counted of one card."""

    by_scope: dict[tuple[CounterScope, Measure], int] = field(default_factory=lambda: defaultdict(int))
    seconds: float = 0.0


async def statement(
    store: StoreQueries,
    period: tuple[float, float],
    grouping: Grouping,
    *,
    prices: Prices | None = None,
    progress: Callable[[float], None] = lambda _: None,
) -> Statement:
    """`progress` is called with the part of the period that has been read, from 0 to 1."""
    start, end = period
    history = CounterHistory(store, grouping.facts)
    totals = CounterTotals(start)
    totals.begin(await history.before(start))
    builder = StatementBuilder(grouping)
    async for part in history.read(start, end):
        builder.add(part, totals.grow(part.samples))
        progress((part.until - start) / (end - start))
    return builder.statement(start, end, prices)


class StatementBuilder:
    """Sums that grow part by part."""

    def __init__(self, grouping: Grouping) -> None:
        self._grouping = grouping
        self._groups: dict[tuple[str, ...], GroupTotals] = {}
        self._cards: dict[CardKey, _Books] = {}
        self._models: dict[CardKey, str] = {}
        self._pods: PodFacts = {}
        self._unattributed = GroupTotals()

    def add(self, part: HistoryPart, grown: Mapping[CardKey, CardGrowth]) -> None:
        self._models.update(part.models)
        self._pods.update(part.pods)
        for card, growth in grown.items():
            books = self._cards.setdefault(card, _Books())
            books.seconds += growth.seconds
            for counter, amount in growth.counters.items():
                books.by_scope[counter.scope, counter.measure] += amount
                self._post(counter, amount)

    def _post(self, counter: CounterKey, amount: int) -> None:
        model = self._models.get(counter.card, "")
        if counter.scope is CounterScope.UNATTRIBUTED:
            self._unattributed.add(counter.measure, amount, model)
        elif counter.scope is CounterScope.CONTAINER:
            group = self._grouping.of(counter, model, self._pods.get(counter.pod_key, ()))
            if group is not None:
                self._groups.setdefault(group, GroupTotals()).add(counter.measure, amount, model)

    def statement(self, start: float, end: float, prices: Prices | None) -> Statement:
        names = self._grouping.columns
        lines = [
            _line("group", totals, prices, dict(zip(names, group, strict=True)))
            for group, totals in self._groups.items()
            if any(totals.sums.values())
        ]
        lines.sort(key=_rank)
        if not self._grouping.is_filtered:
            lines += self._others(prices)
        return Statement(
            start=start,
            end=end,
            by=names,
            lines=tuple(lines),
            total=total_of(lines),
            currency=prices.currency if prices else "",
            gpus=len(self._cards),
            unpriced=self._unpriced(prices),
        )

    def _others(self, prices: Prices | None) -> list[StatementLine]:
        """What the groups lack to what the GPUs themselves counted."""
        unbooked, free = GroupTotals(), GroupTotals()
        for card, books in self._cards.items():
            model = self._models.get(card, "")
            for measure, amount in _missing(books):
                unbooked.add(measure, amount, model)
            held = books.by_scope.get((CounterScope.CONTAINER, Measure.HELD), 0)
            free.add(Measure.HELD, max(round(books.seconds * MICRO) - held, 0), model)
        named = {"unattributed": self._unattributed, "unbooked": unbooked, "free": free}
        return [_line(kind, totals, prices) for kind, totals in named.items() if any(totals.sums.values())]

    def _unpriced(self, prices: Prices | None) -> tuple[str, ...]:
        if prices is None:
            return ()
        models = {self._models.get(card, "") for card in self._cards}
        return tuple(sorted(model or "unknown" for model in models if prices.of(model) is None))


def _missing(books: _Books) -> list[tuple[Measure, int]]:
    """What a card counted and the books of its containers and of the rest do not have."""
    missing = []
    for measure in (Measure.BUSY, Measure.ENERGY):
        whole = [books.by_scope.get((scope, measure)) for scope in (CounterScope.BOOKED, CounterScope.METER)]
        known = [amount for amount in whole if amount is not None]
        parts = (CounterScope.CONTAINER, CounterScope.UNATTRIBUTED)
        if known:
            had = sum(books.by_scope.get((scope, measure), 0) for scope in parts)
            missing.append((measure, max(known) - had))
    return missing


def _line(
    kind: str, totals: GroupTotals, prices: Prices | None, group: dict[str, str] | None = None
) -> StatementLine:
    return StatementLine(
        kind=kind,
        group=group or {},
        held_us=totals.sums.get(Measure.HELD),
        busy_us=totals.sums.get(Measure.BUSY),
        energy_mj=totals.sums.get(Measure.ENERGY),
        cost=_cost(totals, prices) if prices and Measure.HELD in totals.sums else None,
    )


def _cost(totals: GroupTotals, prices: Prices) -> float | None:
    """Nothing is said about a cost of which a part is not known."""
    costs = [(prices.of(model), held / (3600 * MICRO)) for model, held in totals.held.items() if held]
    known = [price * hours for price, hours in costs if price is not None]
    return sum(known) if len(known) == len(costs) else None


def _rank(line: StatementLine) -> tuple[int, Sequence[str]]:
    return -(line.held_us or 0), tuple(line.group.values())


def _only(pods: Sequence[dict[str, str]], name: str) -> str:
    """Pods of one name may differ within a short time: then all values are shown, and nobody gets another's part."""
    return ", ".join(sorted({found for pod in pods if (found := pod.get(name, ""))}))
