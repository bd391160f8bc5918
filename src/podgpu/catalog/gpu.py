"""The card itself: presence, use, memory, clocks."""

from typing import Any

from podgpu.catalog.row import Alias, Cadence, Call, Kind, Metric, OtelName, Stability, Worth
from podgpu.catalog.units import (
    BYTES,
    COMPUTE_MODE,
    FAN_PERCENT,
    FLAG,
    HERTZ,
    MEGAHERTZ,
    MEMORY_BYTES,
    MIB,
    PERCENT,
    PERFORMANCE_STATE,
    RATIO,
)

# `version` of NVML's second memory structure, which separates reserved memory from used memory.
MEMORY_V2 = 0x02000028
# nvmlClockType_t
GRAPHICS, SM, MEMORY, VIDEO = 0, 1, 2, 3

_CLOCK = "Current clock frequency."
_CLOCK_MAX = "Highest clock frequency the card supports."

_VGPU_LICENSE = 1  # nvmlGridLicenseFeatureCode_t


def _licensed(answer: Any) -> float | None:
    """Whether a license for virtual GPUs is in force. None if the driver lists no such license.

    A card that needs none counts as without one, as in DCGM.
    """
    if not answer.isGridLicenseSupported:
        return 0.0
    listed = answer.gridLicensableFeatures[: answer.licensableFeaturesCount]
    states = (feature.featureState for feature in listed if feature.featureCode == _VGPU_LICENSE)
    return next((float(state > 0) for state in states), None)


PRESENCE: tuple[Metric, ...] = (
    Metric(
        name="up",
        kind=Kind.GAUGE,
        help="1 when the GPU answers, 0 when it does not.",
        worth=Worth.VITAL,
        otel=OtelName("hw.status", (("hw.type", "gpu"), ("hw.state", "ok")), up_down=True, unit="1"),
    ),
    Metric(
        name="info",
        kind=Kind.INFO,
        help="What the GPU is.",
        own_labels=(
            "model",
            "driver_version",
            "pci_bus_id",
            "minor",
            "architecture",
            "compute_capability",
            "vbios",
            "mig_enabled",
        ),
        worth=Worth.VITAL,
    ),
    Metric(
        name="problem",
        kind=Kind.GAUGE,
        help="Why a GPU does not answer, and the call at fault. Present, and 1, only while it does not.",
        own_labels=("reason", "call"),
        worth=Worth.VITAL,
    ),
    Metric(
        name="refused",
        kind=Kind.GAUGE,
        help="1 for each call that the driver refuses and should answer. What it would read is absent.",
        own_labels=("reason", "call"),
        worth=Worth.VITAL,
    ),
    Metric(
        name="processes",
        kind=Kind.GAUGE,
        help="Number of processes that hold the GPU: compute, graphics and MPS clients.",
    ),
    Metric(
        name="vgpu_licensed",
        kind=Kind.GAUGE,
        help="1 when a license for virtual GPUs is in force, else 0: also where the card needs none.",
        read=Call("GridLicensableFeatures", FLAG, pick=_licensed),
        cadence=Cadence.SLOW,
        worth=Worth.DETAIL,
        dcgm=Alias("DCGM_FI_DEV_VGPU_LICENSE_STATUS", FLAG, "vGPU License status"),
        dcgm49=Alias("DCGM_FI_DEV_VGPU_LICENSE_STATUS", FLAG, "vGPU License status"),
    ),
)

USE: tuple[Metric, ...] = (
    Metric(
        name="utilization_ratio",
        kind=Kind.GAUGE,
        help="Share of the last sample period during which at least one kernel ran. Absent with MIG on.",
        read=Call("UtilizationRates", PERCENT, pick="gpu"),
        worth=Worth.CORE,
        dcgm=Alias("DCGM_FI_DEV_GPU_UTIL", PERCENT, "GPU utilization (in %)."),
        dcgm49=Alias("DCGM_FI_DEV_GPU_UTIL_RATIO", RATIO, "GPU utilization (0 to 1)."),
        dcgm1x=Alias("dcgm_gpu_utilization", PERCENT, "GPU utilization (in %)."),
        otel=OtelName("hw.gpu.utilization", (("hw.gpu.task", "general"),)),
    ),
    Metric(
        name="memory_utilization_ratio",
        kind=Kind.GAUGE,
        help="Share of the last sample period during which device memory was read or written.",
        read=Call("UtilizationRates", PERCENT, pick="memory"),
        worth=Worth.CORE,
        dcgm=Alias("DCGM_FI_DEV_MEM_COPY_UTIL", PERCENT, "Memory utilization (in %)."),
        dcgm49=Alias("DCGM_FI_DEV_MEMORY_UTIL_RATIO", RATIO, "Memory utilization (0 to 1)."),
        dcgm1x=Alias("dcgm_mem_copy_utilization", PERCENT, "Memory utilization (in %)."),
    ),
    Metric(
        name="encoder_utilization_ratio",
        kind=Kind.GAUGE,
        help="Share of the last sample period during which the video encoders were busy.",
        read=Call("EncoderUtilization", PERCENT, pick=0),
        dcgm=Alias("DCGM_FI_DEV_ENC_UTIL", PERCENT, "Encoder utilization (in %)."),
        dcgm49=Alias("DCGM_FI_DEV_ENC_UTIL_RATIO", RATIO, "Encoder utilization (0 to 1)."),
        dcgm1x=Alias("dcgm_enc_utilization", PERCENT, "Encoder utilization (in %)."),
        otel=OtelName("hw.gpu.utilization", (("hw.gpu.task", "encoder"),)),
    ),
    Metric(
        name="decoder_utilization_ratio",
        kind=Kind.GAUGE,
        help="Share of the last sample period during which the video decoders were busy.",
        read=Call("DecoderUtilization", PERCENT, pick=0),
        dcgm=Alias("DCGM_FI_DEV_DEC_UTIL", PERCENT, "Decoder utilization (in %)."),
        dcgm49=Alias("DCGM_FI_DEV_DEC_UTIL_RATIO", RATIO, "Decoder utilization (0 to 1)."),
        dcgm1x=Alias("dcgm_dec_utilization", PERCENT, "Decoder utilization (in %)."),
        otel=OtelName("hw.gpu.utilization", (("hw.gpu.task", "decoder"),)),
    ),
    Metric(
        name="jpeg_utilization_ratio",
        kind=Kind.GAUGE,
        help="Share of the last sample period during which the JPEG engines were busy.",
        read=Call("JpgUtilization", PERCENT, pick=0),
    ),
    Metric(
        name="ofa_utilization_ratio",
        kind=Kind.GAUGE,
        help="Share of the last sample period during which the optical flow engines were busy.",
        read=Call("OfaUtilization", PERCENT, pick=0),
    ),
    Metric(
        name="performance_state",
        kind=Kind.GAUGE,
        help="Performance state, from 0 (fastest) to 15 (slowest).",
        read=Call("PerformanceState", PERFORMANCE_STATE),
        dcgm=Alias("DCGM_FI_DEV_PSTATE", PERFORMANCE_STATE, "Performance state, 0 (highest) to 15."),
        dcgm49=Alias("DCGM_FI_DEV_GPU_PSTATE", PERFORMANCE_STATE, "Performance state, 0 (highest) to 15."),
    ),
    Metric(
        name="compute_mode",
        kind=Kind.GAUGE,
        help="Who may open the card: 0 anybody, 2 nobody, 3 one process, such as an MPS server.",
        read=Call("ComputeMode", COMPUTE_MODE),
        cadence=Cadence.SLOW,
        worth=Worth.DETAIL,
        dcgm=Alias("DCGM_FI_DEV_COMPUTE_MODE", COMPUTE_MODE, "Compute mode of the device."),
        dcgm49=Alias("DCGM_FI_DEV_GPU_COMPUTE_MODE", COMPUTE_MODE, "Compute mode of the device."),
    ),
    Metric(
        name="fan_speed_ratio",
        kind=Kind.GAUGE,
        help="Intended fan speed as a share of full speed. Cards cooled by their server have none.",
        read=Call("FanSpeed", FAN_PERCENT),
        dcgm=Alias("DCGM_FI_DEV_FAN_SPEED", FAN_PERCENT, "Fan speed (in %)."),
        dcgm49=Alias("DCGM_FI_DEV_FAN_SPEED_RATIO", RATIO, "Fan speed (1 is full speed)."),
    ),
)

MEMORY_ROWS: tuple[Metric, ...] = (
    Metric(
        name="memory_total_bytes",
        kind=Kind.GAUGE,
        help="Size of the device memory.",
        read=Call("MemoryInfo", MEMORY_BYTES, (MEMORY_V2,), "total"),
        worth=Worth.CORE,
        mig=True,
        dcgm=Alias("DCGM_FI_DEV_FB_TOTAL", MIB, "Framebuffer memory total (in MiB)."),
        dcgm49=Alias("DCGM_FI_DEV_FB_CAPACITY_BYTES", BYTES, "Framebuffer memory total (in bytes)."),
        otel=OtelName("hw.gpu.memory.limit", up_down=True),
    ),
    Metric(
        name="memory_used_bytes",
        kind=Kind.GAUGE,
        help="Device memory in use, without what the driver reserves for itself.",
        read=Call("MemoryInfo", MEMORY_BYTES, (MEMORY_V2,), "used"),
        worth=Worth.CORE,
        mig=True,
        dcgm=Alias("DCGM_FI_DEV_FB_USED", MIB, "Framebuffer memory used (in MiB)."),
        dcgm49=Alias("DCGM_FI_DEV_FB_USED_BYTES", BYTES, "Framebuffer memory used (in bytes)."),
        dcgm1x=Alias("dcgm_fb_used", MIB, "Framebuffer memory used (in MiB)."),
        otel=OtelName("hw.gpu.memory.usage", up_down=True),
    ),
    Metric(
        name="memory_free_bytes",
        kind=Kind.GAUGE,
        help="Device memory that is free.",
        read=Call("MemoryInfo", MEMORY_BYTES, (MEMORY_V2,), "free"),
        worth=Worth.CORE,
        mig=True,
        dcgm=Alias("DCGM_FI_DEV_FB_FREE", MIB, "Framebuffer memory free (in MiB)."),
        dcgm49=Alias("DCGM_FI_DEV_FB_FREE_BYTES", BYTES, "Framebuffer memory free (in bytes)."),
        dcgm1x=Alias("dcgm_fb_free", MIB, "Framebuffer memory free (in MiB)."),
    ),
    Metric(
        name="memory_reserved_bytes",
        kind=Kind.GAUGE,
        help="Device memory the driver reserves for itself. Used, free and reserved add up to the total.",
        read=Call("MemoryInfo", MEMORY_BYTES, (MEMORY_V2,), "reserved"),
        worth=Worth.CORE,
        mig=True,
        dcgm=Alias("DCGM_FI_DEV_FB_RESERVED", MIB, "Framebuffer memory reserved (in MiB)."),
        dcgm49=Alias("DCGM_FI_DEV_FB_RESERVED_BYTES", BYTES, "Framebuffer memory reserved (in bytes)."),
    ),
    Metric(
        name="bar1_memory_total_bytes",
        kind=Kind.GAUGE,
        help="Size of BAR1, the window through which the host and other devices reach device memory.",
        read=Call("BAR1MemoryInfo", MEMORY_BYTES, pick="bar1Total"),
        cadence=Cadence.SLOW,
        dcgm=Alias("DCGM_FI_DEV_BAR1_TOTAL", MIB, "BAR1 memory total (in MiB)."),
        dcgm49=Alias("DCGM_FI_DEV_BAR1_CAPACITY_BYTES", BYTES, "BAR1 memory total (in bytes)."),
    ),
    Metric(
        name="bar1_memory_used_bytes",
        kind=Kind.GAUGE,
        help="Part of BAR1 that is mapped.",
        read=Call("BAR1MemoryInfo", MEMORY_BYTES, pick="bar1Used"),
        cadence=Cadence.SLOW,
        dcgm=Alias("DCGM_FI_DEV_BAR1_USED", MIB, "BAR1 memory used (in MiB)."),
        dcgm49=Alias("DCGM_FI_DEV_BAR1_USED_BYTES", BYTES, "BAR1 memory used (in bytes)."),
    ),
)

CLOCKS: tuple[Metric, ...] = (
    Metric(
        name="clock_hertz",
        kind=Kind.GAUGE,
        help=_CLOCK,
        labels=(("clock", "sm"),),
        read=Call("ClockInfo", MEGAHERTZ, (SM,)),
        dcgm=Alias("DCGM_FI_DEV_SM_CLOCK", MEGAHERTZ, "SM clock frequency (in MHz)."),
        dcgm49=Alias("DCGM_FI_DEV_SM_CLOCK_HERTZ", HERTZ, "SM clock frequency (in Hz)."),
        dcgm1x=Alias("dcgm_sm_clock", MEGAHERTZ, "SM clock frequency (in MHz)."),
    ),
    Metric(
        name="clock_hertz",
        kind=Kind.GAUGE,
        help=_CLOCK,
        labels=(("clock", "memory"),),
        read=Call("ClockInfo", MEGAHERTZ, (MEMORY,)),
        dcgm=Alias("DCGM_FI_DEV_MEM_CLOCK", MEGAHERTZ, "Memory clock frequency (in MHz)."),
        dcgm49=Alias("DCGM_FI_DEV_MEMORY_CLOCK_HERTZ", HERTZ, "Memory clock frequency (in Hz)."),
        dcgm1x=Alias("dcgm_memory_clock", MEGAHERTZ, "Memory clock frequency (in MHz)."),
    ),
    Metric(
        name="clock_hertz",
        kind=Kind.GAUGE,
        help=_CLOCK,
        labels=(("clock", "graphics"),),
        read=Call("ClockInfo", MEGAHERTZ, (GRAPHICS,)),
    ),
    Metric(
        name="clock_hertz",
        kind=Kind.GAUGE,
        help=_CLOCK,
        labels=(("clock", "video"),),
        read=Call("ClockInfo", MEGAHERTZ, (VIDEO,)),
        dcgm=Alias("DCGM_FI_DEV_VIDEO_CLOCK", MEGAHERTZ, "Video encoder/decoder clock frequency (in MHz)."),
        dcgm49=Alias(
            "DCGM_FI_DEV_VIDEO_CLOCK_HERTZ", HERTZ, "Video encoder/decoder clock frequency (in Hz)."
        ),
    ),
    Metric(
        name="clock_max_hertz",
        kind=Kind.GAUGE,
        help=_CLOCK_MAX,
        labels=(("clock", "sm"),),
        read=Call("MaxClockInfo", MEGAHERTZ, (SM,)),
        cadence=Cadence.SLOW,
        dcgm=Alias("DCGM_FI_DEV_MAX_SM_CLOCK", MEGAHERTZ, "Maximum supported SM clock frequency (in MHz)."),
        dcgm49=Alias(
            "DCGM_FI_DEV_SM_MAX_CLOCK_HERTZ", HERTZ, "Maximum supported SM clock frequency (in Hz)."
        ),
    ),
    Metric(
        name="clock_max_hertz",
        kind=Kind.GAUGE,
        help=_CLOCK_MAX,
        labels=(("clock", "memory"),),
        read=Call("MaxClockInfo", MEGAHERTZ, (MEMORY,)),
        cadence=Cadence.SLOW,
        dcgm=Alias(
            "DCGM_FI_DEV_MAX_MEM_CLOCK", MEGAHERTZ, "Maximum supported memory clock frequency (in MHz)."
        ),
        dcgm49=Alias(
            "DCGM_FI_DEV_MEMORY_MAX_CLOCK_HERTZ", HERTZ, "Maximum supported memory clock frequency (in Hz)."
        ),
    ),
    *(
        Metric(
            name="clock_application_hertz",
            kind=Kind.GAUGE,
            help="Clock frequency that the card aims at while it works. Newer drivers no longer report it.",
            labels=(("clock", clock),),
            read=Call("ApplicationsClock", MEGAHERTZ, (kind,)),
            cadence=Cadence.SLOW,
            worth=Worth.DETAIL,
            stability=Stability.EXPERIMENTAL,
            dcgm=Alias(
                f"DCGM_FI_DEV_APP_{short}_CLOCK", MEGAHERTZ, f"{words} application clock frequency (in MHz)."
            ),
            dcgm49=Alias(
                f"DCGM_FI_DEV_{long}_APP_CLOCK_HERTZ", HERTZ, f"{words} application clock frequency (in Hz)."
            ),
        )
        for clock, kind, short, long, words in (
            ("graphics", GRAPHICS, "SM", "SM", "SM"),
            ("memory", MEMORY, "MEM", "MEMORY", "Memory"),
        )
    ),
)
