"""FOCUS as Parquet, read back by pyarrow: `make test-parquet`."""

import csv
import json
import re
from datetime import UTC, datetime
from decimal import Decimal
from io import BytesIO
from pathlib import Path

import pyarrow as pa
import pytest
from pyarrow import parquet

from podgpu.cli.main import main
from tests.e2e.past import LENGTH, Past
from tests.e2e.test_bill import PAGE
from tests.e2e.test_focus import COLUMNS, PRICES, past, pytestmark, store

__all__ = ("past", "pytestmark", "store")  # fixtures, and what they need

TYPES = {
    "Decimal": pa.decimal128(38, 12),
    "Date/Time": pa.timestamp("ms", tz="UTC"),
    "String": pa.string(),
    "JSON": pa.string(),  # key-value columns MUST contain a serialized JSON string
}


@pytest.fixture
def line(store: str, past: Past, tmp_path: Path) -> list[str]:
    prices = tmp_path / "prices.json"
    prices.write_text(json.dumps(PRICES))
    times = [datetime.fromtimestamp(at, UTC).isoformat() for at in (past.start, past.start + LENGTH)]
    return [
        "report",
        f"--prometheus.url={store}",
        f"--price={prices}",
        f"--from={times[0]}",
        f"--to={times[1]}",
    ]


def test_the_command_of_the_page_writes_a_whole_file(
    line: list[str], capfdbinary: pytest.CaptureFixture[bytes]
) -> None:
    [words] = re.findall(r"^\$ podgpu report .*(-o focus-parquet) >\S+$", PAGE, re.MULTILINE)
    assert main([*line, *words.split()]) == 0
    assert parquet.read_table(BytesIO(capfdbinary.readouterr().out)).num_rows > 1


def as_text(value: object) -> str:
    if isinstance(value, datetime):
        return value.strftime("%Y-%m-%dT%H:%M:%SZ")
    return "" if value is None else str(value).lower() if isinstance(value, bool) else str(value)


@pytest.mark.parametrize("more", [(), ("--charge-period=hour",), ("--basis=energy", "--by=pod")])
def test_parquet_has_the_rows_of_csv_with_the_types_of_the_specification(
    line: list[str], more: tuple[str, ...], capfdbinary: pytest.CaptureFixture[bytes]
) -> None:
    assert main([*line, *more, "-o", "focus"]) == 0
    expected = list(csv.DictReader(capfdbinary.readouterr().out.decode().splitlines()))
    assert main([*line, *more, "-o", "focus-parquet"]) == 0
    table = parquet.read_table(BytesIO(capfdbinary.readouterr().out))
    assert table.column_names == list(expected[0])
    for name in COLUMNS.keys() & set(table.column_names):
        assert table.schema.field(name).type == TYPES[COLUMNS[name]["type"]], name
    for row, text in zip(table.to_pylist(), expected, strict=True):
        for name, value in row.items():
            if isinstance(value, Decimal):
                assert value == Decimal(text[name]), name
            else:
                assert as_text(value) == text[name], name


def test_a_folder_of_files_has_parquet_too(line: list[str], tmp_path: Path) -> None:
    folder = tmp_path / "bills"
    folder.mkdir()
    assert main([*line, f"--write-to={folder}"]) == 0
    [file] = folder.glob("*.focus.parquet")
    assert sum(parquet.read_table(file)["BilledCost"].to_pylist()) == 48 * Decimal("3.50") + 20
