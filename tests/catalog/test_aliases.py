"""Every counter of dcgm-exporter and of its 1.x ancestor is a row's alias, or has a reason not to be."""

from collections import Counter

import pytest

from podgpu.catalog import CATALOG
from podgpu.catalog.row import Alias, Kind
from tests.catalog.dcgm import (
    DEFAULT_COUNTERS,
    DERIVED,
    LABELS,
    LEFT_OUT,
    OPTIONAL_COUNTERS,
    RENAMED_IN_4_9,
    VERSION_1,
)

ADDED_UP = {
    "DCGM_FI_DEV_NVLINK_BANDWIDTH_TOTAL",
    "DCGM_FI_DEV_NVLINK_THROUGHPUT_BYTES_PER_SECOND",
    "dcgm_nvlink_bandwidth_total",
    *(f"DCGM_FI_DEV_NVLINK_BANDWIDTH_L{link}" for link in range(18)),
}

DCGM = {row.dcgm.name: row.dcgm for row in CATALOG if row.dcgm}
DCGM_49 = {row.dcgm49.name: row.dcgm49 for row in CATALOG if row.dcgm49}
DCGM_1X = {row.dcgm1x.name: row.dcgm1x for row in CATALOG if row.dcgm1x}
COUNTERS = {**OPTIONAL_COUNTERS, **DEFAULT_COUNTERS}


@pytest.mark.parametrize("name", sorted(COUNTERS.keys() - LEFT_OUT.keys() - DERIVED))
def test_a_counter_of_dcgm_exporter_is_covered_to_the_letter(name: str) -> None:
    kind, help_text = COUNTERS[name]
    assert (DCGM[name].kind.value, DCGM[name].help) == (kind, help_text)


@pytest.mark.parametrize("name", sorted(LEFT_OUT))
def test_what_is_left_out_is_not_there_and_has_a_reason(name: str) -> None:
    assert name in COUNTERS
    assert name not in DCGM
    assert LEFT_OUT[name]


def test_a_label_is_no_metric() -> None:
    assert not LABELS.intersection(DCGM)


@pytest.mark.parametrize("name", sorted(VERSION_1))
def test_a_counter_of_1x_is_covered_to_the_letter(name: str) -> None:
    kind, help_text = VERSION_1[name]
    assert (DCGM_1X[name].kind.value, DCGM_1X[name].help) == (kind, help_text)


def test_there_are_no_1x_names_but_the_forty() -> None:
    assert DCGM_1X.keys() == VERSION_1.keys()
    assert len(VERSION_1) == 40


@pytest.mark.parametrize(("old", "new"), sorted(RENAMED_IN_4_9.items()))
def test_a_renamed_counter_is_known_by_both_names(old: str, new: str) -> None:
    pairs = {row.dcgm.name: row.dcgm49.name for row in CATALOG if row.dcgm and row.dcgm49}
    assert pairs[old] == new


@pytest.mark.parametrize("name", sorted(DCGM_49))
def test_a_name_of_4_9_tells_its_unit(name: str) -> None:
    told = {
        "_HERTZ": "Hz",
        "_BYTES": "B",
        "_JOULES_TOTAL": "J",
        "_WATTS": "W",
        "_CELSIUS": "°C",
        "_RATIO": "ratio",
    }
    # The old profiling name stayed, and means a rate.
    told |= {"PROF_PCIE_TX_BYTES": "B/s", "PROF_PCIE_RX_BYTES": "B/s", "_BYTES_PER_SECOND": "B/s"}
    suffix = max((suffix for suffix in told if name.endswith(suffix)), key=len, default=None)
    assert suffix is None or DCGM_49[name].unit.symbol == told[suffix]


@pytest.mark.parametrize("field", ["dcgm", "dcgm49", "dcgm1x"])
def test_an_alias_stands_for_one_row_unless_it_is_a_sum(field: str) -> None:
    names = Counter(alias.name for row in CATALOG if (alias := getattr(row, field)))
    assert {name for name, times in names.items() if times > 1} <= ADDED_UP


@pytest.mark.parametrize("field", ["dcgm", "dcgm49", "dcgm1x"])
def test_rows_that_are_added_up_agree_on_the_alias(field: str) -> None:
    aliases: dict[str, set[Alias]] = {}
    for row in CATALOG:
        if alias := getattr(row, field):
            aliases.setdefault(alias.name, set()).add(alias)
    assert all(len(found) == 1 for found in aliases.values())


@pytest.mark.parametrize(
    ("alias", "base", "told"),
    [
        (DCGM["DCGM_FI_DEV_SM_CLOCK"], 1_500e6, 1_500),
        (DCGM["DCGM_FI_DEV_GPU_UTIL"], 0.96, 96),
        (DCGM["DCGM_FI_DEV_FB_USED"], 1_848_049_664, 1762.4375),
        (DCGM["DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION"], 62_296.764, 62_296_764),
        (DCGM["DCGM_FI_DEV_POWER_VIOLATION"], 1.5, 1_500_000_000),
        (DCGM["DCGM_FI_PROF_SM_ACTIVE"], 0.893, 0.893),
        (DCGM_49["DCGM_FI_DEV_SM_CLOCK_HERTZ"], 1_500e6, 1_500e6),
        (DCGM_49["DCGM_FI_DEV_GPU_UTIL_RATIO"], 0.96, 0.96),
        (DCGM_49["DCGM_FI_DEV_GPU_ENERGY_JOULES_TOTAL"], 62_296.764, 62_296.764),
        (DCGM_1X["dcgm_power_usage"], 690.375, 690.375),
        (DCGM_1X["dcgm_pcie_tx_throughput"], 5_000, 5),
    ],
)
def test_an_alias_speaks_its_own_unit(alias: Alias, base: float, told: float) -> None:
    assert base / alias.unit.factor == pytest.approx(told)


def test_a_native_counter_never_hides_behind_a_gauge() -> None:
    hidden = [row.name for row in CATALOG if row.dcgm and row.kind is Kind.COUNTER and row.dcgm.kind is not row.kind]
    assert hidden == []


def test_no_two_rows_are_one_series_of_opentelemetry() -> None:
    """A row's own labels become attributes too, so rows that differ in these stay apart."""
    keys = Counter((row.otel.name, frozenset(row.otel.attributes), row.own_labels) for row in CATALOG if row.otel)
    assert keys and {key for key, times in keys.items() if times > 1} == set()


def test_rows_of_one_opentelemetry_name_are_of_one_kind_and_carry_the_same_attributes() -> None:
    shapes: dict[str, set[tuple[Kind, frozenset[str]]]] = {}
    for row in CATALOG:
        if row.otel:
            names = frozenset(name for name, _ in row.otel.attributes)
            shapes.setdefault(row.otel.name, set()).add((row.kind, names))
    assert {name for name, found in shapes.items() if len(found) > 1} == set()
