"""What a card reports about itself, by topic, in words: for its own page, with scripts and without."""

from collections.abc import Iterable, Iterator, Mapping
from math import isfinite

from msgspec import Struct

from podgpu import numbers
from podgpu.model import Reading


class FactRow(Struct, frozen=True):
    """A reading that has a line. `of` is the reading of its maximum; `about` says what it means."""

    name: str
    metric: str
    quantity: str  # one of numbers.QUANTITIES
    labels: tuple[str, ...] = ()  # values of its labels
    of: str = ""
    about: str = ""


Fact = tuple[str, str, str]  # name, value, what it means

_SINCE = "Since the previous reading."
_LOADED = "Since the driver was loaded."
# Shown only where they are not 0: they count what should not happen.
_TROUBLE = frozenset({"pcie_replays_total", "pcie_errors_total", "nvlink_errors_total"})

FACTS: Mapping[str, tuple[FactRow, ...]] = {
    "Activity": (
        FactRow("SMs active", "sm_active_ratio", "ratio", about=f"Multiprocessors with work. {_SINCE}"),
        FactRow("SM occupancy", "sm_occupancy_ratio", "ratio", about=f"Warps, of the most there can be. {_SINCE}"),
        FactRow("Tensor cores", "tensor_active_ratio", "ratio", about=f"Any of their pipes at work. {_SINCE}"),
        FactRow("Memory bandwidth", "dram_active_ratio", "ratio", about=f"Of the most there is. {_SINCE}"),
        FactRow("Encoders", "encoder_utilization_ratio", "ratio"),
        FactRow("Decoders", "decoder_utilization_ratio", "ratio"),
    ),
    "Clocks and heat": (
        FactRow("SM clock", "clock_hertz", "frequency", ("sm",), of="clock_max_hertz"),
        FactRow("Memory clock", "clock_hertz", "frequency", ("memory",), of="clock_max_hertz"),
        FactRow("GPU", "temperature_celsius", "temperature", ("gpu",)),
        FactRow("Memory", "temperature_celsius", "temperature", ("memory",)),
        FactRow(
            "Before it slows down",
            "temperature_margin_celsius",
            "temperature",
            about="How much hotter the GPU may get.",
        ),
        FactRow("Fans", "fan_speed_ratio", "ratio"),
    ),
    "Power and energy": (
        FactRow("Power", "power_watts", "power", of="power_limit_watts", about="A mean of about a second."),
        FactRow("Energy", "energy_joules_total", "energy", about=_LOADED),
    ),
    "Memory": (
        FactRow("In use", "memory_used_bytes", "memory", of="memory_total_bytes"),
        FactRow("Reserved by the driver", "memory_reserved_bytes", "memory"),
        FactRow("BAR1 in use", "bar1_memory_used_bytes", "memory", of="bar1_memory_total_bytes"),
        FactRow("ECC, uncorrected", "ecc_errors_total", "count", ("uncorrected", "volatile"), about=_LOADED),
        FactRow("ECC, corrected", "ecc_errors_total", "count", ("corrected", "volatile"), about=_LOADED),
        FactRow(
            "ECC of its life",
            "ecc_errors_total",
            "count",
            ("uncorrected", "aggregate"),
            about="Uncorrected, over the life of the card.",
        ),
        FactRow("Rows remapped", "remapped_rows", "count", ("uncorrected",), about="For uncorrected errors."),
        FactRow("Rows remapped", "remapped_rows", "count", ("corrected",), about="For corrected errors."),
        FactRow("Rows that wait", "row_remap_pending", "count", about="1: a reset of the GPU will remap them."),
        FactRow("Remapping failed", "row_remap_failed", "count", about="1: the card needs to be replaced."),
    ),
    "Links": (
        FactRow("PCIe generation", "pcie_link_generation", "count", of="pcie_link_generation_max"),
        FactRow("PCIe lanes", "pcie_link_width", "count", of="pcie_link_width_max"),
        FactRow("PCIe, sent", "pcie_transmit_bytes_per_second", "rate", about=_SINCE),
        FactRow("PCIe, received", "pcie_receive_bytes_per_second", "rate", about=_SINCE),
        FactRow("PCIe, sent again", "pcie_replays_total", "count", about="Packets since boot."),
        FactRow("NVLinks", "nvlink_links", "count"),
        FactRow("NVLink, sent", "nvlink_transmit_bytes_per_second", "rate", about=_SINCE),
        FactRow("NVLink, received", "nvlink_receive_bytes_per_second", "rate", about=_SINCE),
        FactRow("NVLink, replays", "nvlink_errors_total", "count", ("replay",)),
        FactRow("NVLink, CRC errors", "nvlink_errors_total", "count", ("crc_flit",)),
        FactRow("NVLink, replays", "nvlink_errors_total", "count", ("link_replay",)),
        FactRow("NVLink, CRC errors", "nvlink_errors_total", "count", ("link_crc",)),
        FactRow("NVLink, recoveries", "nvlink_errors_total", "count", ("link_recovery_event",)),
    ),
}

# Why the clocks are not higher, in words.
CLOCK_REASONS: Mapping[str, str] = {
    "idle": "it has nothing to do",
    "app_clocks": "an administrator set its clocks",
    "software_power_cap": "it draws as much power as it may",
    "hardware_slowdown": "the hardware slows it down",
    "sync_boost": "it waits for others of its group",
    "software_thermal": "it is too hot",
    "hardware_thermal": "it is too hot",
    "hardware_power_brake": "the power supply slows it down",
    "display_clocks": "a display needs these clocks",
}
THROTTLE_REASONS: Mapping[str, str] = {
    "power": "power limit",
    "thermal": "heat",
    "software_thermal": "heat, by the driver",
    "hardware_thermal": "heat, by the hardware",
    "hardware_power_brake": "power supply",
    "board_limit": "limit of the board",
    "low_utilization": "little work",
    "reliability": "reliability",
    "sync_boost": "others of its group",
    "app_clocks": "set clocks",
    "base_clocks": "base clocks",
}
_CLOCKS = "Clocks and heat"
_NOW = ("Held back by", "Why its clocks are not higher, now.")
_SO_FAR = ("Held back so far", f"{_LOADED} Reasons overlap.")


def facts_of(readings: Iterable[Reading]) -> dict[str, list[Fact]]:
    """Write what is known, by topic. What is not reported has no line."""
    known = {(found.metric, found.labels): found.value for found in readings if isfinite(found.value)}
    found = {topic: list(_lines(rows, known)) for topic, rows in FACTS.items()}
    found[_CLOCKS] += _held_back(known)
    return {topic: lines for topic, lines in found.items() if lines}


Known = Mapping[tuple[str, tuple[str, ...]], float]


def _lines(rows: Iterable[FactRow], known: Known) -> Iterator[Fact]:
    for row in rows:
        value = known.get((row.metric, row.labels))
        if value is None or (not value and row.metric in _TROUBLE):
            continue
        most = known.get((row.of, row.labels)) if row.of else None
        text = numbers.write(row.quantity, value) if most is None else numbers.part_of(row.quantity, value, most)
        yield row.name, text, row.about


def _held_back(known: Known) -> Iterator[Fact]:
    now = [words for reason, words in CLOCK_REASONS.items() if known.get(("clock_event", (reason,)))]
    if any(metric == "clock_event" for metric, _ in known):
        yield _NOW[0], ", ".join(dict.fromkeys(now)) or "nothing", _NOW[1]
    past = [
        f"{words} {numbers.duration(seconds)}"
        for reason, words in THROTTLE_REASONS.items()
        if (seconds := known.get(("throttle_seconds_total", (reason,))))
    ]
    if past:
        yield _SO_FAR[0], ", ".join(past), _SO_FAR[1]


WORDS = {
    "rows": FACTS,
    "trouble": sorted(_TROUBLE),
    "clock_reasons": CLOCK_REASONS,
    "throttle_reasons": THROTTLE_REASONS,
    "clocks": _CLOCKS,
    "now": _NOW,
    "so_far": _SO_FAR,
}
