"""What is wrong with a card: memory errors, XIDs, throttling, the action the driver asks for."""

from podgpu.catalog.row import Alias, Cadence, Call, Field, Kind, Metric, OtelName, Stability, Worth
from podgpu.catalog.units import COUNT, FLAG, NANOSECONDS, SECONDS

# Counts over the last minutes. They have no row: only pages in dcgm-exporter's words show them.
WINDOW_SECONDS = 300
XID_ERRORS_RECENT, CLOCK_EVENTS_RECENT = "xid_errors_recent", "clock_events_recent"

_ECC = "Memory errors found by ECC. volatile: since the driver was loaded; aggregate: over the card's life."
_REMAPPED = "Rows of device memory replaced by spare ones, by the kind of error."
_RETIRED = "Pages of device memory taken out of use, by the kind of error. Cards before Ampere."
_CLOCK_EVENT = "1 while this reason affects the clocks, else 0."
_THROTTLE = "Time during which clocks were held down, by reason. Reasons overlap: do not add them up."


def _ecc(error: str, lifetime: str, field: int, dcgm: str, dcgm1x: str, words: str) -> Metric:
    # DCGM kept these names in 4.9.
    alias = Alias(dcgm, COUNT, f"Total number of {words} ECC errors.", Kind.COUNTER)
    return Metric(
        name="ecc_errors_total",
        kind=Kind.COUNTER,
        help=_ECC,
        labels=(("error", error), ("lifetime", lifetime)),
        read=Field(field, COUNT),
        cadence=Cadence.SLOW,
        dcgm=alias,
        dcgm49=alias,
        dcgm1x=Alias(dcgm1x, COUNT, alias.help, Kind.COUNTER),
        otel=OtelName(
            "hw.errors",
            (("hw.type", "gpu"), ("error.type", f"ecc.{error}"), ("podgpu.lifetime", lifetime)),
            unit="{error}",
        ),
    )


def _throttle(
    reason: str,
    field: int,
    violation: str = "",
    words: str = "",
    dcgm49: str = "",
    *,
    asked: bool = True,
) -> Metric:
    # The HELP of 1.x says microseconds, but its values have always been nanoseconds, so these are too.
    dcgm = Alias(
        f"DCGM_FI_DEV_{violation.upper()}_VIOLATION",
        NANOSECONDS,
        f"Throttling duration due to {words} (in ns).",
        Kind.COUNTER,
    )
    dcgm1x = Alias(
        f"dcgm_{violation}_violation",
        NANOSECONDS,
        f"Throttling duration due to {words} (in us).",
        Kind.COUNTER,
    )
    seconds = Alias(
        f"DCGM_FI_DEV_GPU_{dcgm49 or violation.upper()}_THROTTLE_SECONDS_TOTAL",
        SECONDS,
        f"Throttling duration due to {words} (in s).",
        Kind.COUNTER,
    )
    return Metric(
        name="throttle_seconds_total",
        kind=Kind.COUNTER,
        help=_THROTTLE,
        labels=(("reason", reason),),
        read=Field(field, NANOSECONDS),
        cadence=Cadence.SLOW,
        worth=Worth.DETAIL,
        asked=asked,
        dcgm=dcgm if violation else None,
        dcgm49=seconds if violation else None,
        dcgm1x=dcgm1x if violation else None,
    )


def _clock_event(reason: str, mask: int, *, asked: bool = False) -> Metric:
    return Metric(
        name="clock_event",
        kind=Kind.GAUGE,
        help=_CLOCK_EVENT,
        labels=(("reason", reason),),
        read=Call("CurrentClocksEventReasons", FLAG, bit=mask),
        worth=Worth.DETAIL,
        asked=asked,
    )


ERRORS: tuple[Metric, ...] = (
    Metric(
        name="recovery_action",
        kind=Kind.GAUGE,
        help="What the driver asks for: 0 nothing, 1 reset the GPU, 2 reboot the node, 3 drain "
        "peer-to-peer traffic, 4 drain and reset, 5 recover the IMEX domain, 6 reset the bus, 7 reboot all.",
        read=Field(230, COUNT),
        worth=Worth.CORE,
    ),
    Metric(
        name="xid_errors_total",
        kind=Kind.COUNTER,
        help="XID errors the driver raised since podgpu started, by XID.",
        own_labels=("xid",),
        worth=Worth.CORE,
        dcgm=Alias("DCGM_EXP_XID_ERRORS_TOTAL", COUNT, "Number of XID errors since start.", Kind.COUNTER),
        dcgm49=Alias("DCGM_EXP_XID_ERRORS_TOTAL", COUNT, "Number of XID errors since start.", Kind.COUNTER),
    ),
    Metric(
        name="xids_total",
        kind=Kind.COUNTER,
        help="XID errors of all kinds since podgpu started. It begins at 0, so that increase() sees the first one. "
        "Absent while the driver does not report the GPU's XIDs: see `podgpu_gpu_refused`.",
        worth=Worth.CORE,
        stability=Stability.EXPERIMENTAL,
    ),
    Metric(
        name="xid_last_timestamp_seconds",
        kind=Kind.GAUGE,
        help="When the last XID error was raised, in seconds since 1970. Absent until there is one.",
        worth=Worth.CORE,
    ),
    Metric(
        name="xid_last_code",
        kind=Kind.GAUGE,
        help="The last XID error raised. Absent until there is one.",
        worth=Worth.CORE,
        dcgm=Alias("DCGM_FI_DEV_XID_ERRORS", COUNT, "Value of the last XID error encountered."),
        dcgm49=Alias("DCGM_FI_DEV_XID_ERROR", COUNT, "Value of the last XID error encountered."),
        dcgm1x=Alias("dcgm_xid_errors", COUNT, "Value of the last XID error encountered."),
    ),
)

MEMORY_ERRORS: tuple[Metric, ...] = (
    Metric(
        name="ecc_enabled",
        kind=Kind.GAUGE,
        help="1 when ECC is on, 0 when it is off.",
        read=Field(1, FLAG),
        cadence=Cadence.SLOW,
        dcgm=Alias("DCGM_FI_DEV_ECC_CURRENT", FLAG, "Current ECC mode."),
        dcgm49=Alias("DCGM_FI_DEV_ECC_MODE", FLAG, "Current ECC mode."),
    ),
    _ecc(
        "corrected",
        "volatile",
        3,
        "DCGM_FI_DEV_ECC_SBE_VOL_TOTAL",
        "dcgm_ecc_sbe_volatile_total",
        "single-bit volatile",
    ),
    _ecc(
        "uncorrected",
        "volatile",
        4,
        "DCGM_FI_DEV_ECC_DBE_VOL_TOTAL",
        "dcgm_ecc_dbe_volatile_total",
        "double-bit volatile",
    ),
    _ecc(
        "corrected",
        "aggregate",
        5,
        "DCGM_FI_DEV_ECC_SBE_AGG_TOTAL",
        "dcgm_ecc_sbe_aggregate_total",
        "single-bit persistent",
    ),
    _ecc(
        "uncorrected",
        "aggregate",
        6,
        "DCGM_FI_DEV_ECC_DBE_AGG_TOTAL",
        "dcgm_ecc_dbe_aggregate_total",
        "double-bit persistent",
    ),
    Metric(
        name="remapped_rows",
        kind=Kind.GAUGE,
        help=_REMAPPED,
        labels=(("error", "corrected"),),
        read=Field(142, COUNT),
        cadence=Cadence.SLOW,
        dcgm=Alias(
            "DCGM_FI_DEV_CORRECTABLE_REMAPPED_ROWS",
            COUNT,
            "Number of remapped rows for correctable errors",
            Kind.COUNTER,
        ),
        dcgm49=Alias(
            "DCGM_FI_DEV_ROW_REMAP_CORRECTABLE_TOTAL",
            COUNT,
            "Number of remapped rows for correctable errors",
            Kind.COUNTER,
        ),
    ),
    Metric(
        name="remapped_rows",
        kind=Kind.GAUGE,
        help=_REMAPPED,
        labels=(("error", "uncorrected"),),
        read=Field(143, COUNT),
        cadence=Cadence.SLOW,
        dcgm=Alias(
            "DCGM_FI_DEV_UNCORRECTABLE_REMAPPED_ROWS",
            COUNT,
            "Number of remapped rows for uncorrectable errors",
            Kind.COUNTER,
        ),
        dcgm49=Alias(
            "DCGM_FI_DEV_ROW_REMAP_UNCORRECTABLE_TOTAL",
            COUNT,
            "Number of remapped rows for uncorrectable errors",
            Kind.COUNTER,
        ),
    ),
    Metric(
        name="row_remap_pending",
        kind=Kind.GAUGE,
        help="1 when rows wait for a reset of the GPU to be remapped, else 0.",
        read=Field(144, FLAG),
        cadence=Cadence.SLOW,
        dcgm=Alias("DCGM_FI_DEV_ROW_REMAP_PENDING", FLAG, "Whether remapping of rows is pending"),
        dcgm49=Alias("DCGM_FI_DEV_ROW_REMAP_PENDING", FLAG, "Whether remapping of rows is pending"),
    ),
    Metric(
        name="row_remap_failed",
        kind=Kind.GAUGE,
        help="1 when remapping a row has failed, which calls for a new card, else 0.",
        read=Field(145, FLAG),
        cadence=Cadence.SLOW,
        worth=Worth.CORE,
        dcgm=Alias("DCGM_FI_DEV_ROW_REMAP_FAILURE", FLAG, "Whether remapping of rows has failed"),
        dcgm49=Alias("DCGM_FI_DEV_ROW_REMAP_FAILED", FLAG, "Whether remapping of rows has failed"),
    ),
    *(
        Metric(
            name="retired_pages",
            kind=Kind.GAUGE,
            help=_RETIRED,
            labels=(("error", error),),
            read=Field(field, COUNT),
            cadence=Cadence.SLOW,
            dcgm=Alias(f"DCGM_FI_DEV_RETIRED_{short}", COUNT, words, Kind.COUNTER),
            dcgm49=Alias(f"DCGM_FI_DEV_PAGE_RETIRED_{short}_TOTAL", COUNT, words, Kind.COUNTER),
            dcgm1x=Alias(f"dcgm_retired_pages_{short.lower()}", COUNT, words, Kind.COUNTER),
        )
        for error, field, short, words in (
            ("corrected", 29, "SBE", "Total number of retired pages due to single-bit errors."),
            ("uncorrected", 30, "DBE", "Total number of retired pages due to double-bit errors."),
        )
    ),
    Metric(
        name="retired_pages_pending",
        kind=Kind.GAUGE,
        help="1 when pages wait for a reboot to be retired, else 0. Cards before Ampere.",
        read=Field(31, FLAG),
        cadence=Cadence.SLOW,
        dcgm=Alias(
            "DCGM_FI_DEV_RETIRED_PENDING", FLAG, "Total number of pages pending retirement.", Kind.COUNTER
        ),
        dcgm49=Alias(
            "DCGM_FI_DEV_PAGE_RETIRED_PENDING",
            FLAG,
            "Total number of pages pending retirement.",
            Kind.COUNTER,
        ),
        dcgm1x=Alias(
            "dcgm_retired_pages_pending", FLAG, "Total number of pages pending retirement.", Kind.COUNTER
        ),
    ),
)

THROTTLING: tuple[Metric, ...] = (
    _throttle("power", 74, "power", "power constraints"),
    _throttle("thermal", 75, "thermal", "thermal constraints"),
    _throttle("sync_boost", 76, "sync_boost", "sync-boost constraints", asked=False),
    _throttle("board_limit", 77, "board_limit", "board limit constraints", "LIMIT", asked=False),
    _throttle("low_utilization", 78, "low_util", "low utilization", asked=False),
    _throttle("reliability", 79, "reliability", "reliability constraints", asked=False),
    Metric(
        name="throttle_seconds_total",
        kind=Kind.COUNTER,
        help=_THROTTLE,
        labels=(("reason", "app_clocks"),),
        read=Field(80, NANOSECONDS),
        cadence=Cadence.SLOW,
        worth=Worth.DETAIL,
        dcgm=Alias(
            "DCGM_FI_DEV_TOTAL_APP_CLOCKS_VIOLATION",
            NANOSECONDS,
            "Total duration of clocks below the application clocks (in ns).",
            Kind.COUNTER,
        ),
        dcgm49=Alias(
            "DCGM_FI_DEV_GPU_APP_THROTTLE_SECONDS_TOTAL",
            SECONDS,
            "Total duration of clocks below the application clocks (in s).",
            Kind.COUNTER,
        ),
        dcgm1x=Alias(
            "dcgm_app_clock_violation", NANOSECONDS, "Total throttling duration (in us).", Kind.COUNTER
        ),
    ),
    Metric(
        name="throttle_seconds_total",
        kind=Kind.COUNTER,
        help=_THROTTLE,
        labels=(("reason", "base_clocks"),),
        read=Field(81, NANOSECONDS),
        cadence=Cadence.SLOW,
        worth=Worth.DETAIL,
        dcgm=Alias(
            "DCGM_FI_DEV_TOTAL_BASE_CLOCKS_VIOLATION",
            NANOSECONDS,
            "Total duration of clocks below the base clocks (in ns).",
            Kind.COUNTER,
        ),
        dcgm49=Alias(
            "DCGM_FI_DEV_GPU_BASE_THROTTLE_SECONDS_TOTAL",
            SECONDS,
            "Total duration of clocks below the base clocks (in s).",
            Kind.COUNTER,
        ),
    ),
    _throttle("software_thermal", 269),
    _throttle("hardware_thermal", 270),
    _throttle("hardware_power_brake", 271),
    _clock_event("idle", 0x1),
    _clock_event("app_clocks", 0x2),
    _clock_event("software_power_cap", 0x4, asked=True),
    _clock_event("hardware_slowdown", 0x8, asked=True),
    _clock_event("sync_boost", 0x10),
    _clock_event("software_thermal", 0x20, asked=True),
    _clock_event("hardware_thermal", 0x40, asked=True),
    _clock_event("hardware_power_brake", 0x80, asked=True),
    _clock_event("display_clocks", 0x100),
)
