"""How the values of FOCUS are written as CSV."""

import csv
from dataclasses import dataclass

import pytest

from podgpu.cli._focus import focus_csv
from podgpu.model import ChargePeriod, Statement, StatementLine
from podgpu.model.statement import MILLIJOULES_PER_KWH


@dataclass(frozen=True)
class Written:
    line: StatementLine

    @property
    def row(self) -> dict[str, str]:
        periods = (ChargePeriod(start=0.0, end=86_400.0, lines=(self.line,)),)
        statement = Statement(
            start=0.0, end=86_400.0, by=("namespace",), basis="energy", currency="EUR", periods=periods
        )
        [row] = csv.DictReader(focus_csv(statement).splitlines())
        return row


def test_a_number_below_zero_stays_a_number() -> None:
    """As (not booked) may be, by the millijoules that a restart of an agent takes away."""
    less = -MILLIJOULES_PER_KWH
    row = Written(StatementLine(kind="unbooked", energy_mj=less, charged=less, cost_units=-30)).row
    numbers = [row[name] for name in ("BilledCost", "ListUnitPrice", "PricingQuantity", "x_EnergyKwh")]
    assert numbers == ["-0.30", "0.3", "-1", "-1"]


@pytest.mark.parametrize("name", ["=cmd()", "+1", "-1", "@sum"])
def test_a_name_is_no_formula(name: str) -> None:
    row = Written(StatementLine(kind="group", group={"namespace": name}, charged=1, cost_units=1)).row
    assert row["SubAccountId"] == row["ResourceId"] == f"'{name}"
    assert row["Tags"] == f'{{"namespace":"{name}"}}'
