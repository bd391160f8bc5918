"""The counters files that dcgm-exporter ships, as lists of fields: each is served, or named by `podgpu doctor`."""

from pathlib import Path

import pytest
from msgspec.structs import replace

from podgpu.catalog import device_rows
from podgpu.doctor import examine
from podgpu.model import Reading
from podgpu.views.dialects import dcgm, dcgm_4_9
from podgpu.views.dialects._dcgm.counters import unavailable
from tests.catalog.dcgm import DEFAULT_COUNTERS, LABELS, OPTIONAL_COUNTERS, RENAMED_IN_4_9
from tests.doctor.sound_node import HERE, SOUND
from tests.views.dialects.dcgm_node import EXCLUSIVE, NODE
from tests.views.dialects.test_dcgm import listed

Fields = dict[str, str]

DEFAULT: Fields = {name: kind for name, (kind, _) in (DEFAULT_COUNTERS | OPTIONAL_COUNTERS).items()}
# dcp-metrics-included.csv has the same without dcgm-exporter's own counts.
DCP: Fields = {name: kind for name, kind in DEFAULT.items() if not name.startswith("DCGM_EXP_")}
# 1.x-compatibility-metrics.csv, with the lines that are commented out.
OLDEST: Fields = {
    "dcgm_sm_clock": "gauge",
    "dcgm_memory_clock": "gauge",
    "dcgm_memory_temp": "gauge",
    "dcgm_gpu_temp": "gauge",
    "dcgm_power_usage": "gauge",
    "dcgm_total_energy_consumption": "counter",
    "dcgm_fi_prof_pcie_tx_bytes": "counter",
    "dcgm_fi_prof_pcie_rx_bytes": "counter",
    "dcgm_pcie_replay_counter": "counter",
    "dcgm_gpu_utilization": "gauge",
    "dcgm_mem_copy_utilization": "gauge",
    "dcgm_enc_utilization": "gauge",
    "dcgm_dec_utilization": "gauge",
    "dcgm_xid_errors": "gauge",
    "dcgm_power_violation": "counter",
    "dcgm_thermal_violation": "counter",
    "dcgm_sync_boost_violation": "counter",
    "dcgm_board_limit_violation": "counter",
    "dcgm_low_util_violation": "counter",
    "dcgm_reliability_violation": "counter",
    "dcgm_fb_free": "gauge",
    "dcgm_fb_used": "gauge",
    "dcgm_ecc_sbe_volatile_total": "counter",
    "dcgm_ecc_dbe_volatile_total": "counter",
    "dcgm_ecc_sbe_aggregate_total": "counter",
    "dcgm_ecc_dbe_aggregate_total": "counter",
    "dcgm_retired_pages_sbe": "counter",
    "dcgm_retired_pages_dbe": "counter",
    "dcgm_retired_pages_pending": "counter",
    "dcgm_nvlink_flit_crc_error_count_total": "counter",
    "dcgm_nvlink_data_crc_error_count_total": "counter",
    "dcgm_nvlink_replay_error_count_total": "counter",
    "dcgm_nvlink_recovery_error_count_total": "counter",
    "dcgm_nvlink_bandwidth_total": "counter",
    "dcgm_fi_prof_gr_engine_active": "gauge",
    "dcgm_fi_prof_sm_active": "gauge",
    "dcgm_fi_prof_sm_occupancy": "gauge",
    "dcgm_fi_prof_pipe_tensor_active": "gauge",
    "dcgm_fi_prof_dram_active": "gauge",
}
_RENAMED_OPTIONAL = {
    "DCGM_FI_DEV_RETIRED_SBE": "DCGM_FI_DEV_PAGE_RETIRED_SBE_TOTAL",
    "DCGM_FI_DEV_RETIRED_DBE": "DCGM_FI_DEV_PAGE_RETIRED_DBE_TOTAL",
    "DCGM_FI_DEV_RETIRED_PENDING": "DCGM_FI_DEV_PAGE_RETIRED_PENDING",
    "DCGM_FI_DEV_BOARD_LIMIT_VIOLATION": "DCGM_FI_DEV_GPU_LIMIT_THROTTLE_SECONDS_TOTAL",
    **{
        f"DCGM_FI_DEV_{reason}_VIOLATION": f"DCGM_FI_DEV_GPU_{reason}_THROTTLE_SECONDS_TOTAL"
        for reason in ("POWER", "THERMAL", "SYNC_BOOST", "LOW_UTIL", "RELIABILITY")
    },
}
NEWEST: Fields = {(RENAMED_IN_4_9 | _RENAMED_OPTIONAL).get(name, name): kind for name, kind in DEFAULT.items()} | {
    "DCGM_FI_DEV_FB_CAPACITY_BYTES": "gauge",
    "DCGM_EXP_XID_ERRORS_TOTAL": "counter",
    "DCGM_EXP_CLOCK_EVENTS_TOTAL": "counter",
}
FILES: dict[str, tuple[Fields, set[str]]] = {
    "1.x": (OLDEST, set()),
    "4.8": (
        DEFAULT,
        {"DCGM_EXP_P2P_STATUS"},
    ),
    "4.8 dcp": (DCP, set()),
    "4.9": (
        NEWEST,
        {
            "DCGM_EXP_P2P_STATUS",
            "DCGM_EXP_CLOCK_EVENTS_TOTAL",
        },
    ),
}
# A card that reports everything.
FULL = replace(
    EXCLUSIVE,
    readings=tuple(
        Reading(row.name, 0.5, (*row.label_values, *("31" for _ in row.own_labels))) for row in device_rows()
    ),
)


@pytest.mark.parametrize("name", FILES)
def test_every_field_of_the_file_is_served_or_named(name: str, tmp_path: Path) -> None:
    fields, missing = FILES[name]
    labels = [f"{label}, label, fact" for label in sorted(LABELS)]
    lines = [*(f"{field}, {kind}, as listed" for field, kind in fields.items()), *labels]
    options = listed(tmp_path / "counters.csv", "\n".join(lines))
    for dialect in (dcgm, dcgm_4_9):
        served = {family.name: family.kind.value for family in dialect.families(replace(NODE, cards=(FULL,)), options)}
        assert served == {field: kind for field, kind in fields.items() if field not in missing}
    left = set(unavailable(options.collectors))
    assert left == missing
    missed = replace(HERE, missing_fields=tuple(sorted(left)))
    (finding,) = (verdict for verdict in examine(SOUND, missed) if verdict.id == "dialect.dcgm-fields")
    assert all(field in finding.detail for field in left)
