"""What a row of a bill pays for, and what that costs."""

from fractions import Fraction

from podgpu.cluster.report.sums import RowTotals, UnitPrice

CHEAP, DEAR, UNPRICED = UnitPrice(Fraction(1, 2)), UnitPrice(Fraction(3)), UnitPrice(None)


def test_each_part_costs_its_price() -> None:
    row = RowTotals(paid={CHEAP: 10, DEAR: 2})
    assert (row.charged, row.cost, row.is_unpriced) == (12, Fraction(11), False)


def test_what_has_no_price_costs_an_unknown_amount_and_not_nothing() -> None:
    row = RowTotals(paid={UNPRICED: 5})
    assert (row.charged, row.cost, row.is_unpriced) == (5, None, True)
    assert RowTotals(paid={UNPRICED: 5, CHEAP: 4}).cost == 2
    assert not RowTotals(paid={UNPRICED: 0, CHEAP: 4}).is_unpriced


def test_a_row_that_pays_for_nothing_has_no_charge_and_no_cost() -> None:
    row = RowTotals()
    assert (row.charged, row.cost, row.is_unpriced) == (None, None, False)
