"""Makes a statement of a period: who had how much, what nobody had, what was not seen, and what it costs."""

import hashlib
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from fractions import Fraction
from itertools import pairwise

import msgspec
from msgspec import Struct, field

from podgpu.cluster.report import evidence
from podgpu.cluster.report.charges import Basis, CardCounts, Group, RowKey, charges, row
from podgpu.cluster.report.counters import (
    BOUND_FAMILIES,
    FAMILIES,
    CardKey,
    CounterKey,
    CounterScope,
    Measure,
)
from podgpu.cluster.report.coverage import CardCoverage, GpuEvidence, Stretch, coverage
from podgpu.cluster.report.grouping import Grouping
from podgpu.cluster.report.growth import CardGrowth, CardPresence, CounterTotals, microseconds
from podgpu.cluster.report.history import CounterHistory, HistoryPart
from podgpu.cluster.report.money import apportioned, digits_of, divided, rounded
from podgpu.cluster.report.queries import CounterStore, PodFacts
from podgpu.model import ChargePeriod, Coverage, GpuCoverage, Prices, Statement, StatementLine, total_of
from podgpu.model.statement import KINDS, MICROSECONDS_PER_HOUR, MILLIJOULES_PER_KWH

HOUR, DAY = 3600.0, 86_400.0
SHARED = ("idle", "unattributed", "unbooked", "free")  # what --share distributes


class StatementTerms(Struct, frozen=True):
    """By what a statement is made: the basis, the way of sharing, prices, and the length of its charge periods."""

    basis: Basis = Basis.HELD
    share: str = "none"  # or `held`, or `even`
    prices: Prices | None = None
    period_seconds: float | None = None  # HOUR or DAY, if the lines of each such period are wanted too


async def statement(
    store: CounterStore,
    period: Stretch,
    grouping: Grouping,
    terms: StatementTerms,
    now: float,
    progress: Callable[[float], None] = lambda _: None,
) -> Statement:
    """`progress` is called with the part of the period that has been read, from 0 to 1."""
    start, end = period
    families = (*FAMILIES, *BOUND_FAMILIES) if terms.basis is Basis.USED else FAMILIES
    history = CounterHistory(store, grouping.facts, families)
    totals = CounterTotals(start)
    totals.begin(await history.before(start))
    builder = StatementBuilder(period, grouping, terms)
    for slot in builder.slots:
        async for part in history.read(*slot):
            builder.add(part, totals.grow(part.samples, part.intervals))
            totals.forget(part.ended)
            progress((part.until - start) / (end - start))
        builder.close_slot(slot)
    found = await evidence.gather(store, period, now, totals.presence)
    return builder.statement(totals.presence, found)


class _RowTotals(Struct):
    """The sums of a row, and its cost: None if it pays for nothing. `is_unpriced` if a part of it has no price."""

    sums: dict[Measure, int] = field(default_factory=dict)
    cost: Fraction | None = None
    is_unpriced: bool = False
    cards: set[CardKey] = field(default_factory=set)

    def count(self, measure: Measure, amount: int) -> None:
        self.sums[measure] = self.sums.get(measure, 0) + amount

    def charge(self, amount: int, price: Fraction | None) -> None:
        if price is None:
            self.is_unpriced |= amount != 0
        else:
            self.cost = (self.cost or Fraction(0)) + amount * price


Rows = dict[RowKey, _RowTotals]


class StatementBuilder:
    """Sums that grow slot by slot: a slot ends where an hour or a day does, or where prices change."""

    def __init__(self, period: Stretch, grouping: Grouping, terms: StatementTerms) -> None:
        self._period = period
        self._grouping = grouping
        self._terms = terms
        self.slots = tuple(_slots(period, terms))
        self._models: dict[CardKey, str] = {}
        self._pods: PodFacts = {}
        self._open: dict[CardKey, CardCounts] = defaultdict(CardCounts)
        self._rows: Rows = defaultdict(_RowTotals)
        self._by_period: dict[float, Rows] = defaultdict(lambda: defaultdict(_RowTotals))
        self._seen_us: dict[CardKey, int] = defaultdict(int)
        self._inputs: dict[CounterKey, int] = defaultdict(int)

    def add(self, part: HistoryPart, grown: Mapping[CardKey, CardGrowth]) -> None:
        self._models.update(part.models)
        self._pods.update(part.pods)
        for card, growth in grown.items():
            counts = self._open[card]
            counts.seen_us += growth.seen_us
            for counter, amount in growth.counters.items():
                self._inputs[counter] += amount
                counts.add(counter, self._group(counter), amount)

    def _group(self, counter: CounterKey) -> Group | None:
        if counter.scope is not CounterScope.CONTAINER:
            return None
        model = self._models.get(counter.card, "")
        return self._grouping.of(counter, model, self._pods.get(counter.pod_key, ()))

    def close_slot(self, slot: Stretch) -> None:
        """Divide what was counted in the slot among the rows."""
        for card, counts in self._open.items():
            self._seen_us[card] += counts.seen_us
            price = self._price(self._models.get(card, ""), slot[0])
            paid = charges(counts, self._terms.basis)
            for rows in self._rows_of(slot[0]):
                _count(rows, card, counts)
                for key, amount in paid.items():
                    rows[key].charge(amount, price)
        self._open.clear()

    def _rows_of(self, at: float) -> list[Rows]:
        length = self._terms.period_seconds
        return [self._rows, self._by_period[at // length * length]] if length else [self._rows]

    def _price(self, model: str, at: float) -> Fraction | None:
        """Return the price of a microsecond, or of a millijoule, in smallest units of the currency."""
        prices = self._terms.prices
        if prices is None:
            return None
        now = prices.at(at)
        is_energy = self._terms.basis is Basis.ENERGY
        price = now.kwh if is_energy else now.of(model)
        if price is None:
            return None
        unit = MILLIJOULES_PER_KWH if is_energy else MICROSECONDS_PER_HOUR
        smallest: int = 10 ** digits_of(prices.currency)
        return Fraction(str(price)) * smallest / unit

    def statement(self, presence: Mapping[CardKey, CardPresence], found: GpuEvidence) -> Statement:
        covered = coverage(self._period, presence, found)
        models = {card: self._models.get(card) or found.unscraped.get(card, "") for card in covered}
        for card, own in covered.items():
            self._add_unseen(card, models[card], own)
        prices = self._terms.prices
        lines = self._lines(self._rows, covered)
        total = total_of(lines)
        return Statement(
            start=self._period[0],
            end=self._period[1],
            by=self._grouping.columns,
            lines=lines,
            total=total,
            basis=self._terms.basis,
            share=self._terms.share,
            currency=prices.currency if prices else "",
            digits=digits_of(prices.currency) if prices else 2,
            prices=self._prices(models.values()),
            gpus=len(covered),
            coverage=_sum(own.total for own in covered.values()),
            by_gpu=tuple(
                GpuCoverage(**card._asdict(), model=models[card], coverage=covered[card].total)
                for card in sorted(covered)
            ),
            periods=self._periods(lines),
            unpriced=self._unpriced(models.values()),
            inputs_sha256=self._hash(covered),
        )

    def _add_unseen(self, card: CardKey, model: str, own: CardCoverage) -> None:
        """Add what was not seen, and the moments at the edges of the period that no scrape lies in."""
        start, end = self._period
        edge_us = own.seen_us - self._seen_us[card]
        for begins, ends in own.unseen:
            for slot in self.slots:
                within = max(begins, slot[0]), min(ends, slot[1])
                if within[0] < within[1]:
                    amount = microseconds(within[1]) - microseconds(within[0])
                    self._add_time(card, model, "unseen", slot[0], amount)
        if edge_us > 0:
            self._add_time(card, model, "free", max(start, end - 0.001), edge_us)

    def _add_time(self, card: CardKey, model: str, kind: str, at: float, amount: int) -> None:
        paid = 0 if self._terms.basis is Basis.ENERGY else amount
        for rows in self._rows_of(at):
            rows[row(kind)].count(Measure.HELD, amount)
            rows[row(kind)].cards.add(card)
            rows[row(kind)].charge(paid, self._price(model, at))

    def _lines(self, rows: Rows, covered: Mapping[CardKey, CardCoverage]) -> tuple[StatementLine, ...]:
        kinds = ("group",) if self._grouping.is_filtered else KINDS
        shown = [
            (key, totals)
            for key, totals in rows.items()
            if key[0] in kinds and (any(totals.sums.values()) or totals.cost)
        ]
        shown.sort(key=lambda each: _rank(*each))
        costs, shares = self._costs(shown)
        return tuple(
            self._line(key, totals, cost, share, _sum(covered[card].total for card in totals.cards).ratio)
            for (key, totals), cost, share in zip(shown, costs, shares, strict=True)
        )

    def _line(
        self,
        key: RowKey,
        totals: _RowTotals,
        cost: int | None,
        share: int | None = None,
        seen: float | None = None,
    ) -> StatementLine:
        kind, group = key
        is_group = kind == "group"
        return StatementLine(
            kind=kind,
            group=dict(zip(self._grouping.columns, group, strict=True)) if is_group else {},
            held_us=totals.sums.get(Measure.HELD),
            busy_us=totals.sums.get(Measure.BUSY),
            busy_least_us=totals.sums.get(Measure.BUSY_LEAST),
            busy_most_us=totals.sums.get(Measure.BUSY_MOST),
            energy_mj=totals.sums.get(Measure.ENERGY),
            cost_units=cost,
            shared_units=share,
            coverage=seen if is_group else None,
        )

    def _costs(self, shown: Sequence[tuple[RowKey, _RowTotals]]) -> tuple[list[int | None], list[int | None]]:
        """Return the cost of each row and how much of that is shared, in integers that add up."""
        nothing: list[int | None] = [None] * len(shown)
        if self._terms.prices is None:
            return nothing, nothing
        if any(totals.is_unpriced for _, totals in shown):
            priced = [None if totals.is_unpriced else totals.cost for _, totals in shown]
            return [None if cost is None else rounded(cost) for cost in priced], nothing
        paid = [totals.cost for _, totals in shown]
        costs = apportioned([cost or Fraction(0) for cost in paid])
        groups = [at for at, ((kind, _), _) in enumerate(shown) if kind == "group"]
        if self._terms.share == "none" or not groups:
            return [None if cost is None else units for cost, units in zip(paid, costs, strict=True)], nothing
        given_up = [at for at, ((kind, _), _) in enumerate(shown) if kind in SHARED]
        weights = [
            shown[at][1].sums.get(Measure.HELD, 0) if self._terms.share == "held" else 1 for at in groups
        ]
        shares: list[int | None] = [None] * len(shown)
        for at, part in zip(groups, divided(sum(costs[at] for at in given_up), weights), strict=True):
            shares[at] = part
            costs[at] += part
        for at in given_up:
            costs[at] = 0
        return list(costs), shares

    def _periods(self, lines: Sequence[StatementLine]) -> tuple[ChargePeriod, ...]:
        """Divide each line of the statement among the charge periods, so that those add up to it."""
        length, (start, end) = self._terms.period_seconds, self._period
        if not length:
            return ()
        begins = sorted(self._by_period)
        by_period: dict[float, list[StatementLine]] = {at: [] for at in begins}
        for line in lines:
            key = line.kind, tuple(line.group.values())
            parts = [self._by_period[at].get(key, _RowTotals()) for at in begins]
            costs = _divided_cost(line.cost_units, parts)
            for at, totals, cost in zip(begins, parts, costs, strict=True):
                by_period[at].append(self._line(key, totals, cost))
        return tuple(
            ChargePeriod(start=max(at, start), end=min(at + length, end), lines=tuple(by_period[at]))
            for at in begins
        )

    def _prices(self, models: Iterable[str]) -> dict[str, float]:
        prices = self._terms.prices
        if prices is None:
            return {}
        start, end = self._period
        found: dict[str, float | None] = {}
        for at in (start, *(at for at in prices.changed_at if start < at < end)):
            since = f" from {_iso(at)}" if at > start else ""
            now = prices.at(at)
            if self._terms.basis is Basis.ENERGY:
                found[f"kwh{since}"] = now.kwh
            else:
                found |= {f"{model or 'unknown'}{since}": now.of(model) for model in sorted(set(models))}
        return {model: price for model, price in found.items() if price is not None}

    def _unpriced(self, models: Iterable[str]) -> tuple[str, ...]:
        prices = self._terms.prices
        if prices is None or self._terms.basis is Basis.ENERGY:
            return ()
        valid = [prices.at(slot[0]) for slot in self.slots]
        missing = {model or "unknown" for model in models if any(now.of(model) is None for now in valid)}
        return tuple(sorted(missing))

    def _hash(self, covered: Mapping[CardKey, CardCoverage]) -> str:
        sums = [[*counter.card, *counter[1:], amount] for counter, amount in self._inputs.items() if amount]
        seen = [
            [*card, own.total.seen_us, own.total.unseen_us, own.total.absent_us]
            for card, own in covered.items()
        ]
        prices = msgspec.to_builtins(self._terms.prices)
        whole = [
            *self._period,
            self._grouping.by,
            self._grouping.namespace,
            prices,
            sorted(sums),
            sorted(seen),
        ]
        return hashlib.sha256(msgspec.json.encode(whole, order="deterministic")).hexdigest()


def _slots(period: Stretch, terms: StatementTerms) -> Iterator[Stretch]:
    start, end = period
    length = HOUR if terms.basis is Basis.GREATER else terms.period_seconds
    edges = {start, end, *(terms.prices.changed_at if terms.prices else ())}
    if length:
        edges.update(at * length for at in range(int(start // length), int(end // length) + 1))
    return pairwise(sorted(at for at in edges if start <= at <= end))


def _count(rows: Rows, card: CardKey, counts: CardCounts) -> None:
    """Add the sums of a card to its rows, whatever is paid for."""
    for (_, group), own in counts.containers.items():
        if group is not None:
            totals = rows["group", group]
            totals.cards.add(card)
            for measure, amount in own.items():
                totals.count(measure, amount)
    for (scope, measure), amount in counts.others.items():
        if scope is CounterScope.UNATTRIBUTED:
            rows[row("unattributed")].count(measure, amount)
    for measure in (Measure.BUSY, Measure.ENERGY):
        missing = counts.unbooked(measure)
        if missing is not None:
            rows[row("unbooked")].count(measure, missing)
    free = max(counts.seen_us - counts.booked(Measure.HELD), 0)
    rows[row("free")].count(Measure.HELD, free)


def _divided_cost(units: int | None, parts: Sequence[_RowTotals]) -> Sequence[int | None]:
    """Divide the cost of a line by what each part cost, or held where it costs only what others left."""
    if units is None:
        return [None] * len(parts)
    costs = [part.cost or Fraction(0) for part in parts]
    if not (whole := sum(costs, Fraction(0))):
        return divided(units, [part.sums.get(Measure.HELD, 0) for part in parts])
    return apportioned([units * cost / whole for cost in costs], units)


def _iso(at: float) -> str:
    return datetime.fromtimestamp(at, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def _sum(parts: Iterable[Coverage]) -> Coverage:
    seen = unseen = absent = 0
    for part in parts:
        seen, unseen, absent = seen + part.seen_us, unseen + part.unseen_us, absent + part.absent_us
    return Coverage(seen_us=seen, unseen_us=unseen, absent_us=absent)


def _rank(key: RowKey, totals: _RowTotals) -> tuple[int, int, Group]:
    kind, group = key
    return KINDS.index(kind), -totals.sums.get(Measure.HELD, 0), group
