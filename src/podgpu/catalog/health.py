"""What is wrong with a card: memory errors, XIDs, throttling, the action the driver asks for."""

from podgpu.catalog.row import (
    CORE,
    COUNT,
    DETAIL,
    EXPERIMENTAL,
    FLAG,
    NANOSECONDS,
    SLOW,
    Alias,
    Call,
    Field,
    Kind,
    Metric,
    OtelName,
    counter,
    gauge,
)

# Counts over the last minutes. They have no row: only pages in dcgm-exporter's words show them.
WINDOW_SECONDS = 300
XID_ERRORS_RECENT, CLOCK_EVENTS_RECENT = "xid_errors_recent", "clock_events_recent"
SRAM = 7  # nvmlMemoryLocation_t


def _ecc(error: str, lifetime: str, field: int, dcgm: str, words: str) -> Metric:
    return counter(
        "podgpu_gpu_ecc_errors_total",
        "Memory errors found by ECC. volatile: since the driver was loaded; aggregate: over the card's life.",
        Field(field, COUNT),
        labels={"error": error, "lifetime": lifetime},
        cadence=SLOW,
        dcgm=dcgm,
        dcgm_help=f"Total number of {words} ECC errors.",
        otel=OtelName(
            "hw.errors",
            (("hw.type", "gpu"), ("error.type", f"ecc.{error}"), ("podgpu.lifetime", lifetime)),
            unit="{error}",
        ),
    )


def _throttle(
    reason: str,
    field: int,
    dcgm: str = "",
    words: str = "",
    *,
    dcgm1x: Alias | None = None,
    asked: bool = False,
) -> Metric:
    return counter(
        "podgpu_gpu_throttle_seconds_total",
        "Time during which clocks were throttled, by reason. Reasons overlap: do not add them up.",
        Field(field, NANOSECONDS),
        labels={"reason": reason},
        cadence=SLOW,
        worth=DETAIL,
        asked=asked,
        dcgm=dcgm,
        dcgm_help=f"{words} ({{unit}}).",
        dcgm1x=dcgm1x,
    )


def _violation(reason: str, field: int, violation: str, words: str, dcgm49: str = "", *, asked: bool = False) -> Metric:
    words = f"Throttling duration due to {words}"
    name = violation.upper()
    # The HELP of 1.x says microseconds, but its values have always been nanoseconds, so these are too.
    return _throttle(
        reason,
        field,
        f"DCGM_FI_DEV_{name}_VIOLATION DCGM_FI_DEV_GPU_{dcgm49 or name}_THROTTLE_SECONDS_TOTAL",
        words,
        dcgm1x=Alias(f"dcgm_{violation}_violation", NANOSECONDS, f"{words} (in us).", Kind.COUNTER),
        asked=asked,
    )


def _clock_event(reason: str, mask: int, *, asked: bool = False) -> Metric:
    return gauge(
        "podgpu_gpu_clock_event",
        "1 while this reason affects the clocks, else 0.",
        Call("CurrentClocksEventReasons", FLAG, bit=mask),
        labels={"reason": reason},
        worth=DETAIL,
        asked=asked,
    )


ERRORS: tuple[Metric, ...] = (
    gauge(
        "podgpu_gpu_recovery_action",
        "What the driver asks for: 0 nothing, 1 reset the GPU, 2 reboot the node, 3 drain peer-to-peer traffic, "
        "4 drain and reset, 5 recover the IMEX domain, 6 reset the bus, 7 reboot all.",
        Field(230, COUNT),
        worth=CORE,
    ),
    counter(
        "podgpu_gpu_xid_errors_total",
        "XID errors the driver raised since podgpu started, by XID.",
        own_labels=("xid",),
        worth=CORE,
        dcgm="DCGM_EXP_XID_ERRORS_TOTAL =",
        dcgm_help="Number of XID errors since start.",
    ),
    counter(
        "podgpu_gpu_xids_total",
        "XID errors of all kinds since podgpu started. It begins at 0, so that increase() sees the first one. "
        "Absent while the driver does not report the GPU's XIDs: see `podgpu_gpu_refused`.",
        worth=CORE,
        stability=EXPERIMENTAL,
    ),
    gauge(
        "podgpu_gpu_xid_last_timestamp_seconds",
        "When the last XID error was raised, in seconds since 1970. Absent until there is one.",
        worth=CORE,
    ),
    gauge(
        "podgpu_gpu_xid_last_code",
        "The last XID error raised. Absent until there is one.",
        worth=CORE,
        dcgm="DCGM_FI_DEV_XID_ERRORS DCGM_FI_DEV_XID_ERROR dcgm_xid_errors",
        dcgm_help="Value of the last XID error encountered.",
    ),
)

MEMORY_ERRORS: tuple[Metric, ...] = (
    gauge(
        "podgpu_gpu_ecc_enabled",
        "1 when ECC is on, 0 when it is off.",
        Field(1, FLAG),
        cadence=SLOW,
        dcgm="DCGM_FI_DEV_ECC_CURRENT DCGM_FI_DEV_ECC_MODE",
        dcgm_help="Current ECC mode.",
    ),
    *(
        _ecc(error, lifetime, field, f"DCGM_FI_DEV_ECC_{dcgm}_TOTAL = dcgm_ecc_{dcgm1x}_total", words)
        for error, lifetime, field, dcgm, dcgm1x, words in (
            ("corrected", "volatile", 3, "SBE_VOL", "sbe_volatile", "single-bit volatile"),
            ("uncorrected", "volatile", 4, "DBE_VOL", "dbe_volatile", "double-bit volatile"),
            ("corrected", "aggregate", 5, "SBE_AGG", "sbe_aggregate", "single-bit persistent"),
            ("uncorrected", "aggregate", 6, "DBE_AGG", "dbe_aggregate", "double-bit persistent"),
        )
    ),
    *(
        counter(
            "podgpu_gpu_ecc_sram_errors_total",
            "Memory errors found by ECC in the chip itself, where no row can be remapped. Lifetimes as above.",
            Call("MemoryErrorCounter", COUNT, (error_type, counter_type, SRAM)),
            labels={"error": error, "lifetime": lifetime},
            cadence=SLOW,
            worth=DETAIL,
            stability=EXPERIMENTAL,
        )
        for counter_type, lifetime in enumerate(("volatile", "aggregate"))
        for error_type, error in enumerate(("corrected", "uncorrected"))
    ),
    *(
        gauge(
            "podgpu_gpu_remapped_rows",
            "Rows of device memory replaced by spare ones, by the kind of error.",
            Field(field, COUNT),
            labels={"error": error},
            cadence=SLOW,
            dcgm=f"DCGM_FI_DEV_{dcgm}_REMAPPED_ROWS DCGM_FI_DEV_ROW_REMAP_{dcgm}_TOTAL",
            dcgm_help=f"Number of remapped rows for {dcgm.lower()} errors",
            dcgm_kind=Kind.COUNTER,
        )
        for error, field, dcgm in (("corrected", 142, "CORRECTABLE"), ("uncorrected", 143, "UNCORRECTABLE"))
    ),
    gauge(
        "podgpu_gpu_row_remap_pending",
        "1 when rows wait for a reset of the GPU to be remapped, else 0.",
        Field(144, FLAG),
        cadence=SLOW,
        dcgm="DCGM_FI_DEV_ROW_REMAP_PENDING =",
        dcgm_help="Whether remapping of rows is pending",
    ),
    gauge(
        "podgpu_gpu_row_remap_failed",
        "1 when remapping a row has failed, which calls for a new card, else 0.",
        Field(145, FLAG),
        cadence=SLOW,
        worth=CORE,
        dcgm="DCGM_FI_DEV_ROW_REMAP_FAILURE DCGM_FI_DEV_ROW_REMAP_FAILED",
        dcgm_help="Whether remapping of rows has failed",
    ),
    *(
        gauge(
            "podgpu_gpu_retired_pages",
            "Pages of device memory taken out of use, by the kind of error. Cards before Ampere.",
            Field(field, COUNT),
            labels={"error": error},
            cadence=SLOW,
            dcgm=f"DCGM_FI_DEV_RETIRED_{short} DCGM_FI_DEV_PAGE_RETIRED_{short}_TOTAL "
            f"dcgm_retired_pages_{short.lower()}",
            dcgm_help=words,
            dcgm_kind=Kind.COUNTER,
        )
        for error, field, short, words in (
            ("corrected", 29, "SBE", "Total number of retired pages due to single-bit errors."),
            ("uncorrected", 30, "DBE", "Total number of retired pages due to double-bit errors."),
        )
    ),
    gauge(
        "podgpu_gpu_retired_pages_pending",
        "1 when pages wait for a reboot to be retired, else 0. Cards before Ampere.",
        Field(31, FLAG),
        cadence=SLOW,
        dcgm="DCGM_FI_DEV_RETIRED_PENDING DCGM_FI_DEV_PAGE_RETIRED_PENDING dcgm_retired_pages_pending",
        dcgm_help="Total number of pages pending retirement.",
        dcgm_kind=Kind.COUNTER,
    ),
)

THROTTLING: tuple[Metric, ...] = (
    _violation("power", 74, "power", "power constraints", asked=True),
    _violation("thermal", 75, "thermal", "thermal constraints", asked=True),
    _violation("sync_boost", 76, "sync_boost", "sync-boost constraints"),
    _violation("board_limit", 77, "board_limit", "board limit constraints", "LIMIT"),
    _violation("low_utilization", 78, "low_util", "low utilization"),
    _violation("reliability", 79, "reliability", "reliability constraints"),
    _throttle(
        "app_clocks",
        80,
        "DCGM_FI_DEV_TOTAL_APP_CLOCKS_VIOLATION DCGM_FI_DEV_GPU_APP_THROTTLE_SECONDS_TOTAL",
        "Total duration of clocks below the application clocks",
        dcgm1x=Alias("dcgm_app_clock_violation", NANOSECONDS, "Total throttling duration (in us).", Kind.COUNTER),
    ),
    _throttle(
        "base_clocks",
        81,
        "DCGM_FI_DEV_TOTAL_BASE_CLOCKS_VIOLATION DCGM_FI_DEV_GPU_BASE_THROTTLE_SECONDS_TOTAL",
        "Total duration of clocks below the base clocks",
    ),
    _throttle("software_thermal", 269, asked=True),
    _throttle("hardware_thermal", 270, asked=True),
    _throttle("hardware_power_brake", 271, asked=True),
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
