"""The readings of a simulated card, in the catalog's words.

What such a card does not report is left out: fan speed, retired pages, thresholds in degrees.
"""

import math
from collections.abc import Iterable, Sequence

from podgpu.catalog import device_rows
from podgpu.catalog.row import Field
from podgpu.model import Reading
from podgpu.sources.simulator.scenario import SimulatedInstance
from podgpu.sources.simulator.timeline import (
    CAP_WATTS,
    HOT_CELSIUS,
    IDLE_CLOCK,
    MAX_CLOCK,
    Activity,
    CardTimeline,
    Quantity,
    ReadingWindow,
    position,
)

Values = dict[tuple[str, ...], float]

MEMORY_TOTAL = 150_754_820_096
MEMORY_RESERVED = 644_939_776
# What a card, or a MIG instance, holds beyond the sum of its processes.
MEMORY_OVERHEAD = 15_138_816
POWER_LIMIT = 700
DECODERS = 7
# Kernels keep nearly all multiprocessors busy while they run, but not quite.
SPREAD = 0.93
# One corrected memory error more in so many rounds.
ROUNDS_PER_ERROR = 3

_QUIET = {
    "clock_event",
    "ecc_errors_total",
    "jpeg_utilization_ratio",
    "nvlink_errors_total",
    "ofa_utilization_ratio",
    "pcie_errors_total",
    "pcie_replays_total",
    "performance_state",
    "recovery_action",
    "remapped_rows",
    "row_remap_failed",
    "vgpu_licensed",
    "row_remap_pending",
    "throttle_seconds_total",
}

# Holds whatever the card does, unless a reading overwrites it.
_CONSTANT: Values = {
    (row.name, *row.label_values): 0
    for row in device_rows()
    # A driver counts the errors of all links together or those of each, not both.
    if row.name in _QUIET and not (isinstance(row.read, Field) and row.read.links)
} | {
    ("bar1_memory_total_bytes",): 1 << 38,
    ("bar1_memory_used_bytes",): 26 << 20,
    ("clock_hertz", "memory"): 3201e6,
    ("clock_max_hertz", "memory"): 3201e6,
    ("clock_max_hertz", "sm"): MAX_CLOCK * 1e6,
    ("ecc_enabled",): 1,
    ("engine_active_ratio", "nvofa0"): 0,
    ("nvlink_links",): 18,
    ("nvlink_speed_bytes_per_second",): 26_562e6,
    ("pcie_link_generation",): 5,
    ("pcie_link_generation_max",): 5,
    ("pcie_link_width",): 16,
    ("pcie_link_width_max",): 16,
    ("power_limit_default_watts",): POWER_LIMIT,
    ("power_limit_max_watts",): POWER_LIMIT,
    ("power_limit_min_watts",): 200,
    ("power_limit_requested_watts",): POWER_LIMIT,
    ("power_limit_watts",): POWER_LIMIT,
    ("temperature_margin_threshold_celsius", "gpu_max"): 0,
    ("temperature_margin_threshold_celsius", "memory_max"): 0,
    ("temperature_margin_threshold_celsius", "shutdown"): -8,
    ("temperature_margin_threshold_celsius", "slowdown"): -2,
}


def card_readings(timeline: CardTimeline, window: ReadingWindow, activities: Sequence[Activity]) -> tuple[Reading, ...]:
    card = timeline.card
    # A partitioned card reports the use of its instances through GPM alone.
    use = {} if card.instances else _use(activities)
    overhead = MEMORY_OVERHEAD * max(1, len(card.instances))
    return _readings(
        _CONSTANT
        | use
        | _memory(MEMORY_TOTAL, MEMORY_RESERVED, overhead, activities)
        | _profile([(activity, activity.weight) for activity in activities], DECODERS)
        | _power(timeline, window)
        | _health(timeline, window)
        | _traffic(timeline, window)
    )


def instance_readings(instance: SimulatedInstance, activities: Iterable[Activity]) -> tuple[Reading, ...]:
    inside = [activity for activity in activities if activity.process.instance == instance.gpu_instance_id]
    return _readings(
        _memory(instance.profile.memory_bytes, 0, MEMORY_OVERHEAD, inside)
        | _profile([(activity, 1.0) for activity in inside], instance.profile.decoders)
    )


def _readings(values: Values) -> tuple[Reading, ...]:
    return tuple(Reading(name, float(value), tuple(labels)) for (name, *labels), value in values.items())


def _use(activities: Iterable[Activity]) -> Values:
    pairs = [(activity.load, activity.process.mix) for activity in activities]
    return {
        ("utilization_ratio",): round(sum(load for load, _ in pairs), 2),
        ("memory_utilization_ratio",): round(sum(load * mix.dram for load, mix in pairs), 2),
        ("encoder_utilization_ratio",): 0,
        ("decoder_utilization_ratio",): round(sum(load * mix.decoder for load, mix in pairs), 2),
    }


def _memory(total: int, reserved: int, overhead: int, activities: Iterable[Activity]) -> Values:
    used = overhead + sum(activity.memory_bytes for activity in activities)
    return {
        ("memory_total_bytes",): total,
        ("memory_used_bytes",): used,
        ("memory_free_bytes",): total - reserved - used,
        ("memory_reserved_bytes",): reserved,
    }


def _profile(weighted: list[tuple[Activity, float]], decoders: int) -> Values:
    """Return what GPM would report of a card or an instance, given each activity's part of it."""

    def mean(quantity: Quantity) -> float:
        return round(sum(each.load * weight * quantity(each.process.mix) for each, weight in weighted), 4)

    active = sum(each.load * weight for each, weight in weighted)
    tensor = mean(lambda mix: mix.tensor)
    # Jobs fill the first decoder before they take the next.
    decoding = mean(lambda mix: mix.decoder) * decoders
    return {
        # Rounded down: the card was never busy without one of its processes.
        ("graphics_engine_active_ratio",): math.floor(active * 1e4) / 1e4,
        ("sm_active_ratio",): round(active * SPREAD, 4),
        ("sm_occupancy_ratio",): mean(lambda mix: mix.occupancy),
        ("tensor_active_ratio",): tensor,
        ("dram_active_ratio",): mean(lambda mix: mix.dram),
        ("pipe_active_ratio", "fp64"): mean(lambda mix: mix.fp64),
        ("pipe_active_ratio", "fp32"): mean(lambda mix: mix.fp32),
        ("pipe_active_ratio", "fp16"): mean(lambda mix: mix.fp16),
        ("pipe_active_ratio", "integer"): mean(lambda mix: mix.integer),
        ("pipe_active_ratio", "tensor_hmma"): tensor,
        **{("pipe_active_ratio", f"tensor_{pipe}"): 0 for pipe in ("imma", "dfma", "dmma")},
        **{("engine_active_ratio", f"nvdec{n}"): _clamped(decoding - n) for n in range(decoders)},
        **{("engine_active_ratio", f"nvjpg{n}"): 0 for n in range(decoders)},
    }


def _clamped(ratio: float) -> float:
    return round(min(1.0, max(0.0, ratio)), 4)


def _power(timeline: CardTimeline, window: ReadingWindow) -> Values:
    second = window.last_second
    temperature, clock = round(timeline.heat[second]), timeline.clock_megahertz(second)
    return {
        ("power_watts",): timeline.energy_millijoules.rate(window) / 1000,
        ("power_instant_watts",): timeline.power_milliwatts[second] / 1000,
        ("energy_joules_total",): timeline.energy_millijoules.at(window.end) / 1000,
        ("temperature_celsius", "gpu"): temperature,
        ("temperature_celsius", "memory"): round(timeline.heat[second] * 1.08 + 3),
        ("temperature_margin_celsius",): HOT_CELSIUS - temperature,
        ("clock_hertz", "sm"): clock * 1e6,
        ("clock_hertz", "graphics"): clock * 1e6,
        ("clock_hertz", "video"): max(IDLE_CLOCK, clock * 7 // 9) * 1e6,
    }


def _health(timeline: CardTimeline, window: ReadingWindow) -> Values:
    card, second = timeline.card, window.last_second
    hot_seconds = timeline.hot_ns.at(window.end) / 1e9
    values: Values = {
        ("throttle_seconds_total", "power"): timeline.capped_ns.at(window.end) / 1e9,
        ("throttle_seconds_total", "thermal"): hot_seconds,
        ("throttle_seconds_total", "software_thermal"): hot_seconds,
        ("clock_event", "software_power_cap"): timeline.demand_watts[second] > CAP_WATTS,
        ("clock_event", "software_thermal"): timeline.heat[second] >= HOT_CELSIUS,
        ("clock_event", "idle"): timeline.clock_megahertz(second) == IDLE_CLOCK,
    }
    if card.corrected_errors:
        rounds, _, _ = position(window.end)
        corrected = card.corrected_errors + rounds // ROUNDS_PER_ERROR
        values["ecc_errors_total", "corrected", "volatile"] = corrected
        values["ecc_errors_total", "corrected", "aggregate"] = corrected + card.index
    return values


def _traffic(timeline: CardTimeline, window: ReadingWindow) -> Values:
    # The driver counts NVLink in KiB.
    linked = timeline.nvlink_bytes.at(window.end) // 1024 * 1024
    link_rate = timeline.nvlink_bytes.rate(window)
    return {
        ("pcie_transmit_bytes_total",): timeline.pcie_transmit_bytes.at(window.end),
        ("pcie_receive_bytes_total",): timeline.pcie_receive_bytes.at(window.end),
        ("pcie_transmit_bytes_per_second",): timeline.pcie_transmit_bytes.rate(window),
        ("pcie_receive_bytes_per_second",): timeline.pcie_receive_bytes.rate(window),
        ("nvlink_transmit_bytes_total",): linked,
        ("nvlink_receive_bytes_total",): linked,
        ("nvlink_transmit_bytes_per_second",): link_rate,
        ("nvlink_receive_bytes_per_second",): link_rate,
    }
