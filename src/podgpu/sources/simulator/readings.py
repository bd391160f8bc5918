"""A moment of a card, in the catalog's words.

What such a card does not report is left out: fan speed, retired pages, thresholds in degrees.
"""

import math
from collections.abc import Iterable

from podgpu.catalog import device_rows
from podgpu.model import Reading
from podgpu.sources.simulator.layout import SimulatedSlice
from podgpu.sources.simulator.tape import HOT_CELSIUS, IDLE_CLOCK, MAX_CLOCK, Activity, Moment, Quantity

Values = dict[tuple[str, ...], float]

MEMORY_TOTAL = 150_754_820_096
MEMORY_RESERVED = 644_939_776
# What a card, or a MIG instance, holds beyond the sum of its processes.
MEMORY_OVERHEAD = 15_138_816
POWER_LIMIT = 700
DECODERS = 7
# Work keeps nearly all multiprocessors busy while it runs, but not quite.
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

# Holds whatever the card does; a moment overwrites what it knows better.
_STANDING: Values = {(row.name, *row.label_values): 0 for row in device_rows() if row.name in _QUIET} | {
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


def card_readings(moment: Moment) -> tuple[Reading, ...]:
    # A partitioned card reports its instances' use through GPM alone.
    use = {} if moment.card.slices else _use(moment.activities)
    overhead = MEMORY_OVERHEAD * max(1, len(moment.card.slices))
    return _readings(
        _STANDING
        | use
        | _memory(MEMORY_TOTAL, MEMORY_RESERVED, overhead, moment.activities)
        | _profile([(activity, activity.weight) for activity in moment.activities], DECODERS)
        | _electrics(moment)
        | _health(moment)
        | _traffic(moment)
    )


def slice_readings(moment: Moment, part: SimulatedSlice) -> tuple[Reading, ...]:
    inside = [each for each in moment.activities if each.resident.instance == part.gpu_instance_id]
    return _readings(
        _memory(part.profile.memory_bytes, 0, MEMORY_OVERHEAD, inside)
        | _profile([(activity, 1.0) for activity in inside], part.profile.decoders)
    )


def _readings(values: Values) -> tuple[Reading, ...]:
    return tuple(Reading(name, float(value), tuple(labels)) for (name, *labels), value in values.items())


def _use(activities: Iterable[Activity]) -> Values:
    pairs = [(activity.load, activity.resident.work) for activity in activities]
    return {
        ("utilization_ratio",): round(sum(load for load, _ in pairs), 2),
        ("memory_utilization_ratio",): round(sum(load * work.dram for load, work in pairs), 2),
        ("encoder_utilization_ratio",): 0,
        ("decoder_utilization_ratio",): round(sum(load * work.decoder for load, work in pairs), 2),
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
        return round(sum(each.load * weight * quantity(each.resident.work) for each, weight in weighted), 4)

    active = sum(each.load * weight for each, weight in weighted)
    tensor = mean(lambda work: work.tensor)
    # Jobs fill the first decoder before they take the next.
    decoding = mean(lambda work: work.decoder) * decoders
    return {
        # Rounded down: the card was never busy without one of its processes.
        ("graphics_engine_active_ratio",): math.floor(active * 1e4) / 1e4,
        ("sm_active_ratio",): round(active * SPREAD, 4),
        ("sm_occupancy_ratio",): mean(lambda work: work.occupancy),
        ("tensor_active_ratio",): tensor,
        ("dram_active_ratio",): mean(lambda work: work.dram),
        ("pipe_active_ratio", "fp64"): mean(lambda work: work.fp64),
        ("pipe_active_ratio", "fp32"): mean(lambda work: work.fp32),
        ("pipe_active_ratio", "fp16"): mean(lambda work: work.fp16),
        ("pipe_active_ratio", "integer"): mean(lambda work: work.integer),
        ("pipe_active_ratio", "tensor_hmma"): tensor,
        **{("pipe_active_ratio", f"tensor_{pipe}"): 0 for pipe in ("imma", "dfma", "dmma")},
        **{("engine_active_ratio", f"nvdec{n}"): _clamped(decoding - n) for n in range(decoders)},
        **{("engine_active_ratio", f"nvjpg{n}"): 0 for n in range(decoders)},
    }


def _clamped(ratio: float) -> float:
    return round(min(1.0, max(0.0, ratio)), 4)


def _electrics(moment: Moment) -> Values:
    graphics = moment.clock_megahertz * 1e6
    return {
        ("power_watts",): moment.power_watts,
        ("power_instant_watts",): moment.power_instant_watts,
        ("energy_joules_total",): moment.energy_millijoules / 1000,
        ("temperature_celsius", "gpu"): moment.temperature,
        ("temperature_celsius", "memory"): moment.memory_temperature,
        ("temperature_margin_celsius",): HOT_CELSIUS - moment.temperature,
        ("clock_hertz", "sm"): graphics,
        ("clock_hertz", "graphics"): graphics,
        ("clock_hertz", "video"): max(IDLE_CLOCK, moment.clock_megahertz * 7 // 9) * 1e6,
    }


def _health(moment: Moment) -> Values:
    values: Values = {
        ("throttle_seconds_total", "power"): moment.capped_nanoseconds / 1e9,
        ("throttle_seconds_total", "thermal"): moment.hot_nanoseconds / 1e9,
        ("throttle_seconds_total", "software_thermal"): moment.hot_nanoseconds / 1e9,
        ("clock_event", "software_power_cap"): moment.is_capped,
        ("clock_event", "software_thermal"): moment.is_hot,
        ("clock_event", "idle"): moment.clock_megahertz == IDLE_CLOCK,
    }
    if moment.card.corrected_errors:
        corrected = moment.card.corrected_errors + moment.rounds // ROUNDS_PER_ERROR
        values["ecc_errors_total", "corrected", "volatile"] = corrected
        values["ecc_errors_total", "corrected", "aggregate"] = corrected + moment.card.index
    return values


def _traffic(moment: Moment) -> Values:
    # The driver counts NVLink in KiB.
    linked = moment.nvlink_bytes // 1024 * 1024
    return {
        ("pcie_transmit_bytes_total",): moment.pcie_transmit_bytes,
        ("pcie_receive_bytes_total",): moment.pcie_receive_bytes,
        ("pcie_transmit_bytes_per_second",): moment.pcie_transmit_rate,
        ("pcie_receive_bytes_per_second",): moment.pcie_receive_rate,
        ("nvlink_transmit_bytes_total",): linked,
        ("nvlink_receive_bytes_total",): linked,
        ("nvlink_transmit_bytes_per_second",): moment.nvlink_rate,
        ("nvlink_receive_bytes_per_second",): moment.nvlink_rate,
    }
