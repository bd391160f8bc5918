"""The catalog in writing says everything the rows say."""

import json
import re

from podgpu.catalog import CATALOG, GROUPS, TOPICS, families
from podgpu.catalog.reference import WIDTH, rows_as_json, rows_as_text, way
from podgpu.catalog.row import Metric, Scope

FAMILIES = {row.family for row in CATALOG}


def row(family: str, *labels: str) -> Metric:
    (found,) = [row for row in families()[family] if row.label_values == labels]
    return found


def test_the_text_fits_a_terminal() -> None:
    lines = rows_as_text().splitlines()
    assert max(map(len, lines)) <= WIDTH
    assert {line.split()[0] for line in lines if line.startswith("podgpu_")} == FAMILIES
    assert [line for line in lines if line.isupper() and line[0] != " "] == [title.upper() for title, _ in TOPICS]


def test_every_group_can_be_read_off() -> None:
    assert set(re.findall(r"\?collect\[\]=([a-z-]+)", rows_as_text())) == set(GROUPS)


def test_the_json_has_one_object_per_row() -> None:
    listed = json.loads(rows_as_json())
    assert [(row["name"], tuple(row["labels"].values())) for row in listed] == [
        (row.family, row.label_values) for row in CATALOG
    ]


def test_the_json_has_everything_about_a_row() -> None:
    (told,) = [row for row in json.loads(rows_as_json()) if row["name"] == "podgpu_gpu_memory_used_bytes"]
    assert told["mig_name"] == "podgpu_mig_memory_used_bytes"
    assert (told["type"], told["unit"], told["cadence"]) == ("gauge", "bytes", "every cycle")
    assert (told["topic"], told["group"]) == ("Memory", "memory")
    assert told["read"] == "nvmlDeviceGetMemoryInfo(33554472).used"
    assert told["elsewhere"] == {
        "dcgm": "DCGM_FI_DEV_FB_USED",
        "dcgm-4.9": "DCGM_FI_DEV_FB_USED_BYTES",
        "dcgm-1.x": "dcgm_fb_used",
        "opentelemetry": "hw.gpu.memory.usage",
    }


def test_each_way_of_reading_is_named() -> None:
    assert way(row("podgpu_gpu_up")) == "podgpu"
    assert way(row("podgpu_gpu_power_instant_watts")) == "field 186"
    assert way(row("podgpu_gpu_sm_active_ratio")) == "GPM 2"
    assert way(row("podgpu_gpu_clock_event", "software_power_cap")) == (
        "nvmlDeviceGetCurrentClocksEventReasons() & 0x4"
    )
    assert way(row("podgpu_gpu_encoder_utilization_ratio")) == "nvmlDeviceGetEncoderUtilization()[0]"


def test_units_are_read_off_the_name() -> None:
    assert row("podgpu_gpu_energy_joules_total").base_unit == "joules"
    assert row("podgpu_gpu_pcie_transmit_bytes_per_second").base_unit == "bytes_per_second"
    assert row("podgpu_gpu_performance_state").base_unit == ""


def test_only_rows_with_twins_name_them() -> None:
    named = {row["name"] for row in json.loads(rows_as_json()) if row["mig_name"]}
    assert named == {Scope.GPU.prefix + row.name for row in CATALOG if row.mig}


def test_the_listing_says_what_the_page_has_by_default() -> None:
    text = rows_as_text()
    engines = text[text.index("podgpu_gpu_engine_active_ratio") :]
    assert "served: detail" in engines[: engines.index("\n\n")]
    throttle = text[text.index("podgpu_gpu_throttle_seconds_total") :]
    assert "served: default: power, thermal" in throttle[: throttle.index("\n\n")]
    rows = {(row["name"], *row["labels"].values()): row["served"] for row in json.loads(rows_as_json())}
    assert rows["podgpu_gpu_up",] == "default"
    assert rows["podgpu_gpu_throttle_seconds_total", "sync_boost"] == "detail"
    assert rows["podgpu_process_memory_used_bytes",] == "level=process"
