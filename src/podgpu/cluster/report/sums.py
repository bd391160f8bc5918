"""Sums of a period by row, as they grow slot by slot: what each row had, what it pays for, and what that costs."""

from bisect import bisect_left
from collections import defaultdict
from collections.abc import Mapping
from fractions import Fraction
from functools import cache
from itertools import pairwise

from msgspec import Struct, field

from podgpu.cluster.report.charges import OTHER, Basis, CardCounts, RowKey, charges, row
from podgpu.cluster.report.counter_reader import CounterBatch
from podgpu.cluster.report.counters import CardKey, CounterKey, CounterScope, Measure
from podgpu.cluster.report.coverage import CardCoverage, Stretch
from podgpu.cluster.report.grouping import Grouping
from podgpu.cluster.report.increases import CardIncreases, microseconds
from podgpu.cluster.report.money import digits_of
from podgpu.cluster.report.queries import PodFacts
from podgpu.cluster.report.ranges import busy_ranges
from podgpu.model import BusyRange, Prices
from podgpu.model.statement import MICROSECONDS_PER_HOUR, MILLIJOULES_PER_KWH

HOUR, DAY = 3600.0, 86_400.0


class StatementTerms(Struct, frozen=True):
    """By what a statement is made: the basis, the way of sharing, prices, and the length of its charge periods."""

    basis: Basis = Basis.HELD
    share: str = "none"  # or `held`, or `even`
    prices: Prices | None = None
    period_seconds: float | None = None  # HOUR or DAY, if the lines of each such period are wanted too


class UnitPrice(Struct, frozen=True, eq=False):
    """What a microsecond of a model costs at some time, or a millijoule, in smallest units of the currency."""

    value: Fraction | None  # None if it has no price


class RowTotals(Struct):
    """The sums of a row, and what it pays for by price: microseconds, or millijoules.

    `busy_range` is that of its busy time in a bill by use.
    """

    sums: dict[Measure, int] = field(default_factory=lambda: defaultdict(int))
    busy_range: BusyRange | None = None
    paid: dict[UnitPrice, int] = field(default_factory=lambda: defaultdict(int))

    @property
    def charged(self) -> int | None:
        """None if it pays for nothing."""
        return sum(self.paid.values()) if self.paid else None

    @property
    def cost(self) -> Fraction | None:
        """None if nothing that it pays for has a price."""
        parts = [amount * price.value for price, amount in self.paid.items() if price.value is not None]
        return sum(parts, Fraction(0)) if parts else None

    @property
    def is_unpriced(self) -> bool:
        """Whether a part of it has no price."""
        return any(amount and price.value is None for price, amount in self.paid.items())


Rows = dict[RowKey, RowTotals]


class PeriodSums:
    """A slot ends where an hour or a day does, or where prices change; a stretch only where prices change.

    What a card's time costs is divided by stretches, or hour by hour if the greater counts. So a bill is the same with
    charge periods and without. `by_period` has the rows of each charge period, if there are any, `cards` the GPUs of
    each row, and `inputs` all that was counted.
    """

    def __init__(self, period: Stretch, grouping: Grouping, terms: StatementTerms) -> None:
        self.period = period
        self.grouping = grouping
        self.terms = terms
        self.step = HOUR if terms.basis is Basis.GREATER else terms.period_seconds
        self.stretches = tuple(pairwise(_edges(period, terms)))
        self.slots = tuple(pairwise(_edges(period, terms, self.step)))
        self.models: dict[CardKey, str] = {}
        self.rows: Rows = defaultdict(RowTotals)
        self.by_period: dict[float, Rows] = defaultdict(lambda: defaultdict(RowTotals))
        self.cards: dict[RowKey, set[CardKey]] = defaultdict(set)
        self.inputs: dict[CounterKey, int] = defaultdict(int)
        self._pods: PodFacts = {}
        self._price = cache(lambda model, at: UnitPrice(self._price_of(model, at)))
        self._ends = [slot[1] for slot in self.slots]
        self._open: dict[CardKey, tuple[Stretch, CardCounts]] = {}
        self._first: dict[CardKey, tuple[Stretch, CardCounts]] = {}  # the first slot of each
        self._by_stretch: dict[CardKey, list[tuple[Stretch, CardCounts]]] = {}
        self._seen_us: dict[CardKey, int] = defaultdict(int)

    def add(self, part: CounterBatch, increases: Mapping[CardKey, CardIncreases]) -> None:
        """The part lies within a slot. Time only goes forward, for each card by itself."""
        self.models.update(part.models)
        self._pods.update(part.pods)
        slot = self.slots[bisect_left(self._ends, part.until)]
        for card, card_increases in increases.items():
            counts = self._counts(card, slot)
            counts.seen_us += card_increases.seen_us
            for counter, amount in card_increases.counters.items():
                self.inputs[counter] += amount
                is_container = counter.scope is CounterScope.CONTAINER
                counts.add(counter, self._payer(counter) if is_container else None, amount)

    def _counts(self, card: CardKey, slot: Stretch) -> CardCounts:
        if card in self._open:
            known, counts = self._open[card]
            if known == slot:
                return counts
            self._close_slot(card, known, counts)
        self._open[card] = slot, (counts := CardCounts())
        return counts

    def _payer(self, counter: CounterKey) -> RowKey:
        pods = self._pods.get(counter.pod_key, ()) if self._pods else ()
        group = self.grouping.of(counter, self.models.get(counter.card, ""), pods)
        return "group" if self.grouping.has(counter) else OTHER, group

    def close(self, seen_us: Mapping[CardKey, int]) -> None:
        """There is nothing more to add. `seen_us` is for how long each card was seen in all.

        What was counted since the last scrape before the period is of the period, and what is counted after the last
        scrape in it is not. So the time after that scrape stands for the time before the period, in the first slot.
        """
        for card, (slot, counts) in self._open.items():
            self._close_slot(card, slot, counts)
        for card, (slot, counts) in self._first.items():
            edge_us = max(seen_us.get(card, 0) - self._seen_us[card], 0)
            self._seen_us[card] += edge_us
            counts.seen_us += edge_us
            if card in self._by_stretch:
                self._by_stretch[card][0][1].seen_us += edge_us
            self._divide_slot(card, slot, counts)
        for card, stretches in self._by_stretch.items():
            for stretch, counts in stretches:
                self._divide(self.rows, card, stretch, counts)

    def _close_slot(self, card: CardKey, slot: Stretch, counts: CardCounts) -> None:
        self._seen_us[card] += counts.seen_us
        if card in self._first:
            self._divide_slot(card, slot, counts)
        else:
            self._first[card] = slot, counts
        if self.terms.basis is not Basis.GREATER:
            stretch = next(each for each in self.stretches if slot[0] < each[1])
            stretches = self._by_stretch.setdefault(card, [])
            if not stretches or stretches[-1][0] != stretch:
                stretches.append((stretch, CardCounts()))
            stretches[-1][1].merge(counts)

    def _divide_slot(self, card: CardKey, slot: Stretch, counts: CardCounts) -> None:
        if self.terms.period_seconds:
            self._divide(self._period_of(slot[0]), card, slot, counts)
        if self.terms.basis is Basis.GREATER:
            self._divide(self.rows, card, slot, counts)

    def _divide(self, rows: Rows, card: CardKey, time: Stretch, counts: CardCounts) -> None:
        """Divide what was counted of a card among the rows."""
        price = self._price(self.models.get(card, ""), time[0])
        self._count(rows, card, counts)
        for key, amount in charges(counts, self.terms.basis).items():
            rows[key].paid[price] += amount

    def add_unseen(self, card: CardKey, model: str, own: CardCoverage) -> None:
        """Add what was not seen, and all of a period that no scrape of a card lies in."""
        start, end = self.period
        edge_us = own.total.seen_us - self._seen_us[card]
        for begins, ends in own.unseen:
            for slot in self.slots:
                within = max(begins, slot[0]), min(ends, slot[1])
                if within[0] < within[1]:
                    amount = microseconds(within[1]) - microseconds(within[0])
                    self._add_time(card, model, "unseen", slot[0], amount)
        if edge_us > 0:
            self._add_time(card, model, "free", max(start, end - 0.001), edge_us)

    def _add_time(self, card: CardKey, model: str, kind: str, at: float, amount: int) -> None:
        paid = 0 if self.terms.basis is Basis.ENERGY else amount
        key = row(kind)
        for rows in (self.rows, self._period_of(at)) if self.terms.period_seconds else (self.rows,):
            rows[key].sums[Measure.HELD] += amount
            rows[key].paid[self._price(model, at)] += paid

    def _period_of(self, at: float) -> Rows:
        length = self.terms.period_seconds or 1
        return self.by_period[at // length * length]

    def _price_of(self, model: str, at: float) -> Fraction | None:
        prices = self.terms.prices
        if prices is None:
            return None
        now = prices.at(at)
        is_energy = self.terms.basis is Basis.ENERGY
        price = now.kwh if is_energy else now.of(model)
        if price is None:
            return None
        unit = MILLIJOULES_PER_KWH if is_energy else MICROSECONDS_PER_HOUR
        smallest: int = 10 ** digits_of(prices.currency)
        return Fraction(str(price)) * smallest / unit

    def _count(self, rows: Rows, card: CardKey, counts: CardCounts) -> None:
        """Add the sums of a card to its rows, whatever is paid for."""
        for (_, payer), own in counts.containers.items():
            self.cards[payer].add(card)
            sums = rows[payer].sums
            for measure, amount in own.items():
                sums[measure] += amount
        for (scope, measure), amount in counts.others.items():
            if scope is CounterScope.UNATTRIBUTED:
                rows[row("unattributed")].sums[measure] += amount
        for measure in (Measure.BUSY, Measure.ENERGY):
            missing = counts.unbooked(measure)
            if missing is not None:
                rows[row("unbooked")].sums[measure] += missing
        if self.terms.basis is Basis.USED:
            for payer, more in busy_ranges(counts).items():
                rows[payer].busy_range = more.added_to(rows[payer].busy_range)
        rows[row("free")].sums[Measure.HELD] += max(counts.seen_us - counts.booked(Measure.HELD), 0)


def _edges(period: Stretch, terms: StatementTerms, step: float | None = None) -> list[float]:
    """Return where prices change, and the multiples of the step."""
    start, end = period
    edges = {start, end, *(terms.prices.changed_at if terms.prices else ())}
    if step:
        edges.update(at * step for at in range(int(start // step), int(end // step) + 1))
    return sorted(at for at in edges if start <= at <= end)
