"""The rows keep the promises that views and sources rely on."""

import re
from itertools import groupby

import pytest

from podgpu.catalog import CATALOG, TOPICS, device_rows, families, instance_rows
from podgpu.catalog.row import BASE_UNITS, Call, Kind, Metric, Scope, Worth

# Words for a quantity that is not in a base unit, or for a share that is not between 0 and 1.
OUTLANDISH = re.compile(r"percent|(milli|micro|nano|kilo|mega|giga)\w+|[mk]i?b|[mun]s|[mk]hz|minutes|hours")
# Words that repeat the type.
TYPES = {"gauge", "counter", "count"}
# What every series of a device carries besides.
IDENTITY = {"node", "gpu", "uuid", "mig", "profile"}

FAMILIES = pytest.mark.parametrize("family", families().values(), ids=families())


@FAMILIES
def test_rows_of_a_family_agree(family: tuple[Metric, ...]) -> None:
    first = family[0]
    for row in family:
        assert (row.kind, row.help, row.label_names, row.worth, row.cadence, row.mig) == (
            first.kind,
            first.help,
            first.label_names,
            first.worth,
            first.cadence,
            first.mig,
        )


@FAMILIES
def test_rows_of_a_family_differ_in_their_labels(family: tuple[Metric, ...]) -> None:
    assert len({row.label_values for row in family}) == len(family)


@FAMILIES
def test_names_follow_prometheus(family: tuple[Metric, ...]) -> None:
    row = family[0]
    assert re.fullmatch(r"podgpu_[a-z0-9]+(_[a-z0-9]+)*", row.family)
    assert row.family.endswith("_total") == (row.kind is Kind.COUNTER)
    assert row.family.endswith("_info") == (row.kind is Kind.INFO)
    words = row.family.split("_")
    assert not any(OUTLANDISH.fullmatch(word) for word in words)
    assert not TYPES.intersection(words)


@FAMILIES
def test_a_value_in_a_unit_says_so_in_its_name(family: tuple[Metric, ...]) -> None:
    row = family[0]
    if row.read is not None and row.read.unit.symbol:
        assert row.name.removesuffix("_total").endswith(BASE_UNITS)


@FAMILIES
def test_labels_are_fit_to_be_labels(family: tuple[Metric, ...]) -> None:
    for row in family:
        assert all(re.fullmatch(r"[a-z][a-z0-9_]*", name) for name in row.label_names)
        assert all(re.fullmatch(r"[a-z0-9_]+", value) for value in row.label_values)
        assert len(set(row.label_names)) == len(row.label_names)
        assert not IDENTITY.intersection(row.label_names)


@FAMILIES
def test_help_is_one_sentence_or_more(family: tuple[Metric, ...]) -> None:
    assert re.fullmatch(r"[A-Z0-9][^\n]*\.", family[0].help)


def test_a_family_is_in_one_piece_on_the_page() -> None:
    runs = [family for family, _ in groupby(row.family for row in CATALOG)]
    assert len(runs) == len(set(runs))


def test_the_catalog_is_its_topics_in_order() -> None:
    assert tuple(row for _, rows in TOPICS for row in rows) == CATALOG


def test_instances_have_families_of_their_own() -> None:
    twins = {row.family for row in instance_rows()}
    assert {"podgpu_mig_memory_used_bytes", "podgpu_mig_sm_active_ratio"} <= twins
    assert twins <= set(families())
    assert "podgpu_mig_power_watts" not in families()
    assert "podgpu_mig_nvlink_transmit_bytes_per_second" not in families()


def test_every_family_is_filed_under_its_own_name() -> None:
    assert all(row.family == name for name, rows in families().items() for row in rows)


def test_device_rows_are_those_of_gpus() -> None:
    assert {row.scope for row in device_rows()} == {Scope.GPU}
    assert len(device_rows()) == sum(row.scope is Scope.GPU for row in CATALOG)


def test_the_agents_own_rows_are_never_cut() -> None:
    assert {row.worth for row in CATALOG if row.scope is Scope.AGENT} == {Worth.VITAL}


def test_large_families_are_cut_first() -> None:
    many = {name for name, rows in families().items() if len(rows) > 4 and rows[0].scope is Scope.GPU}
    assert many
    assert {families()[name][0].worth for name in many} == {Worth.DETAIL}


def test_rows_of_one_call_share_one_cadence() -> None:
    """Otherwise some of its rows would be read more often than others."""
    cadences: dict[tuple[str, tuple[int, ...]], set[str]] = {}
    for row in CATALOG:
        if isinstance(row.read, Call):
            cadences.setdefault((row.read.function, row.read.args), set()).add(row.cadence.value)
    assert all(len(found) == 1 for found in cadences.values())


@pytest.mark.parametrize(
    "name",
    [
        "up",
        "info",
        "utilization_ratio",
        "memory_total_bytes",
        "memory_used_bytes",
        "memory_free_bytes",
        "memory_reserved_bytes",
        "memory_utilization_ratio",
        "power_watts",
        "power_limit_watts",
        "energy_joules_total",
        "temperature_celsius",
        "clock_hertz",
        "encoder_utilization_ratio",
        "decoder_utilization_ratio",
        "pcie_link_generation",
        "pcie_link_width",
        "pcie_replays_total",
        "pcie_transmit_bytes_total",
        "pcie_receive_bytes_total",
        "throttle_seconds_total",
        "clock_event",
        "ecc_errors_total",
        "remapped_rows",
        "xid_errors_total",
        "xid_last_timestamp_seconds",
        "sm_active_ratio",
        "sm_occupancy_ratio",
        "tensor_active_ratio",
        "dram_active_ratio",
        "pipe_active_ratio",
    ],
)
def test_names_that_are_promised_exist(name: str) -> None:
    assert f"podgpu_gpu_{name}" in families()
