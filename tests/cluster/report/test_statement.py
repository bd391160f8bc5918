"""Statements of what was counted."""

import pytest

from podgpu.cluster.report.charges import Basis
from podgpu.cluster.report.counter_reader import CounterBatch
from podgpu.cluster.report.counters import CardKey, CounterKey, CounterScope, Measure
from podgpu.cluster.report.coverage import GpuEvidence
from podgpu.cluster.report.grouping import Grouping
from podgpu.cluster.report.increases import CardIncreases, CardPresence, CounterTotals
from podgpu.cluster.report.statement import statement_of
from podgpu.cluster.report.sums import PeriodSums, StatementTerms
from podgpu.model import PriceChange, Prices, Statement
from podgpu.views.statement import problems, report_table

CARD = CardKey("", "alpha", "GPU-1")
HOUR = 3600.0
PERIOD = (0.0, 2 * HOUR)
PRICES = Prices(
    currency="EUR",
    gpu_hour={"NVIDIA H200": 3.5},
    kwh=0.5,
    changes=(PriceChange(since=HOUR, gpu_hour={"NVIDIA H200": 7.0}, kwh=1.0),),
)


def counter(measure: Measure) -> CounterKey:
    return CounterKey(CARD, CounterScope.CONTAINER, measure, namespace="ml", pod="a")


def made(prices: Prices, basis: Basis = Basis.HELD) -> Statement:
    """A pod holds half of a GPU for two hours, and uses a kilowatt hour in each."""
    sums = PeriodSums(PERIOD, Grouping("namespace"), StatementTerms(basis, "none", prices))
    for slot in sums.slots:
        seconds = slot[1] - slot[0]
        amounts = {Measure.HELD: round(seconds * 5e5), Measure.ENERGY: round(seconds * 1e6)}
        increases = CardIncreases(
            {counter(measure): amount for measure, amount in amounts.items()}, round(seconds * 1e6)
        )
        sums.add(CounterBatch(slot[1], {}, {CARD: "NVIDIA H200"}, {}, {}), {CARD: increases})
    return statement_of(sums, {CARD: CardPresence(*PERIOD, 30.0)}, GpuEvidence())


def test_each_hour_costs_what_it_cost_then() -> None:
    found = made(PRICES)
    assert [line.cost_units for line in found.lines] == [175 + 350, 175 + 350]
    assert found.total.cost_units == 350 + 700
    assert found.prices == {"NVIDIA H200": 3.5, "NVIDIA H200 from 1970-01-01T01:00:00Z": 7.0}


def test_a_bill_of_energy_has_a_total_although_free_time_costs_nothing() -> None:
    found = made(PRICES, Basis.ENERGY)
    assert [(line.kind, line.cost_units) for line in found.lines if line.cost_units] == [("group", 50 + 100)]
    assert found.total.cost_units == 150


def test_a_bill_of_a_share_of_unknown_size_is_incomplete_and_claims_no_use_of_it() -> None:
    """A pod worked for an hour, and of the share that it held only six minutes are known."""
    sums = PeriodSums(PERIOD, Grouping("namespace"), StatementTerms(Basis.HELD, "none", PRICES))
    minutes = {Measure.HELD: 6, Measure.BUSY: 60, Measure.UNSIZED: 114}
    counted = {counter(measure): round(amount * 60e6) for measure, amount in minutes.items()}
    increases = CardIncreases(counted, round(2 * HOUR * 1e6))
    sums.add(CounterBatch(2 * HOUR, {}, {CARD: "NVIDIA H200"}, {}, {}), {CARD: increases})
    found = statement_of(sums, {CARD: CardPresence(*PERIOD, 30.0)}, GpuEvidence())
    assert found.coverage.unseen_us == 0
    assert not found.complete
    [problem] = problems(found)
    assert problem.startswith("the bill is incomplete: ml held shares of unknown size for 1 h 54 min, ")
    table = report_table(found, {}, has_total=True)
    use = next(column for column in table.columns if column.title == "USE")
    assert {use.text(row) for row in table.rows} == {"-"}
    assert [row["unknown_share_hours"] for row in table.rows if row["row"] == "group"] == [1.9]


@pytest.mark.parametrize("share", ["none", "held", "even"])
@pytest.mark.parametrize("basis", list(Basis))
def test_a_namespace_alone_pays_what_it_pays_in_the_bill_of_all(basis: Basis, share: str) -> None:
    """Three pods hold three eighths, a quarter and an eighth of a GPU. The rest is free."""

    def bill(namespace: str | None) -> Statement:
        sums = PeriodSums(PERIOD, Grouping("namespace", namespace), StatementTerms(basis, share, PRICES))
        for begin, end in sums.slots:
            amounts = {
                counter(measure)._replace(namespace=name): round((end - begin) * eighths * 125_000)
                for name, eighths in (("ml", 3), ("web", 2), ("lab", 1))
                for measure in (Measure.HELD, Measure.BUSY, Measure.ENERGY)
            }
            amounts[CounterKey(CARD, CounterScope.METER, Measure.ENERGY)] = round((end - begin) * 1e6)
            increases = CardIncreases(amounts, round((end - begin) * 1e6))
            sums.add(CounterBatch(end, {}, {CARD: "NVIDIA H200"}, {}, {}), {CARD: increases})
        return statement_of(sums, {CARD: CardPresence(*PERIOD, 30.0)}, GpuEvidence())

    [alone] = bill("ml").lines
    assert alone == next(line for line in bill(None).lines if line.group == {"namespace": "ml"})
    assert bool(alone.shared_units) == (share != "none")


@pytest.mark.parametrize("since", [HOUR, 5 * HOUR])
def test_a_model_that_loses_its_price_within_the_period_is_named(since: float) -> None:
    prices = Prices(
        currency="EUR",
        gpu_hour={"NVIDIA H200": 3.5},
        changes=(PriceChange(since=since, gpu_hour={"NVIDIA L40S": 1.0}),),
    )
    assert made(prices).unpriced == (("NVIDIA H200",) if since < PERIOD[1] else ())


@pytest.mark.parametrize("basis", list(Basis))
def test_a_bill_is_the_same_with_charge_periods_and_without(basis: Basis) -> None:
    """In the first hour more is held than the GPU was seen; in the second it is less."""

    def bill(length: float | None) -> Statement:
        prices = Prices(currency="JPY", gpu_hour={"*": 1000.0}, kwh=7.0)
        sums = PeriodSums(PERIOD, Grouping("namespace"), StatementTerms(basis, "none", prices, length))
        for hour, held in ((1, 1.5), (2, 0.25)):
            counted = {counter(measure): round(held * HOUR * 1e6) for measure in (Measure.HELD, Measure.ENERGY)}
            increases = CardIncreases(counted, round(HOUR * 1e6))
            sums.add(CounterBatch(hour * HOUR, {}, {}, {}, {}), {CARD: increases})
        return statement_of(sums, {CARD: CardPresence(*PERIOD, 30.0)}, GpuEvidence())

    plain, divided = bill(None), bill(HOUR)
    assert plain.lines == divided.lines
    for at, line in enumerate(divided.lines):
        parts = [period.lines[at].cost_units for period in divided.periods]
        assert sum(part or 0 for part in parts) == (line.cost_units or 0)


@pytest.mark.parametrize("basis", [Basis.HELD, Basis.GREATER])
@pytest.mark.parametrize("until_end", [0.0, 40.0, 287.0])
def test_hours_times_the_price_is_the_cost_whenever_the_gpu_was_scraped(basis: Basis, until_end: float) -> None:
    """A pod holds the GPU throughout. It is scraped each five minutes, so long before each full hour."""
    sums = PeriodSums(PERIOD, Grouping("namespace"), StatementTerms(basis, "none", PRICES, HOUR))
    held, totals = counter(Measure.HELD), CounterTotals(0.0)
    totals.begin({CARD: {held: 0}})
    for end in (HOUR, 2 * HOUR):
        times = [end - until_end - at * 300 for at in range(12)]
        scrapes = {CARD: {at: {held: round((at + until_end) * 1e6)} for at in times}}
        part = CounterBatch(end, scrapes, {CARD: "NVIDIA H200"}, {}, {})
        sums.add(part, totals.grow(part.scrapes, part.intervals, part.baselines))
    found = statement_of(sums, totals.presence, GpuEvidence())
    [line] = found.lines
    assert (line.held_us, line.cost_units, found.total.cost_units) == (2 * HOUR * 1e6, 350 + 700, 350 + 700)
    assert [[each.cost_units for each in period.lines] for period in found.periods] == [[350], [700]]
