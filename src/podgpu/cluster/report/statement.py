"""Makes a statement of a period: who had how much, what nobody had, what was not seen, and what it costs."""

import hashlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from fractions import Fraction

import msgspec
from msgspec.structs import replace

from podgpu.cluster.report import audit, evidence
from podgpu.cluster.report.charges import OTHER, Basis, Group, RowKey
from podgpu.cluster.report.counter_reader import CounterReader
from podgpu.cluster.report.counters import FAMILIES, RANGE_FAMILIES, CardKey, Measure
from podgpu.cluster.report.coverage import CardCoverage, GpuEvidence, Stretch, coverage
from podgpu.cluster.report.grouping import Grouping
from podgpu.cluster.report.increases import CardPresence, CounterTotals
from podgpu.cluster.report.money import apportioned, digits_of, divided, rounded
from podgpu.cluster.report.sums import PeriodSums, Rows, RowTotals, StatementTerms
from podgpu.cluster.store.client import Store
from podgpu.model import ChargePeriod, Coverage, GpuCoverage, Statement, StatementLine, total_of
from podgpu.model.statement import KINDS
from podgpu.option.times import utc_text

SHARED = ("idle", "unattributed", "unbooked", "free")  # what --share distributes


async def statement(
    store: Store,
    period: Stretch,
    grouping: Grouping,
    terms: StatementTerms,
    now: float,
    progress: Callable[[float], None] = lambda _: None,
) -> Statement:
    """`progress` is called with the part of the period that has been read, from 0 to 1."""
    start, end = period
    families = (*FAMILIES, *RANGE_FAMILIES) if terms.basis is Basis.USED else FAMILIES
    reader = CounterReader(store, grouping.facts, families)
    totals = CounterTotals(start)
    totals.begin(await reader.before(start))
    sums = PeriodSums(period, grouping, terms)
    for stretch in sums.stretches:
        async for part in reader.read(*stretch, sums.step):
            sums.add(part, totals.grow(part.scrapes, part.intervals, part.baselines))
            totals.forget(part.ended)
            progress((part.until - start) / (end - start))
    found = await evidence.gather(store, period, now, totals.presence)
    limits = await audit.power_limits(store, start, end)
    demo = await evidence.demo_nodes(store, start, end)
    targets = reader.targets
    disputes = [
        *audit.disputes_of_jobs(targets, store.jobs),
        *audit.disputes_of_targets(reader.disputed),
        *audit.disputes_of_places(totals.presence, demo),
        *audit.disputes_of_sums(sums.inputs, coverage(period, totals.presence, found), limits),
    ]
    return replace(
        statement_of(sums, totals.presence, found),
        demo=bool(demo),
        jobs={job: len(nodes) for job, nodes in targets.jobs.items()},
        ignored_jobs=await audit.ignored_jobs(store, targets, start, end),
        disputes=tuple(disputes),
        notices=await audit.unplaced(store, targets, start, end),
    )


def statement_of(sums: PeriodSums, presence: Mapping[CardKey, CardPresence], found: GpuEvidence) -> Statement:
    """Complete the sums by what was not seen, and make a statement of them. There is nothing more to add then."""
    return _StatementWriter(sums).statement(presence, found)


class _StatementWriter:
    """Makes a statement of sums that are complete."""

    def __init__(self, sums: PeriodSums) -> None:
        self._sums = sums
        self._period, self._grouping, self._terms = sums.period, sums.grouping, sums.terms

    def statement(self, presence: Mapping[CardKey, CardPresence], found: GpuEvidence) -> Statement:
        covered = coverage(self._period, presence, found)
        self._sums.close({card: own.total.seen_us for card, own in covered.items()})
        models = {card: self._sums.models.get(card) or found.unscraped.get(card, "") for card in covered}
        for card, own in covered.items():
            self._sums.add_unseen(card, models[card], own)
        prices = self._terms.prices
        lines = self._lines(self._sums.rows, covered)
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

    def _lines(self, rows: Rows, covered: Mapping[CardKey, CardCoverage]) -> tuple[StatementLine, ...]:
        """With a namespace, only its groups are shown. All others pay their part of what is shared, too."""
        is_shared = self._terms.share != "none"
        kinds = KINDS if self._grouping.namespace is None else ("group",)
        payers = [
            (key, totals)
            for key, totals in rows.items()
            if (is_shared or key[0] in kinds) and (any(totals.sums.values()) or totals.cost)
        ]
        payers.sort(key=lambda each: _rank(*each))
        costs, shares = self._costs(payers)
        return tuple(
            self._line(key, totals, cost, share, self._seen_ratio(key, covered))
            for (key, totals), cost, share in zip(payers, costs, shares, strict=True)
            if key[0] in kinds
        )

    def _seen_ratio(self, key: RowKey, covered: Mapping[CardKey, CardCoverage]) -> float | None:
        return _sum(covered[card].total for card in self._sums.cards.get(key, ())).ratio

    def _line(
        self,
        key: RowKey,
        totals: RowTotals,
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
            unsized_us=totals.sums.get(Measure.UNSIZED, 0),
            busy_us=totals.sums.get(Measure.BUSY),
            busy_range=totals.busy_range,
            energy_mj=totals.sums.get(Measure.ENERGY),
            charged=totals.charged,
            cost_units=cost,
            shared_units=share,
            coverage=seen if is_group else None,
        )

    def _costs(self, shown: Sequence[tuple[RowKey, RowTotals]]) -> tuple[list[int | None], list[int | None]]:
        """Return the cost of each row and how much of that is shared, in integers that add up."""
        nothing: list[int | None] = [None] * len(shown)
        if self._terms.prices is None:
            return nothing, nothing
        if any(totals.is_unpriced for _, totals in shown):
            priced = [None if totals.is_unpriced else totals.cost for _, totals in shown]
            return [None if cost is None else rounded(cost) for cost in priced], nothing
        paid = [totals.cost for _, totals in shown]
        costs = apportioned([cost or Fraction(0) for cost in paid])
        groups = [at for at, ((kind, _), _) in enumerate(shown) if kind in ("group", OTHER)]
        if self._terms.share == "none" or not groups:
            return [None if cost is None else units for cost, units in zip(paid, costs, strict=True)], nothing
        given_up = [at for at, ((kind, _), _) in enumerate(shown) if kind in SHARED]
        weights = [shown[at][1].sums.get(Measure.HELD, 0) if self._terms.share == "held" else 1 for at in groups]
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
        begins = sorted(self._sums.by_period)
        by_period: dict[float, list[StatementLine]] = {at: [] for at in begins}
        for line in lines:
            key = line.kind, tuple(line.group.values())
            parts = [self._sums.by_period[at].get(key, RowTotals()) for at in begins]
            costs = _divided_cost(line.cost_units, parts)
            for at, totals, cost in zip(begins, parts, costs, strict=True):
                by_period[at].append(self._line(key, totals, cost))
        return tuple(
            ChargePeriod(start=max(at, start), end=min(at + length, end), lines=tuple(by_period[at])) for at in begins
        )

    def _prices(self, models: Iterable[str]) -> dict[str, float]:
        prices = self._terms.prices
        if prices is None:
            return {}
        start, end = self._period
        found: dict[str, float | None] = {}
        for at in (start, *(at for at in prices.changed_at if start < at < end)):
            since = f" from {utc_text(at, 'seconds')}" if at > start else ""
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
        valid = [prices.at(slot[0]) for slot in self._sums.slots]
        missing = {model or "unknown" for model in models if any(now.of(model) is None for now in valid)}
        return tuple(sorted(missing))

    def _hash(self, covered: Mapping[CardKey, CardCoverage]) -> str:
        sums = [[*counter.card, *counter[1:], amount] for counter, amount in self._sums.inputs.items() if amount]
        seen = [[*card, own.total.seen_us, own.total.unseen_us, own.total.absent_us] for card, own in covered.items()]
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


def _divided_cost(units: int | None, parts: Sequence[RowTotals]) -> Sequence[int | None]:
    """Divide the cost of a line by what each part cost, or held where it costs only what others left."""
    if units is None:
        return [None] * len(parts)
    costs = [part.cost or Fraction(0) for part in parts]
    if not (whole := sum(costs, Fraction(0))):
        return divided(units, [part.sums.get(Measure.HELD, 0) for part in parts])
    return apportioned([units * cost / whole for cost in costs], units)


def _sum(parts: Iterable[Coverage]) -> Coverage:
    seen = unseen = absent = 0
    for part in parts:
        seen, unseen, absent = seen + part.seen_us, unseen + part.unseen_us, absent + part.absent_us
    return Coverage(seen_us=seen, unseen_us=unseen, absent_us=absent)


def _rank(key: RowKey, totals: RowTotals) -> tuple[int, int, Group]:
    kind, group = key
    return (*KINDS, OTHER).index(kind), -totals.sums.get(Measure.HELD, 0), group
