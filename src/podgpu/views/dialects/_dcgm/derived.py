"""Fields of dcgm-exporter that are no reading of a card, but follow from what is known about it."""

from collections.abc import Callable, Iterable, Iterator
from math import isfinite

from msgspec.structs import replace

from podgpu import catalog
from podgpu.catalog.health import CLOCK_EVENTS_RECENT, WINDOW_SECONDS, XID_ERRORS_RECENT
from podgpu.catalog.row import BYTES, COUNT, FLAG, MIB, RATIO, Alias, Call, Kind, Metric, Unit
from podgpu.model import Card, Reading, Snapshot

_WINDOW = str(WINDOW_SECONDS * 1000)
_CLOCK_EVENT = "clock_event"
_MASKS = {
    row.label_values: row.read.bit
    for row in catalog.device_rows()
    if row.name == _CLOCK_EVENT and isinstance(row.read, Call) and row.read.bit is not None
}
# What dcgm-exporter calls each of podgpu's reasons.
_EVENTS = {
    "idle": "gpu_idle",
    "app_clocks": "clocks_setting",
    "software_power_cap": "power_cap",
    "hardware_slowdown": "hw_slowdown",
    "sync_boost": "sync_boost",
    "software_thermal": "sw_thermal",
    "hardware_thermal": "hw_thermal",
    "hardware_power_brake": "hw_power_brake",
    "display_clocks": "display_clocks",
}


PASS, WARN, FAIL = 0.0, 10.0, 20.0

# Status and error code of a subsystem.
Health = tuple[float, str]

# What makes a subsystem unhealthy, worst first: a reading, the values that do, and DCGM's code for it.
_SIGNS: dict[str, tuple[tuple[tuple[str, tuple[str, ...]], Callable[[float], bool], Health], ...]] = {
    "MEM": (
        (("row_remap_failed", ()), bool, (FAIL, "DCGM_FR_ROW_REMAP_FAILURE")),
        (("ecc_errors_total", ("uncorrected", "volatile")), bool, (FAIL, "DCGM_FR_VOLATILE_DBE_DETECTED")),
        (("row_remap_pending", ()), bool, (WARN, "DCGM_FR_PENDING_ROW_REMAP")),
        (("retired_pages_pending", ()), bool, (WARN, "DCGM_FR_PENDING_PAGE_RETIREMENTS")),
    ),
    "THERMAL": tuple(
        (("clock_event", (reason,)), bool, (WARN, "DCGM_FR_CLOCK_THROTTLE_THERMAL"))
        for reason in ("hardware_thermal", "software_thermal")
    ),
    "POWER": ((("clock_event", ("hardware_power_brake",)), bool, (WARN, "DCGM_FR_CLOCK_THROTTLE_POWER")),),
    "ALL": (
        (("xid_last_code", ()), lambda code: code == 79, (FAIL, "DCGM_FR_FALLEN_OFF_BUS")),
        (("xid_last_code", ()), lambda code: code == 95, (FAIL, "DCGM_FR_UNCONTAINED_ERROR")),
        (("recovery_action", ()), lambda action: action == 1, (FAIL, "DCGM_FR_GPU_RECOVERY_RESET")),
        (("recovery_action", ()), lambda action: action == 2, (FAIL, "DCGM_FR_GPU_RECOVERY_REBOOT")),
        (("recovery_action", ()), lambda action: action == 3, (WARN, "DCGM_FR_GPU_RECOVERY_DRAIN_P2P")),
        (("recovery_action", ()), lambda action: action > 3, (FAIL, "DCGM_FR_GPU_RECOVERY_DRAIN_RESET")),
    ),
}


def _row(
    field: str,
    words: str,
    unit: Unit = COUNT,
    *,
    dcgm49: str = "",
    mig: bool = False,
    labels: tuple[str, ...] = (),
    also: str = "",
) -> Metric:
    """`dcgm49` is its name since 4.9, where that differs."""
    return Metric(
        name=field,
        kind=Kind.GAUGE,
        help=words,
        own_labels=labels,
        mig=mig,
        dcgm=Alias(field, unit, words),
        dcgm49=Alias(dcgm49 or field, unit, words),
        dcgm_also=(Alias(also, unit, words),) if also else (),
    )


_FB_USED = _row(
    "DCGM_FI_DEV_FB_USED_PERCENT",
    "Used part of the framebuffer memory that is not reserved (0 to 1).",
    RATIO,
    dcgm49="DCGM_FI_DEV_FB_USED_RATIO",
    mig=True,
)
_BAR1_FREE = replace(
    _row("DCGM_FI_DEV_BAR1_FREE", "BAR1 memory free (in MiB).", MIB),
    dcgm49=Alias("DCGM_FI_DEV_BAR1_FREE_BYTES", BYTES, "BAR1 memory free (in bytes)."),
)
_MIG_MODE = _row("DCGM_FI_DEV_MIG_MODE", "Whether MIG is enabled.", FLAG)
_COUNT = _row("DCGM_FI_DEV_COUNT", "Number of GPUs of the node.", dcgm49="DCGM_FI_SYSTEM_GPU_QUANTITY")
_REASONS = _row(
    "DCGM_FI_DEV_CLOCKS_EVENT_REASONS",
    "Why the clocks are as they are, as a bitmask.",
    also="DCGM_FI_DEV_CLOCK_THROTTLE_REASONS",
)
_XIDS = _row("DCGM_EXP_XID_ERRORS_COUNT", "XID errors in the window, by XID.", labels=("window_size_in_ms", "xid"))
_CLOCK_EVENTS = _row(
    "DCGM_EXP_CLOCK_EVENTS_COUNT",
    "Readings in the window in which a reason affected the clocks.",
    labels=("clock_event", "window_size_in_ms"),
)
_HEALTH = _row(
    "DCGM_EXP_GPU_HEALTH_STATUS",
    "Health by subsystem: 0 passed, 10 warning, 20 failed.",
    labels=("health_error_code", "health_watch"),
)

_BY_GROUP = {
    "memory": (_FB_USED, _BAR1_FREE),
    "presence": (_MIG_MODE, _COUNT),
    "throttling": (_REASONS, _CLOCK_EVENTS),
    "errors": (_XIDS, _HEALTH),
}
GROUPS = {row.name: group for group, rows in _BY_GROUP.items() for row in rows}
ROWS = tuple(row for rows in _BY_GROUP.values() for row in rows)


def completed(snapshot: Snapshot, cards: Iterable[Card]) -> Iterator[Card]:
    """The cards with readings of these rows. A card that is down has none."""
    for card in cards:
        if card.fault:
            yield card
            continue
        more = (*_of_card(snapshot, card), *_fb_used(card.readings))
        instances = tuple(
            replace(instance, readings=(*instance.readings, *_fb_used(instance.readings)))
            for instance in card.instances
        )
        yield replace(card, readings=(*card.readings, *more), instances=instances)


def event_mask(card: Card) -> float | None:
    """Put the bitmask of clock events back together, which has a reading for each bit."""
    events = {reading.labels: reading.value for reading in card.readings if reading.metric == _CLOCK_EVENT}
    known = events.keys() & _MASKS.keys()
    return float(sum(_MASKS[labels] for labels in known if events[labels] == 1)) if known else None


def _of_card(snapshot: Snapshot, card: Card) -> Iterator[Reading]:
    yield Reading(_MIG_MODE.name, float(card.gpu.mig_enabled))
    yield Reading(_COUNT.name, float(len(snapshot.cards)))
    values = _unlabelled(card.readings)
    total, used = values.get("bar1_memory_total_bytes"), values.get("bar1_memory_used_bytes")
    if total is not None and used is not None:
        yield Reading(_BAR1_FREE.name, max(0.0, total - used))
    if (mask := event_mask(card)) is not None:
        yield Reading(_REASONS.name, mask)
        yield from _in_window(card, CLOCK_EVENTS_RECENT, _CLOCK_EVENTS)
    if card.ability.hears_xids:
        yield from _in_window(card, XID_ERRORS_RECENT, _XIDS)
    yield from _health(card)


def _in_window(card: Card, metric: str, row: Metric) -> Iterator[Reading]:
    """Without any XID or event in the window, there is one row with an empty label."""
    found = [reading for reading in card.readings if reading.metric == metric and len(reading.labels) == 1]
    for value, label in [(reading.value, reading.labels[0]) for reading in found] or [(0.0, "")]:
        text = _EVENTS.get(label, label)
        labels = (text, _WINDOW) if row is _CLOCK_EVENTS else (_WINDOW, text)
        yield Reading(row.name, value, labels)


def _fb_used(readings: Iterable[Reading]) -> Iterator[Reading]:
    values = _unlabelled(readings)
    total, used = values.get("memory_total_bytes"), values.get("memory_used_bytes")
    reserved = values.get("memory_reserved_bytes", 0.0)
    if total is not None and used is not None and total > reserved:
        yield Reading(_FB_USED.name, min(1.0, used / (total - reserved)))


def _unlabelled(readings: Iterable[Reading]) -> dict[str, float]:
    return {reading.metric: reading.value for reading in readings if not reading.labels and isfinite(reading.value)}


def _health(card: Card) -> Iterator[Reading]:
    """The health of each subsystem that anything is known about. The verdicts are podgpu's own."""
    values = {(reading.metric, reading.labels): reading.value for reading in card.readings if isfinite(reading.value)}
    for watch, signs in _SIGNS.items():
        known = [(values[key], is_bad, health) for key, is_bad, health in signs if key in values]
        if known:
            bad = (health for value, is_bad, health in known if is_bad(value))
            status, code = next(bad, (PASS, "DCGM_FR_OK"))
            yield Reading(_HEALTH.name, status, (code, watch))
