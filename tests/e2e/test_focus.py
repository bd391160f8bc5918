"""`podgpu report -o focus`, judged by the specification's own columns and by the FinOps Foundation's validator.

`focus-1.2.json` has the name, level, type and nullability of every column of FOCUS 1.2, from its specification. The
validator knows version 1.0, whose columns are among those.
"""

import csv
import json
import subprocess
import time
from collections.abc import Iterator
from datetime import datetime
from decimal import Decimal
from io import StringIO
from pathlib import Path

import pytest

from podgpu.cli.main import main
from tests.e2e import victoria
from tests.e2e.past import BETA_AT_MIDNIGHT, LENGTH, Past

VALIDATOR = Path(__file__).parents[2] / "build/focus-validator/bin/focus-validator"
COLUMNS = json.loads((Path(__file__).parent / "focus-1.2.json").read_text())
PRICES = {"currency": "EUR", "gpu_hour": {"NVIDIA H200": "3.50", "*": "1"}, "kwh": "0.30"}

pytestmark = pytest.mark.skipif(victoria.PROGRAM is None, reason="victoria-metrics is not installed")


@pytest.fixture(scope="module")
def past() -> Past:
    return Past.recent(BETA_AT_MIDNIGHT)


@pytest.fixture(scope="module")
def store(past: Past, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with victoria.victoria(tmp_path_factory.mktemp("store")) as url:
        victoria.keep(url, "\n".join([*past.lines, ""]))
        yield url


@pytest.fixture
def written(store: str, past: Past, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> str:
    return focus(store, past, tmp_path, capsys, "--charge-period=hour")


def focus(store: str, past: Past, tmp_path: Path, capsys: pytest.CaptureFixture[str], *more: str) -> str:
    prices = tmp_path / "prices.json"
    prices.write_text(json.dumps(PRICES))
    times = [time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(at)) for at in (past.start, past.start + LENGTH)]
    line = [f"--prometheus.url={store}", f"--from={times[0]}", f"--to={times[1]}", f"--price={prices}"]
    assert main(["report", *line, "-o", "focus", *more]) == 0
    return capsys.readouterr().out


def rows_of(page: str) -> list[dict[str, str]]:
    return list(csv.DictReader(StringIO(page)))


def test_every_mandatory_column_is_there_and_every_other_is_known(written: str) -> None:
    names = set(rows_of(written)[0])
    assert {name for name, rule in COLUMNS.items() if rule["level"] == "Mandatory"} <= names
    assert {name for name in names if not name.startswith("x_")} <= COLUMNS.keys()


def test_every_value_has_the_type_that_the_specification_wants(written: str) -> None:
    for row in rows_of(written):
        for name, rule in COLUMNS.items():
            value = row.get(name)
            if value is None:
                continue
            assert value or rule["nullable"], name
            if value and rule["type"] == "Decimal":
                assert Decimal(value).is_finite() and "E" not in value
            if value and rule["type"] == "Date/Time":
                assert value == datetime.fromisoformat(value).strftime("%Y-%m-%dT%H:%M:%SZ")
            if value and rule["type"] == "JSON":
                assert isinstance(json.loads(value), dict)
            if value and "values" in rule:
                assert value in rule["values"], name


def test_the_rows_add_up_to_the_price_of_the_gpus(written: str) -> None:
    rows = rows_of(written)
    assert sum(Decimal(row["BilledCost"]) for row in rows) == 48 * Decimal("3.50") + 20
    assert {row["ChargePeriodStart"] for row in rows if row["SubAccountId"] == "ml"} >= {
        row["ChargePeriodStart"] for row in rows if row["x_Row"] == "free"
    }


@pytest.mark.parametrize(
    ("basis", "unit", "own"),
    [
        ("held", "GPU-Hours", "x_HeldHours"),
        ("used", "GPU-Hours", "x_BusyHours"),
        ("greater", "GPU-Hours", ""),
        ("energy", "kWh", "x_EnergyKwh"),
    ],
)
@pytest.mark.parametrize("share", ["none", "held"])
def test_a_quantity_is_what_the_row_is_charged_by(
    store: str,
    past: Past,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    basis: str,
    unit: str,
    own: str,
    share: str,
) -> None:
    rows = rows_of(focus(store, past, tmp_path, capsys, f"--basis={basis}", f"--share={share}"))
    priced = [row for row in rows if row["PricingQuantity"]]
    for row in priced:
        assert row["PricingUnit"] == row["ConsumedUnit"] == unit
        paid = Decimal(row["PricingQuantity"]) * Decimal(row["ListUnitPrice"])
        assert abs(paid - Decimal(row["ListCost"])) < Decimal("0.000001")
        if own and row["x_Row"] == "group":
            assert abs(Decimal(row["ConsumedQuantity"]) - Decimal(row[own])) < Decimal("0.000001")
    assert {row["x_Row"] for row in priced} >= {"group"}
    for row in rows:
        assert row["PricingQuantity"] or not row["ListUnitPrice"]
        assert row["PricingQuantity"] or share == "held" or not Decimal(row["ListCost"])


def judged(page: str, folder: Path) -> str:
    file = folder / "focus.csv"
    file.write_text(page)
    command = [str(VALIDATOR), "--data-file", str(file), "--validate-version", "1.0"]
    [home] = VALIDATOR.parents[1].glob("lib/*/site-packages")  # it looks for its list of currencies there
    return subprocess.run(command, capture_output=True, text=True, check=True, cwd=home).stdout


def as_the_validator_calls_it(page: str) -> str:
    """Its rules of version 1.0 have the ids of a draft for four columns, and ask for a fifth that was renamed since."""
    for name in ("InvoiceIssuer", "Provider", "Publisher"):
        page = page.replace(f",{name}Name,", f",{name},", 1)
    head, *rows = page.replace(",ResourceId,", ",ResourceID,", 1).splitlines()
    return "\n".join([f"{head},ChargeType", *(f"{row},Usage" for row in rows), ""])


@pytest.mark.skipif(not VALIDATOR.exists(), reason="focus-validator is not installed: make focus-validator")
def test_the_validator_of_the_specification_finds_nothing(written: str, tmp_path: Path) -> None:
    page = as_the_validator_calls_it(written)
    assert "Validation succeeded" in judged(page, tmp_path), judged(page, tmp_path)[-3000:]
    assert "Validation failed" in judged(page.replace(",EUR,", ",ERO,"), tmp_path)
