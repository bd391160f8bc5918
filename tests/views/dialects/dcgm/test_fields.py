"""Fields of dcgm-exporter that a counters file can add, and those that podgpu works out itself."""

from math import nan
from pathlib import Path

import pytest
from msgspec.structs import replace

from podgpu.catalog.xids import XIDS
from podgpu.model import Reading, Snapshot
from podgpu.views.dialects import dcgm, dcgm_4_9
from tests.views.dialects.dcgm_node import EXCLUSIVE, GIB, NODE
from tests.views.dialects.test_dcgm import Row, listed, rows

MORE = (
    *EXCLUSIVE.readings,
    *(Reading("clock_event", float(reason == "software_power_cap"), (reason,)) for reason in (
        "idle", "software_power_cap", "hardware_thermal", "software_thermal", "hardware_power_brake",
    )),
    Reading("clock_events_recent", 7, ("software_power_cap",)),
    Reading("xid_errors_recent", 2, ("31",)),
    Reading("clock_hertz", 1_305e6, ("video",)),
    Reading("clock_max_hertz", 1_980e6, ("sm",)),
    Reading("clock_max_hertz", 3_201e6, ("memory",)),
    Reading("clock_application_hertz", 1_980e6, ("graphics",)),
    Reading("clock_application_hertz", 3_201e6, ("memory",)),
    Reading("fan_speed_ratio", 0.33),
    Reading("bar1_memory_total_bytes", 256 * GIB),
    Reading("bar1_memory_used_bytes", GIB),
    Reading("pcie_receive_bytes_per_second", 8_000),
    *(Reading("throttle_seconds_total", 2.5, (reason,)) for reason in (
        "thermal", "sync_boost", "board_limit", "low_utilization", "reliability", "app_clocks", "base_clocks",
    )),
    Reading("row_remap_pending", 1),
    Reading("recovery_action", 0),
)  # fmt: skip
CARD = replace(EXCLUSIVE, readings=MORE, gpu=replace(EXCLUSIVE.gpu, brand="Tesla", serial="165"))
ONE = replace(NODE, cards=(CARD,))


def found(path: Path, name: str, snapshot: Snapshot = ONE, kind: str = "gauge") -> list[Row]:
    options = listed(path / "counters.csv", f"{name}, {kind}, as listed")
    for dialect in (dcgm, dcgm_4_9):
        assert [family.name for family in dialect.families(snapshot, options)] == [name]
    return rows(name, 0, config=options, snapshot=snapshot)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("DCGM_FI_DEV_CLOCKS_EVENT_REASONS", 4),
        ("DCGM_FI_DEV_CLOCK_THROTTLE_REASONS", 4),
        ("DCGM_FI_PROF_NVLINK_TX_BYTES", 2.5e9),
        ("DCGM_FI_PROF_NVLINK_RX_BYTES", 1.5e9),
        ("DCGM_FI_DEV_NVLINK_THROUGHPUT_TOTAL", 4000),
        ("DCGM_FI_DEV_FB_USED_PERCENT", 0.213518),
        ("DCGM_FI_DEV_FB_USED_RATIO", 0.213518),
        ("DCGM_FI_DEV_PCIE_TX_THROUGHPUT", 4),
        ("DCGM_FI_DEV_PCIE_RX_THROUGHPUT", 8),
        ("DCGM_FI_DEV_MIG_MODE", 0),
        ("DCGM_FI_DEV_COUNT", 1),
        ("DCGM_FI_SYSTEM_GPU_QUANTITY", 1),
        ("DCGM_FI_DEV_APP_SM_CLOCK", 1980),
        ("DCGM_FI_DEV_APP_MEM_CLOCK", 3201),
        ("DCGM_FI_DEV_SM_APP_CLOCK_HERTZ", 1_980e6),
        ("DCGM_FI_DEV_SM_MAX_CLOCK_HERTZ", 1_980e6),
        ("DCGM_FI_DEV_MEMORY_MAX_CLOCK_HERTZ", 3_201e6),
        ("DCGM_FI_DEV_VIDEO_CLOCK_HERTZ", 1_305e6),
        ("DCGM_FI_DEV_FAN_SPEED_RATIO", 0.33),
        ("DCGM_FI_DEV_BAR1_CAPACITY_BYTES", 256 * GIB),
        ("DCGM_FI_DEV_BAR1_USED_BYTES", GIB),
        ("DCGM_FI_DEV_BAR1_FREE_BYTES", 255 * GIB),
        ("DCGM_FI_DEV_BAR1_FREE", 255 * 1024),
        ("DCGM_FI_DEV_GPU_POWER_THROTTLE_SECONDS_TOTAL", 1.5),
        ("DCGM_FI_DEV_GPU_THERMAL_THROTTLE_SECONDS_TOTAL", 2.5),
        ("DCGM_FI_DEV_GPU_SYNC_BOOST_THROTTLE_SECONDS_TOTAL", 2.5),
        ("DCGM_FI_DEV_GPU_LIMIT_THROTTLE_SECONDS_TOTAL", 2.5),
        ("DCGM_FI_DEV_GPU_LOW_UTIL_THROTTLE_SECONDS_TOTAL", 2.5),
        ("DCGM_FI_DEV_GPU_RELIABILITY_THROTTLE_SECONDS_TOTAL", 2.5),
        ("DCGM_FI_DEV_GPU_APP_THROTTLE_SECONDS_TOTAL", 2.5),
        ("DCGM_FI_DEV_GPU_BASE_THROTTLE_SECONDS_TOTAL", 2.5),
        ("DCGM_FI_DEV_TOTAL_BASE_CLOCKS_VIOLATION", 2.5e9),
        ("dcgm_fi_prof_pcie_tx_bytes", 4096),
    ],
)
def test_a_listed_field_has_its_value_in_the_unit_of_its_name(tmp_path: Path, name: str, value: float) -> None:
    ((labels, told),) = found(tmp_path, name)
    assert told == value
    assert labels["pod"] == "train-0"


def test_brand_and_serial_number_can_be_labels(tmp_path: Path) -> None:
    options = listed(
        tmp_path / "counters.csv",
        "DCGM_FI_DEV_GPU_TEMP, gauge, heat\nDCGM_FI_DEV_BRAND, label, b\nDCGM_FI_DEV_SERIAL, label, s\n",
    )
    ((labels, _),) = rows("DCGM_FI_DEV_GPU_TEMP", 0, config=options, snapshot=ONE)
    assert (labels["DCGM_FI_DEV_BRAND"], labels["DCGM_FI_DEV_SERIAL"]) == ("Tesla", "165")


def test_xids_are_counted_over_a_window(tmp_path: Path) -> None:
    name = "DCGM_EXP_XID_ERRORS_COUNT"
    ((labels, value),) = found(tmp_path, name)
    assert (labels["xid"], labels["window_size_in_ms"], value) == ("31", "300000", 2)
    quiet = replace(ONE, cards=(EXCLUSIVE,))
    ((labels, value),) = found(tmp_path, name, quiet)
    assert value == 0
    assert "xid" not in labels


def test_clock_events_are_counted_over_a_window(tmp_path: Path) -> None:
    ((labels, value),) = found(tmp_path, "DCGM_EXP_CLOCK_EVENTS_COUNT")
    assert (labels["clock_event"], labels["window_size_in_ms"], value) == ("power_cap", "300000", 7)


def test_health_is_judged_by_what_the_driver_reports(tmp_path: Path) -> None:
    told = {
        labels["health_watch"]: (value, labels["health_error_code"])
        for labels, value in found(tmp_path, "DCGM_EXP_GPU_HEALTH_STATUS")
    }
    assert told == {
        "MEM": (10, "DCGM_FR_PENDING_ROW_REMAP"),
        "THERMAL": (0, "DCGM_FR_OK"),
        "POWER": (0, "DCGM_FR_OK"),
        "ALL": (0, "DCGM_FR_OK"),
    }


def test_what_is_not_known_about_a_card_has_no_verdict(tmp_path: Path) -> None:
    mute = replace(ONE, cards=(replace(CARD, readings=(Reading("power_watts", 70.0),)),))
    options = listed(tmp_path / "counters.csv", "DCGM_EXP_GPU_HEALTH_STATUS, gauge, health")
    told = rows("DCGM_EXP_GPU_HEALTH_STATUS", 0, config=options, snapshot=mute)
    # Every XID of the card is heard, and none was.
    assert [labels["health_watch"] for labels, _ in told] == ["ALL"]


def test_a_value_that_is_no_number_has_no_verdict(tmp_path: Path) -> None:
    broken = replace(ONE.cards[0], readings=(Reading("row_remap_failed", nan), Reading("row_remap_pending", 0.0)))
    verdicts = {
        labels["health_watch"]: value
        for labels, value in found(tmp_path, "DCGM_EXP_GPU_HEALTH_STATUS", replace(ONE, cards=(broken,)))
    }
    assert verdicts["MEM"] == 0.0


def test_every_known_xid_has_words() -> None:
    assert XIDS.keys() >= set(range(173))
    assert 173 not in XIDS
    assert XIDS[79].meaning == "GPU has fallen off the bus"
