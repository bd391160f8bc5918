"""A profile of NVIDIA's mock of NVML: what it says about each card, and where podgpu's page must have it.

Its format is that of the mock in NVIDIA/k8s-test-infra. A card is `device_defaults` with its row of `devices` over it.
"""

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import yaml

Tree = dict[str, Any]


class Compared(NamedTuple):
    """A value of the profile, by its dotted key, and the series that has it times `factor`."""

    key: str
    series: str  # without `podgpu_gpu_`
    labels: Mapping[str, str] = {}
    factor: float = 1.0


MILLI, MEGA, PERCENT = 1e-3, 1e6, 0.01
_REASONS = {
    "gpu_idle": "idle",
    "applications_clocks_setting": "app_clocks",
    "sw_power_cap": "software_power_cap",
    "hw_slowdown": "hardware_slowdown",
    "hw_thermal_slowdown": "hardware_thermal",
    "hw_power_brake_slowdown": "hardware_power_brake",
    "sync_boost": "sync_boost",
    "sw_thermal_slowdown": "software_thermal",
    "display_clocks_setting": "display_clocks",
}
USE = tuple(
    Compared(f"utilization.{key}", f"{name}utilization_ratio", factor=PERCENT)
    for key, name in (
        ("gpu", ""),
        ("memory", "memory_"),
        ("encoder", "encoder_"),
        ("decoder", "decoder_"),
        ("jpeg", "jpeg_"),
        ("ofa", "ofa_"),
    )
)
VALUES = (
    *(Compared(f"memory.{part}_bytes", f"memory_{part}_bytes") for part in ("total", "used", "free", "reserved")),
    *(Compared(f"bar1_memory.{part}_bytes", f"bar1_memory_{part}_bytes") for part in ("total", "used")),
    Compared("pcie.max_link_gen", "pcie_link_generation_max"),
    Compared("pcie.current_link_gen", "pcie_link_generation"),
    Compared("pcie.max_link_width", "pcie_link_width_max"),
    Compared("pcie.current_link_width", "pcie_link_width"),
    Compared("pcie.replay_counter", "pcie_replays_total"),
    Compared("power.current_draw_mw", "power_watts", factor=MILLI),
    Compared("power.enforced_limit_mw", "power_limit_watts", factor=MILLI),
    *(
        Compared(f"power.{name}_limit_mw", f"power_limit_{name}_watts", factor=MILLI)
        for name in ("default", "min", "max")
    ),
    Compared("power.total_energy_consumption_mj", "energy_joules_total", factor=MILLI),
    Compared("thermal.temperature_gpu_c", "temperature_celsius", {"sensor": "gpu"}),
    Compared("thermal.temperature_memory_c", "temperature_celsius", {"sensor": "memory"}),
    Compared("thermal.shutdown_threshold_c", "temperature_threshold_celsius", {"threshold": "shutdown"}),
    Compared("thermal.slowdown_threshold_c", "temperature_threshold_celsius", {"threshold": "slowdown"}),
    Compared("thermal.max_operating_c", "temperature_threshold_celsius", {"threshold": "gpu_max"}),
    Compared("fan.speed_percent", "fan_speed_ratio", factor=PERCENT),
    *(
        Compared(f"clocks.{name}_current", "clock_hertz", {"clock": name}, MEGA)
        for name in ("graphics", "sm", "memory", "video")
    ),
    *(Compared(f"clocks.{name}_max", "clock_max_hertz", {"clock": name}, MEGA) for name in ("sm", "memory")),
    *(
        Compared(f"clocks.{name}_app", "clock_application_hertz", {"clock": name}, MEGA)
        for name in ("graphics", "memory")
    ),
    *(Compared(f"clocks_throttle_reasons.{key}", "clock_event", {"reason": word}) for key, word in _REASONS.items()),
    Compared("performance_state", "performance_state"),
    Compared("compute_mode", "compute_mode"),
    Compared("ecc.mode_current", "ecc_enabled"),
    *(
        Compared(f"ecc.errors.{life}.{bits}.total", "ecc_errors_total", {"error": error, "lifetime": life})
        for life in ("volatile", "aggregate")
        for bits, error in (("single_bit", "corrected"), ("double_bit", "uncorrected"))
    ),
    Compared("retired_pages.single_bit_retirement.count", "retired_pages", {"error": "corrected"}),
    Compared("retired_pages.double_bit_retirement.count", "retired_pages", {"error": "uncorrected"}),
    Compared("retired_pages.pending_retirement", "retired_pages_pending"),
    Compared("remapped_rows.correctable", "remapped_rows", {"error": "corrected"}),
    Compared("remapped_rows.uncorrectable", "remapped_rows", {"error": "uncorrected"}),
    Compared("remapped_rows.pending", "row_remap_pending"),
    Compared("remapped_rows.failure_occurred", "row_remap_failed"),
)
# Facts that the document has of each card, by the profile's keys.
FACTS = {
    "name": "model",
    "uuid": "uuid",
    "serial": "serial",
    "vbios_version": "vbios",
    "minor_number": "minor",
    "index": "index",
    "inforom.image_version": "inforom_image",
    "inforom.oem_object": "inforom_oem",
    "inforom.ecc_object": "inforom_ecc",
    "inforom.pwr_object": "inforom_power",
}
_TOLD_OTHERWISE = ("architecture", "brand", "compute_capability", "mig.mode_current", "pci.bus_id", "processes")
# What podgpu does not serve, or this mock does not answer: `num_gpu_cores`.
_NOT_SERVED = (
    *("accounting", "bar1_memory.free_bytes", "board_part_number", "clocks.graphics_max", "clocks.video_max"),
    *("clocks.graphics_app_default", "clocks.memory_app_default", "display", "driver_model", "dynamic_metrics"),
    *("ecc.default_mode", "ecc.mode_pending", "encoder_stats", "fabric", "fan.count", "fan.target_speed_percent"),
    *("fbc_stats", "features", "gpu_operation_mode", "grace_cpu_pair", "grace_superchip", "gsp_firmware"),
    *("memory.memory_bus_width", "mig.max_gpu_instances", "mig.mode_pending", "num_gpu_cores", "pci.device_id"),
    *("pci.subsystem_id", "pcie.rx_throughput_kbps", "pcie.tx_throughput_kbps", "persistence_mode", "platform"),
    *(
        "power.management_mode",
        "power.management_supported",
        "power.power_state",
        "remapped_rows.availability_histogram",
    ),
    *("retired_pages.pending_blacklist", "supported_clocks", "thermal.target_temperature_c", "virtualization"),
)
_LOCATIONS = ("device_memory", "l1_cache", "l2_cache", "register_file", "texture_memory", "addresses")
_WORDS = {"enabled": 1.0, "disabled": 0.0, "default": 0.0}


class MockProfile:
    def __init__(self, document: Tree) -> None:
        self.document = document

    @classmethod
    def read(cls, path: Path) -> "MockProfile":
        document: Tree = yaml.safe_load(path.read_text(encoding="utf-8"))
        return cls(document)

    @property
    def cards(self) -> list[Tree]:
        return [merged(self.document["device_defaults"], own) for own in self.document["devices"]]

    @property
    def links(self) -> int:
        """How many NVLinks of a card are active: the mock connects them to switches alone."""
        nvlink = self.document.get("nvlink") or {}
        return int(nvlink.get("links_per_gpu", 0)) if nvlink.get("switches") else 0

    @property
    def link_speed(self) -> float:
        return float((self.document.get("nvlink") or {}).get("bandwidth_per_link_mbps", 0)) * MEGA

    def steady(self) -> "MockProfile":
        """The same without values that move by themselves."""
        defaults = {key: value for key, value in self.document["device_defaults"].items() if key != "dynamic_metrics"}
        rest = {key: value for key, value in self.document.items() if key != "dynamic_metrics_defaults"}
        return MockProfile({**rest, "device_defaults": defaults})

    def write(self, path: Path) -> None:
        """JSON is YAML in which no text looks like a number."""
        path.write_text(json.dumps(self.document), encoding="utf-8")


def merged(under: Tree, over: Tree) -> Tree:
    found = dict(under)
    for key, value in over.items():
        is_branch = isinstance(value, dict) and isinstance(found.get(key), dict)
        found[key] = merged(found[key], value) if is_branch else value
    return found


def at(tree: Any, key: str) -> Any:
    """Return the value at a dotted key, None without one."""
    for name in key.split("."):
        tree = tree.get(name) if isinstance(tree, dict) else None
    return tree


def number(value: Any) -> float | None:
    """Return what a page writes for a value of the profile; None for what a card does not have, such as `N/A`."""
    if isinstance(value, str):
        state = value.removeprefix("P")
        return float(state) if state.isdecimal() else _WORDS.get(value)
    return None if value is None else float(value)


def unjudged(card: Tree) -> list[str]:
    """List the keys of a card that are neither compared nor known to be left out."""
    known = {compared.key for compared in (*VALUES, *USE)} | FACTS.keys()
    skipped = (*_TOLD_OTHERWISE, *_NOT_SERVED)
    return [
        key
        for key in _leaves(card)
        if key not in known
        and key.rpartition(".")[2] not in _LOCATIONS
        and not any(f"{key}.".startswith(f"{prefix}.") for prefix in skipped)
    ]


def _leaves(tree: Tree, above: str = "") -> Iterator[str]:
    for key, value in tree.items():
        if isinstance(value, dict):
            yield from _leaves(value, f"{above}{key}.")
        else:
            yield f"{above}{key}"
