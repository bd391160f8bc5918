"""Every native name has one name in OpenTelemetry, and leads back to the native one."""

import pytest

from podgpu.catalog import families
from podgpu.catalog.row import Kind, Metric
from podgpu.views.otlp import UNITS, attributes, own_name, unit

ROWS = [rows[0] for rows in families().values()]
WORDS = {symbol: word for word, symbol in UNITS.items()}


def as_prometheus(row: Metric) -> str:
    """Write the name that a collector makes for Prometheus: with unit and type, each once."""
    name, word = own_name(row).replace(".", "_"), WORDS.get(unit(row), "")
    if word and not name.endswith(f"_{word}"):
        name = f"{name}_{word}"
    return f"{name}_total" if row.kind is Kind.COUNTER else name


def test_no_two_families_share_a_name() -> None:
    assert len({own_name(row) for row in ROWS}) == len(ROWS)


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.family)
def test_a_collector_makes_the_native_name_again(row: Metric) -> None:
    assert as_prometheus(row) == row.family


def test_every_base_unit_has_a_symbol() -> None:
    assert {row.base_unit for row in ROWS} - {""} <= UNITS.keys()


def test_rows_under_one_standard_name_agree_on_unit_and_instrument() -> None:
    found: dict[str, set[tuple[object, ...]]] = {}
    for rows in families().values():
        for row in rows:
            if row.otel:
                facts = (row.kind, row.otel.up_down, row.otel.unit or unit(row))
                found.setdefault(row.otel.name, set()).add(facts)
    assert [name for name, facts in found.items() if len(facts) > 1] == []


def test_what_is_empty_is_left_out() -> None:
    assert attributes({"gpu": "0", "mig": "", "pod": "p"}) == {"hw.name": "GPU 0", "k8s.pod.name": "p"}
