"""What the rows ask of NVML exists in NVML's own bindings."""

import inspect
from collections import Counter

import pynvml
import pytest

from podgpu.catalog import CATALOG, device_rows, gpu, link
from podgpu.catalog.row import FLAG, PERCENT, PROFILED_PERCENT, Call, Field, Gpm, Metric, Way

FIELD_NAMES = {
    value: name for name, value in vars(pynvml).items() if name.startswith("NVML_FI_DEV_") and isinstance(value, int)
}
GPM_NAMES = {value: name for name, value in vars(pynvml).items() if name.startswith("NVML_GPM_METRIC_")}
REAL_GPM = {*range(1, 14), 20, 21, *range(30, 38), *range(40, 48), 50, 51, *range(60, 98)}


def rows_read_by(way: type[Way]) -> list[Metric]:
    return [row for row in CATALOG if isinstance(row.read, way)]


def described(row: Metric) -> str:
    return row.name + "".join(f"-{value}" for value in row.label_values)


@pytest.mark.parametrize("row", rows_read_by(Call), ids=described)
def test_a_call_exists_and_takes_these_arguments(row: Metric) -> None:
    assert isinstance(row.read, Call)
    function = getattr(pynvml, f"nvmlDeviceGet{row.read.function}")
    inspect.signature(inspect.unwrap(function)).bind(object(), *row.read.args)


@pytest.mark.parametrize(
    ("function", "structure"),
    [
        ("MemoryInfo", pynvml.c_nvmlMemory_v2_t),
        ("UtilizationRates", pynvml.c_nvmlUtilization_t),
        ("BAR1MemoryInfo", pynvml.c_nvmlBAR1Memory_t),
    ],
)
def test_what_is_picked_is_there(function: str, structure: type) -> None:
    rows = [row.read for row in rows_read_by(Call) if isinstance(row.read, Call) and row.read.function == function]
    assert rows
    assert {read.pick for read in rows} <= {name for name, _ in structure._fields_}  # type: ignore[attr-defined]


def test_every_attribute_picked_is_covered_by_the_test_above() -> None:
    reads = [row.read for row in rows_read_by(Call) if isinstance(row.read, Call)]
    assert {read.function for read in reads if isinstance(read.pick, str)} == {
        "MemoryInfo",
        "UtilizationRates",
        "BAR1MemoryInfo",
    }


@pytest.mark.parametrize("row", rows_read_by(Field), ids=described)
def test_a_field_exists(row: Metric) -> None:
    assert isinstance(row.read, Field)
    assert row.read.id in FIELD_NAMES


@pytest.mark.parametrize(
    ("name", "labels", "constant"),
    [
        ("power_instant_watts", (), "POWER_INSTANT"),
        ("power_limit_min_watts", (), "POWER_MIN_LIMIT"),
        ("power_limit_max_watts", (), "POWER_MAX_LIMIT"),
        ("power_limit_default_watts", (), "POWER_DEFAULT_LIMIT"),
        ("power_limit_requested_watts", (), "POWER_REQUESTED_LIMIT"),
        ("temperature_celsius", ("memory",), "MEMORY_TEMP"),
        ("temperature_margin_threshold_celsius", ("shutdown",), "TEMPERATURE_SHUTDOWN_TLIMIT"),
        ("temperature_margin_threshold_celsius", ("gpu_max",), "TEMPERATURE_GPU_MAX_TLIMIT"),
        ("pcie_replays_total", (), "PCIE_REPLAY_COUNTER"),
        ("pcie_errors_total", ("correctable",), "PCIE_COUNT_CORRECTABLE_ERRORS"),
        ("pcie_errors_total", ("fatal",), "PCIE_COUNT_FATAL_ERROR"),
        ("pcie_errors_total", ("lane",), "PCIE_COUNT_LANE_ERROR"),
        ("nvlink_transmit_bytes_total", (), "NVLINK_THROUGHPUT_DATA_TX"),
        ("nvlink_receive_bytes_total", (), "NVLINK_THROUGHPUT_DATA_RX"),
        ("nvlink_errors_total", ("crc_flit",), "NVLINK_CRC_FLIT_ERROR_COUNT_TOTAL"),
        ("nvlink_errors_total", ("crc_data",), "NVLINK_CRC_DATA_ERROR_COUNT_TOTAL"),
        ("nvlink_errors_total", ("replay",), "NVLINK_REPLAY_ERROR_COUNT_TOTAL"),
        ("nvlink_errors_total", ("recovery",), "NVLINK_RECOVERY_ERROR_COUNT_TOTAL"),
        ("nvlink_errors_total", ("ecc_data",), "NVLINK_ECC_DATA_ERROR_COUNT_TOTAL"),
        ("nvlink_errors_total", ("link_replay",), "NVLINK_ERROR_DL_REPLAY"),
        ("nvlink_errors_total", ("link_recovery",), "NVLINK_ERROR_DL_RECOVERY"),
        ("nvlink_errors_total", ("link_crc",), "NVLINK_ERROR_DL_CRC"),
        ("nvlink_errors_total", ("link_receive",), "NVLINK_COUNT_RCV_ERRORS"),
        ("nvlink_errors_total", ("link_recovery_failed",), "NVLINK_COUNT_LINK_RECOVERY_FAILED_EVENTS"),
        ("nvlink_errors_total", ("link_recovery_event",), "NVLINK_COUNT_LINK_RECOVERY_EVENTS"),
        ("ecc_errors_total", ("corrected", "volatile"), "ECC_SBE_VOL_TOTAL"),
        ("ecc_errors_total", ("uncorrected", "aggregate"), "ECC_DBE_AGG_TOTAL"),
        ("remapped_rows", ("corrected",), "REMAPPED_COR"),
        ("remapped_rows", ("uncorrected",), "REMAPPED_UNC"),
        ("row_remap_pending", (), "REMAPPED_PENDING"),
        ("row_remap_failed", (), "REMAPPED_FAILURE"),
        ("retired_pages", ("uncorrected",), "RETIRED_DBE"),
        ("throttle_seconds_total", ("low_utilization",), "PERF_POLICY_LOW_UTILIZATION"),
        ("throttle_seconds_total", ("app_clocks",), "PERF_POLICY_TOTAL_APP_CLOCKS"),
        ("throttle_seconds_total", ("hardware_thermal",), "CLOCKS_EVENT_REASON_HW_THERM_SLOWDOWN"),
        ("recovery_action", (), "GET_GPU_RECOVERY_ACTION"),
    ],
)
def test_a_field_is_the_one_it_claims_to_be(name: str, labels: tuple[str, ...], constant: str) -> None:
    (row,) = [row for row in device_rows() if (row.name, row.label_values) == (name, labels)]
    assert isinstance(row.read, Field)
    assert row.read.id == getattr(pynvml, f"NVML_FI_DEV_{constant}")


def test_profiling_asks_only_for_ids_known_to_be_real() -> None:
    """The driver answers 0 for ids that do not exist."""
    ways = [row.read for row in rows_read_by(Gpm) if isinstance(row.read, Gpm)]
    ids = [way.id for way in ways if not way.integral]
    assert set(ids) == REAL_GPM
    assert set(ids) <= set(GPM_NAMES)
    assert len(ids) == len(set(ids))
    assert {way.id for way in ways if way.integral} <= set(ids)


@pytest.mark.parametrize(
    ("labels", "constant"),
    [
        ("integer", "INTEGER_UTIL"),
        ("tensor_hmma", "HMMA_TENSOR_UTIL"),
        ("tensor_imma", "IMMA_TENSOR_UTIL"),
        ("tensor_dfma", "DFMA_TENSOR_UTIL"),
        ("tensor_dmma", "DMMA_TENSOR_UTIL"),
        ("fp64", "FP64_UTIL"),
        ("nvdec7", "NVDEC_7_UTIL"),
        ("nvjpg0", "NVJPG_0_UTIL"),
        ("nvofa1", "NVOFA_1_UTIL"),
    ],
)
def test_a_profiling_id_is_the_one_it_claims_to_be(labels: str, constant: str) -> None:
    (row,) = [row for row in rows_read_by(Gpm) if row.label_values == (labels,)]
    assert isinstance(row.read, Gpm)
    assert row.read.id == getattr(pynvml, f"NVML_GPM_METRIC_{constant}")


def test_nothing_is_read_twice() -> None:
    reads = Counter(row.read for row in CATALOG if row.read is not None)
    assert [read for read, times in reads.items() if times > 1] == []


def test_the_blocking_throughput_call_is_never_made() -> None:
    assert "PcieThroughput" not in {row.read.function for row in CATALOG if isinstance(row.read, Call)}


def test_constants_are_nvmls() -> None:
    assert pynvml.nvmlMemory_v2 == gpu.MEMORY_V2
    assert (gpu.GRAPHICS, gpu.SM, gpu.MEMORY, gpu.VIDEO) == (
        pynvml.NVML_CLOCK_GRAPHICS,
        pynvml.NVML_CLOCK_SM,
        pynvml.NVML_CLOCK_MEM,
        pynvml.NVML_CLOCK_VIDEO,
    )
    assert link.ALL_LINKS == 2**32 - 1


def test_clock_events_are_single_bits_of_nvmls_mask() -> None:
    bits = [row.read.bit for row in CATALOG if row.name == "clock_event" and isinstance(row.read, Call)]
    assert sum(bit for bit in bits if bit is not None) == pynvml.nvmlClocksEventReasonAll
    assert all(bit is not None and bit.bit_count() == 1 for bit in bits)


def test_a_busy_card_is_not_taken_for_a_lie() -> None:
    assert 100 * PERCENT.factor <= PERCENT.ceiling < 101 * PERCENT.factor
    assert 100.5 * PROFILED_PERCENT.factor <= PROFILED_PERCENT.ceiling
    assert FLAG.ceiling == 1


@pytest.mark.parametrize("row", [row for row in CATALOG if row.read is not None], ids=described)
def test_a_drivers_all_ones_pattern_is_above_the_ceiling(row: Metric) -> None:
    assert row.read is not None
    assert (2**64 - 1) * row.read.unit.factor > row.read.unit.ceiling
