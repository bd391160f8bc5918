"""Profiling counters by GPM, on Hopper and newer cards, without DCGM or privileges: means since the last reading.

The driver answers 0 without an error for ids that do not exist, so rows may only use ids that are known to exist: 1-13,
20-21, 30-37, 40-47, 50-51 and 60-97.
"""

from typing import Any

from podgpu.catalog.row import (
    BYTES_PER_SECOND,
    CORE,
    DETAIL,
    EXPERIMENTAL,
    KILOBYTES_PER_SECOND,
    MEGABYTES_PER_SECOND,
    MIB_PER_SECOND,
    PROFILED_PERCENT,
    RATIO,
    Alias,
    Gpm,
    Kind,
    Metric,
    gauge,
)

_NVLINK = "Total number of NVLink bandwidth counters for all lanes"
_PCIE = (
    "The rate of data {} over the PCIe bus - including both protocol headers and data payloads - in bytes per second."
)


def _pipe(pipe: str, gpm: int, dcgm: str = "", words: str = "") -> Metric:
    return gauge(
        "podgpu_gpu_pipe_active_ratio",
        "Share of cycles since the previous reading in which a pipe of the multiprocessors was active.",
        Gpm(gpm, PROFILED_PERCENT),
        labels={"pipe": pipe},
        worth=DETAIL,
        stability=EXPERIMENTAL,
        mig=True,
        dcgm=dcgm,
        dcgm_help=f"Ratio of cycles the {words} active.",
        dcgm_unit=RATIO,
    )


def _engine(engine: str, number: int, first_gpm: int) -> Metric:
    upper = engine.upper()
    return gauge(
        "podgpu_gpu_engine_active_ratio",
        "Share of time since the previous reading in which a media engine was busy.",
        Gpm(first_gpm + number, PROFILED_PERCENT, doubtful=True),
        labels={"engine": f"{engine}{number}"},
        worth=DETAIL,
        stability=EXPERIMENTAL,
        mig=True,
        dcgm=f"DCGM_FI_PROF_{upper}{number}_ACTIVE DCGM_FI_PROF_{upper}_UTIL_{number}_RATIO",
        dcgm_help=f"Ratio of time the {upper} {number} engine is active.",
        dcgm_unit=RATIO,
    )


def _activity(name: str, help_text: str, gpm: int, dcgm: str, words: str, **more: Any) -> Metric:
    """1.x has DCGM's name in small letters. Some of its HELPs say percent, but the values always run from 0 to 1."""
    return gauge(
        name,
        help_text,
        Gpm(gpm, PROFILED_PERCENT),
        mig=True,
        dcgm=dcgm,
        dcgm_help=f"{words}.",
        dcgm_unit=RATIO,
        dcgm1x=Alias(dcgm.split(maxsplit=1)[0].lower(), RATIO, f"{words} (in %)."),
        **more,
    )


ACTIVITY: tuple[Metric, ...] = (
    _activity(
        "podgpu_gpu_graphics_engine_active_ratio",
        "Share of time since the previous reading in which compute or graphics work ran. Busy time is booked by it.",
        1,
        "DCGM_FI_PROF_GR_ENGINE_ACTIVE DCGM_FI_PROF_GR_ENGINE_UTIL_RATIO",
        "Ratio of time the graphics engine is active",
        worth=CORE,
    ),
    _activity(
        "podgpu_gpu_sm_active_ratio",
        "Share of cycles since the previous reading in which a multiprocessor had at least one warp, averaged over all "
        "of them. The utilization of a MIG instance.",
        2,
        "DCGM_FI_PROF_SM_ACTIVE DCGM_FI_PROF_SM_UTIL_RATIO",
        "The ratio of cycles an SM has at least 1 warp assigned",
        worth=CORE,
    ),
    _activity(
        "podgpu_gpu_sm_occupancy_ratio",
        "Warps resident on the multiprocessors since the previous reading, as a share of the most they can hold.",
        3,
        "DCGM_FI_PROF_SM_OCCUPANCY DCGM_FI_PROF_SM_OCCUPANCY_RATIO",
        "The ratio of number of warps resident on an SM",
    ),
    _activity(
        "podgpu_gpu_tensor_active_ratio",
        "Share of cycles since the previous reading in which any tensor core pipe was active.",
        5,
        "DCGM_FI_PROF_PIPE_TENSOR_ACTIVE",
        "Ratio of cycles the tensor (HMMA) pipe is active",
        dcgm49=Alias("DCGM_FI_PROF_TENSOR_UTIL_RATIO", RATIO, "Ratio of cycles any tensor pipe is active."),
    ),
    _activity(
        "podgpu_gpu_dram_active_ratio",
        "Bandwidth of the device memory in use since the previous reading, as a share of the highest possible.",
        10,
        "DCGM_FI_PROF_DRAM_ACTIVE DCGM_FI_PROF_DRAM_UTIL_RATIO",
        "Ratio of cycles the device memory interface is active sending or receiving data",
    ),
    _pipe("fp64", 11, "DCGM_FI_PROF_PIPE_FP64_ACTIVE DCGM_FI_PROF_FP64_UTIL_RATIO", "fp64 pipes are"),
    _pipe("fp32", 12, "DCGM_FI_PROF_PIPE_FP32_ACTIVE DCGM_FI_PROF_FP32_UTIL_RATIO", "fp32 pipes are"),
    _pipe("fp16", 13, "DCGM_FI_PROF_PIPE_FP16_ACTIVE DCGM_FI_PROF_FP16_UTIL_RATIO", "fp16 pipes are"),
    _pipe("integer", 4, "DCGM_FI_PROF_PIPE_INT_ACTIVE DCGM_FI_PROF_INT_UTIL_RATIO", "integer pipe is"),
    *(
        _pipe(
            f"tensor_{pipe.lower()}",
            gpm,
            f"DCGM_FI_PROF_PIPE_TENSOR_{pipe}_ACTIVE DCGM_FI_PROF_{pipe}_UTIL_RATIO",
            f"tensor ({pipe}) pipe is",
        )
        for pipe, gpm in (("HMMA", 7), ("IMMA", 9), ("DFMA", 6))
    ),
    _pipe("tensor_dmma", 8),
    *(_engine("nvdec", number, 30) for number in range(8)),
    *(_engine("nvjpg", number, 40) for number in range(8)),
    *(_engine("nvofa", number, 50) for number in range(2)),
)

# Links belong to the card, not to an instance. Old pages call some of these rates counters or totals, but their values
# have always been rates, so these are too.
TRAFFIC: tuple[Metric, ...] = (
    *(
        gauge(
            f"podgpu_gpu_pcie_{direction}_bytes_per_second",
            f"Rate at which the GPU {verb} data over PCIe since the previous reading.",
            Gpm(gpm, MIB_PER_SECOND),
            dcgm=f"DCGM_FI_PROF_PCIE_{short}_BYTES =",
            dcgm_help=_PCIE.format(words),
            dcgm_unit=BYTES_PER_SECOND,
            dcgm1x=Alias(
                f"dcgm_pcie_{short.lower()}_throughput",
                KILOBYTES_PER_SECOND,
                f"Total number of bytes {words} through PCIe {short} (in KB) via NVML.",
                Kind.COUNTER,
            ),
            dcgm_also=(
                Alias(
                    f"DCGM_FI_DEV_PCIE_{short}_THROUGHPUT",
                    KILOBYTES_PER_SECOND,
                    f"PCIe {short} throughput (in kB/s).",
                ),
                # What later exporters print under a name that looks like one of 1.x.
                Alias(f"dcgm_fi_prof_pcie_{short.lower()}_bytes", BYTES_PER_SECOND, _PCIE.format(words)),
            ),
        )
        for direction, verb, words, gpm, short in (
            ("transmit", "sent", "transmitted", 20, "TX"),
            ("receive", "received", "received", 21, "RX"),
        )
    ),
    # Other systems have one number for both directions: a dialect adds up the rows that share an alias.
    *(
        gauge(
            f"podgpu_gpu_nvlink_{direction}_bytes_per_second",
            f"Rate at which the GPU {verb} data over all NVLinks since the previous reading.",
            Gpm(gpm, MIB_PER_SECOND, doubtful=True),
            dcgm="DCGM_FI_DEV_NVLINK_BANDWIDTH_TOTAL",
            dcgm_help=f"{_NVLINK}.",
            dcgm_unit=MEGABYTES_PER_SECOND,
            dcgm_kind=Kind.COUNTER,
            dcgm49=Alias(
                "DCGM_FI_DEV_NVLINK_THROUGHPUT_BYTES_PER_SECOND",
                BYTES_PER_SECOND,
                "Rate of data over all NVLinks, both directions (in B/s).",
            ),
            dcgm1x=Alias("dcgm_nvlink_bandwidth_total", MEGABYTES_PER_SECOND, _NVLINK, Kind.COUNTER),
            dcgm_also=(
                Alias(
                    f"DCGM_FI_PROF_NVLINK_{short}_BYTES",
                    BYTES_PER_SECOND,
                    f"The rate of data {verb} over all NVLinks, in bytes per second.",
                ),
                Alias("DCGM_FI_DEV_NVLINK_THROUGHPUT_TOTAL", MEGABYTES_PER_SECOND, f"{_NVLINK}."),
            ),
        )
        for direction, verb, gpm, short in (("transmit", "sent", 61, "TX"), ("receive", "received", 60, "RX"))
    ),
    # GPM numbers them in pairs, a link after the other.
    *(
        gauge(
            f"podgpu_gpu_nvlink_link_{direction}_bytes_per_second",
            f"Rate at which the GPU {verb} data over this NVLink since the previous reading.",
            Gpm(first + 2 * link, MIB_PER_SECOND, doubtful=True, part_of=whole),
            labels={"link": str(link)},
            worth=DETAIL,
            dcgm=f"DCGM_FI_DEV_NVLINK_BANDWIDTH_L{link} -",
            dcgm_help="The number of bytes of active NVLink rx or tx data including both header and payload.",
            dcgm_unit=MEGABYTES_PER_SECOND,
            dcgm_kind=Kind.COUNTER,
        )
        for direction, verb, first, whole in (("transmit", "sent", 63, 61), ("receive", "received", 62, 60))
        for link in range(18)
    ),
)

ROWS = ACTIVITY + TRAFFIC
