"""The card itself: presence, use, memory, clocks."""

from typing import Any

from podgpu.catalog.row import (
    COMPUTE_MODE,
    CORE,
    DETAIL,
    EXPERIMENTAL,
    FAN_PERCENT,
    FLAG,
    MEGAHERTZ,
    MEMORY_BYTES,
    MIB,
    PERCENT,
    PERFORMANCE_STATE,
    RATIO,
    SLOW,
    VITAL,
    Alias,
    Call,
    Metric,
    OtelName,
    gauge,
    info,
)

# `version` of NVML's second memory structure, which separates reserved memory from used memory.
MEMORY_V2 = 0x02000028
# nvmlClockType_t
GRAPHICS, SM, MEMORY, VIDEO = 0, 1, 2, 3

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
    gauge(
        "podgpu_gpu_up",
        "1 when the GPU answers, 0 when it does not.",
        worth=VITAL,
        otel=OtelName("hw.status", (("hw.type", "gpu"), ("hw.state", "ok")), up_down=True, unit="1"),
    ),
    info(
        "podgpu_gpu_info",
        "What the GPU is.",
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
        worth=VITAL,
    ),
    gauge(
        "podgpu_gpu_problem",
        "Why a GPU does not answer, and the call at fault. Present, and 1, only while it does not.",
        own_labels=("reason", "call"),
        worth=VITAL,
    ),
    gauge(
        "podgpu_gpu_refused",
        "1 for each call that the driver refuses and should answer. What it would read is absent.",
        own_labels=("reason", "call"),
        worth=VITAL,
    ),
    gauge("podgpu_gpu_processes", "Number of processes that hold the GPU: compute, graphics and MPS clients."),
    gauge(
        "podgpu_gpu_vgpu_licensed",
        "1 when a license for virtual GPUs is in force, else 0: also where the card needs none.",
        Call("GridLicensableFeatures", FLAG, pick=_licensed),
        cadence=SLOW,
        worth=DETAIL,
        dcgm="DCGM_FI_DEV_VGPU_LICENSE_STATUS =",
        dcgm_help="vGPU License status",
    ),
)

USE: tuple[Metric, ...] = (
    gauge(
        "podgpu_gpu_utilization_ratio",
        "Share of the last sample period during which at least one kernel ran. Absent with MIG on.",
        Call("UtilizationRates", PERCENT, pick="gpu"),
        worth=CORE,
        dcgm="DCGM_FI_DEV_GPU_UTIL DCGM_FI_DEV_GPU_UTIL_RATIO dcgm_gpu_utilization",
        dcgm_help="GPU utilization ({unit}).",
        otel=OtelName("hw.gpu.utilization", (("hw.gpu.task", "general"),)),
    ),
    gauge(
        "podgpu_gpu_memory_utilization_ratio",
        "Share of the last sample period during which device memory was read or written.",
        Call("UtilizationRates", PERCENT, pick="memory"),
        worth=CORE,
        dcgm="DCGM_FI_DEV_MEM_COPY_UTIL DCGM_FI_DEV_MEMORY_UTIL_RATIO dcgm_mem_copy_utilization",
        dcgm_help="Memory utilization ({unit}).",
    ),
    gauge(
        "podgpu_gpu_encoder_utilization_ratio",
        "Share of the last sample period during which the video encoders were busy.",
        Call("EncoderUtilization", PERCENT, pick=0),
        dcgm="DCGM_FI_DEV_ENC_UTIL DCGM_FI_DEV_ENC_UTIL_RATIO dcgm_enc_utilization",
        dcgm_help="Encoder utilization ({unit}).",
        otel=OtelName("hw.gpu.utilization", (("hw.gpu.task", "encoder"),)),
    ),
    gauge(
        "podgpu_gpu_decoder_utilization_ratio",
        "Share of the last sample period during which the video decoders were busy.",
        Call("DecoderUtilization", PERCENT, pick=0),
        dcgm="DCGM_FI_DEV_DEC_UTIL DCGM_FI_DEV_DEC_UTIL_RATIO dcgm_dec_utilization",
        dcgm_help="Decoder utilization ({unit}).",
        otel=OtelName("hw.gpu.utilization", (("hw.gpu.task", "decoder"),)),
    ),
    gauge(
        "podgpu_gpu_jpeg_utilization_ratio",
        "Share of the last sample period during which the JPEG engines were busy.",
        Call("JpgUtilization", PERCENT, pick=0),
    ),
    gauge(
        "podgpu_gpu_ofa_utilization_ratio",
        "Share of the last sample period during which the optical flow engines were busy.",
        Call("OfaUtilization", PERCENT, pick=0),
    ),
    gauge(
        "podgpu_gpu_performance_state",
        "Performance state, from 0 (fastest) to 15 (slowest).",
        Call("PerformanceState", PERFORMANCE_STATE),
        dcgm="DCGM_FI_DEV_PSTATE DCGM_FI_DEV_GPU_PSTATE",
        dcgm_help="Performance state, 0 (highest) to 15.",
    ),
    gauge(
        "podgpu_gpu_compute_mode",
        "Which processes may open the card: 0 any, 2 none, 3 only one, such as an MPS server.",
        Call("ComputeMode", COMPUTE_MODE),
        cadence=SLOW,
        worth=DETAIL,
        dcgm="DCGM_FI_DEV_COMPUTE_MODE DCGM_FI_DEV_GPU_COMPUTE_MODE",
        dcgm_help="Compute mode of the device.",
    ),
    gauge(
        "podgpu_gpu_fan_speed_ratio",
        "Intended fan speed as a share of full speed. Cards cooled by their server have none.",
        Call("FanSpeed", FAN_PERCENT),
        dcgm="DCGM_FI_DEV_FAN_SPEED",
        dcgm_help="Fan speed ({unit}).",
        dcgm49=Alias("DCGM_FI_DEV_FAN_SPEED_RATIO", RATIO, "Fan speed (1 is full speed)."),
    ),
)

MEMORY_ROWS: tuple[Metric, ...] = (
    gauge(
        "podgpu_gpu_memory_total_bytes",
        "Size of the device memory.",
        Call("MemoryInfo", MEMORY_BYTES, (MEMORY_V2,), "total"),
        worth=CORE,
        mig=True,
        dcgm="DCGM_FI_DEV_FB_TOTAL DCGM_FI_DEV_FB_CAPACITY_BYTES",
        dcgm_help="Framebuffer memory total ({unit}).",
        dcgm_unit=MIB,
        otel=OtelName("hw.gpu.memory.limit", up_down=True),
    ),
    gauge(
        "podgpu_gpu_memory_used_bytes",
        "Device memory in use, without what the driver reserves for itself.",
        Call("MemoryInfo", MEMORY_BYTES, (MEMORY_V2,), "used"),
        worth=CORE,
        mig=True,
        dcgm="DCGM_FI_DEV_FB_USED DCGM_FI_DEV_FB_USED_BYTES dcgm_fb_used",
        dcgm_help="Framebuffer memory used ({unit}).",
        dcgm_unit=MIB,
        otel=OtelName("hw.gpu.memory.usage", up_down=True),
    ),
    gauge(
        "podgpu_gpu_memory_free_bytes",
        "Device memory that is free.",
        Call("MemoryInfo", MEMORY_BYTES, (MEMORY_V2,), "free"),
        worth=CORE,
        mig=True,
        dcgm="DCGM_FI_DEV_FB_FREE DCGM_FI_DEV_FB_FREE_BYTES dcgm_fb_free",
        dcgm_help="Framebuffer memory free ({unit}).",
        dcgm_unit=MIB,
    ),
    gauge(
        "podgpu_gpu_memory_reserved_bytes",
        "Device memory the driver reserves for itself. Used, free and reserved add up to the total.",
        Call("MemoryInfo", MEMORY_BYTES, (MEMORY_V2,), "reserved"),
        worth=CORE,
        mig=True,
        dcgm="DCGM_FI_DEV_FB_RESERVED DCGM_FI_DEV_FB_RESERVED_BYTES",
        dcgm_help="Framebuffer memory reserved ({unit}).",
        dcgm_unit=MIB,
    ),
    gauge(
        "podgpu_gpu_bar1_memory_total_bytes",
        "Size of BAR1, the window through which the host and other devices reach device memory.",
        Call("BAR1MemoryInfo", MEMORY_BYTES, pick="bar1Total"),
        cadence=SLOW,
        dcgm="DCGM_FI_DEV_BAR1_TOTAL DCGM_FI_DEV_BAR1_CAPACITY_BYTES",
        dcgm_help="BAR1 memory total ({unit}).",
        dcgm_unit=MIB,
    ),
    gauge(
        "podgpu_gpu_bar1_memory_used_bytes",
        "Part of BAR1 that is mapped.",
        Call("BAR1MemoryInfo", MEMORY_BYTES, pick="bar1Used"),
        cadence=SLOW,
        dcgm="DCGM_FI_DEV_BAR1_USED DCGM_FI_DEV_BAR1_USED_BYTES",
        dcgm_help="BAR1 memory used ({unit}).",
        dcgm_unit=MIB,
    ),
)

CLOCKS: tuple[Metric, ...] = (
    *(
        gauge(
            "podgpu_gpu_clock_hertz",
            "Current clock frequency.",
            Call("ClockInfo", MEGAHERTZ, (kind,)),
            labels={"clock": clock},
            dcgm=dcgm,
            dcgm_help=f"{words} clock frequency ({{unit}}).",
        )
        for clock, kind, dcgm, words in (
            ("sm", SM, "DCGM_FI_DEV_SM_CLOCK DCGM_FI_DEV_SM_CLOCK_HERTZ dcgm_sm_clock", "SM"),
            ("memory", MEMORY, "DCGM_FI_DEV_MEM_CLOCK DCGM_FI_DEV_MEMORY_CLOCK_HERTZ dcgm_memory_clock", "Memory"),
            ("graphics", GRAPHICS, "", ""),
            ("video", VIDEO, "DCGM_FI_DEV_VIDEO_CLOCK DCGM_FI_DEV_VIDEO_CLOCK_HERTZ", "Video encoder/decoder"),
        )
    ),
    *(
        gauge(
            "podgpu_gpu_clock_max_hertz",
            "Highest clock frequency the card supports.",
            Call("MaxClockInfo", MEGAHERTZ, (kind,)),
            labels={"clock": clock},
            cadence=SLOW,
            dcgm=dcgm,
            dcgm_help=f"Maximum supported {words} clock frequency ({{unit}}).",
        )
        for clock, kind, dcgm, words in (
            ("sm", SM, "DCGM_FI_DEV_MAX_SM_CLOCK DCGM_FI_DEV_SM_MAX_CLOCK_HERTZ", "SM"),
            ("memory", MEMORY, "DCGM_FI_DEV_MAX_MEM_CLOCK DCGM_FI_DEV_MEMORY_MAX_CLOCK_HERTZ", "memory"),
        )
    ),
    *(
        gauge(
            "podgpu_gpu_clock_application_hertz",
            "Clock frequency that the card aims at while it works. Newer drivers no longer report it.",
            Call("ApplicationsClock", MEGAHERTZ, (kind,)),
            labels={"clock": clock},
            cadence=SLOW,
            worth=DETAIL,
            stability=EXPERIMENTAL,
            dcgm=f"DCGM_FI_DEV_APP_{short}_CLOCK DCGM_FI_DEV_{long}_APP_CLOCK_HERTZ",
            dcgm_help=f"{words} application clock frequency ({{unit}}).",
        )
        for clock, kind, short, long, words in (
            ("graphics", GRAPHICS, "SM", "SM", "SM"),
            ("memory", MEMORY, "MEM", "MEMORY", "Memory"),
        )
    ),
)
