"""A card's health as dcgm-exporter shows it: by subsystem, with the code of DCGM's own error.

The verdicts are podgpu's, from what the driver reports. A subsystem about which nothing is known has none.
"""

from collections.abc import Callable, Mapping

from podgpu.model import Card

PASS, WARN, FAIL = 0.0, 10.0, 20.0
_OK = "DCGM_FR_OK"

Values = Mapping[tuple[str, tuple[str, ...]], float]
Verdict = tuple[float, str]

# What makes a subsystem unhealthy, worst first: a reading, the values that do, and DCGM's code for it.
_SIGNS: dict[str, tuple[tuple[tuple[str, tuple[str, ...]], Callable[[float], bool], Verdict], ...]] = {
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


def judged(card: Card) -> dict[str, Verdict]:
    """The verdict on each subsystem that anything is known about."""
    values = {(one.metric, one.labels): one.value for one in card.readings}
    return {watch: verdict for watch in _SIGNS if (verdict := _verdict(watch, values)) is not None}


def _verdict(watch: str, values: Values) -> Verdict | None:
    known = [(values[key], is_bad, verdict) for key, is_bad, verdict in _SIGNS[watch] if key in values]
    bad = (verdict for value, is_bad, verdict in known if is_bad(value))
    return next(bad, (PASS, _OK)) if known else None
