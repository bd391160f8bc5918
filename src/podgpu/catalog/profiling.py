"""Profiling counters by GPM, on Hopper and newer cards, without DCGM or privileges: means since the last reading.

The driver answers 0 without an error for ids that do not exist, so rows may only use ids that are known to exist: 1-13,
20-21, 30-37, 40-47, 50-51 and 60-61. The ids of single links, 62-97, are left out: they would be 36 series per card.
"""

from podgpu.catalog.row import Alias, Gpm, Kind, Metric, Stability, Worth
from podgpu.catalog.units import (
    BYTES_PER_SECOND,
    KILOBYTES_PER_SECOND,
    MEGABYTES_PER_SECOND,
    MIB_PER_SECOND,
    PROFILED_PERCENT,
    RATIO,
)

_PIPE = "Share of cycles since the previous reading in which a pipe of the multiprocessors was active."
_ENGINE = "Share of time since the previous reading in which a media engine was busy."

_TENSOR = "Ratio of cycles the tensor (HMMA) pipe is active"
_DRAM = "Ratio of cycles the device memory interface is active sending or receiving data"
_NVLINK = "Total number of NVLink bandwidth counters for all lanes"
_PCIE = (
    "The rate of data {} over the PCIe bus - including both protocol headers and data payloads"
    " - in bytes per second."
)
_PCIE_1X = "Total number of bytes {} (in KB) via NVML."


def _pipe(pipe: str, gpm: int, dcgm: str = "", dcgm49: str = "", words: str = "") -> Metric:
    help_text = f"Ratio of cycles the {words} active."
    return Metric(
        name="pipe_active_ratio",
        kind=Kind.GAUGE,
        stability=Stability.EXPERIMENTAL,
        help=_PIPE,
        labels=(("pipe", pipe),),
        read=Gpm(gpm, PROFILED_PERCENT),
        worth=Worth.DETAIL,
        mig=True,
        dcgm=Alias(f"DCGM_FI_PROF_PIPE_{dcgm}_ACTIVE", RATIO, help_text) if dcgm else None,
        dcgm49=Alias(f"DCGM_FI_PROF_{dcgm49}_UTIL_RATIO", RATIO, help_text) if dcgm49 else None,
    )


def _engine(engine: str, number: int, first_gpm: int) -> Metric:
    upper = engine.upper()
    help_text = f"Ratio of time the {upper} {number} engine is active."
    return Metric(
        name="engine_active_ratio",
        kind=Kind.GAUGE,
        stability=Stability.EXPERIMENTAL,
        help=_ENGINE,
        labels=(("engine", f"{engine}{number}"),),
        read=Gpm(first_gpm + number, PROFILED_PERCENT, doubtful=True),
        worth=Worth.DETAIL,
        mig=True,
        dcgm=Alias(f"DCGM_FI_PROF_{upper}{number}_ACTIVE", RATIO, help_text),
        dcgm49=Alias(f"DCGM_FI_PROF_{upper}_UTIL_{number}_RATIO", RATIO, help_text),
    )


# The HELP of some versions says "(in %)", but the values always run from 0 to 1.
ACTIVITY: tuple[Metric, ...] = (
    Metric(
        name="graphics_engine_active_ratio",
        kind=Kind.GAUGE,
        help="Share of time since the previous reading in which compute or graphics work ran. Busy time is booked by "
        "it.",
        read=Gpm(1, PROFILED_PERCENT),
        worth=Worth.CORE,
        mig=True,
        dcgm=Alias("DCGM_FI_PROF_GR_ENGINE_ACTIVE", RATIO, "Ratio of time the graphics engine is active."),
        dcgm49=Alias(
            "DCGM_FI_PROF_GR_ENGINE_UTIL_RATIO", RATIO, "Ratio of time the graphics engine is active."
        ),
        dcgm1x=Alias(
            "dcgm_fi_prof_gr_engine_active", RATIO, "Ratio of time the graphics engine is active (in %)."
        ),
    ),
    Metric(
        name="sm_active_ratio",
        kind=Kind.GAUGE,
        help="Share of cycles since the previous reading in which a multiprocessor had at least one warp, averaged "
        "over all of them. The utilisation of a MIG instance.",
        read=Gpm(2, PROFILED_PERCENT),
        worth=Worth.CORE,
        mig=True,
        dcgm=Alias(
            "DCGM_FI_PROF_SM_ACTIVE", RATIO, "The ratio of cycles an SM has at least 1 warp assigned."
        ),
        dcgm49=Alias(
            "DCGM_FI_PROF_SM_UTIL_RATIO", RATIO, "The ratio of cycles an SM has at least 1 warp assigned."
        ),
        dcgm1x=Alias(
            "dcgm_fi_prof_sm_active", RATIO, "The ratio of cycles an SM has at least 1 warp assigned (in %)."
        ),
    ),
    Metric(
        name="sm_occupancy_ratio",
        kind=Kind.GAUGE,
        help="Warps resident on the multiprocessors since the previous reading, as a share of the most they can hold.",
        read=Gpm(3, PROFILED_PERCENT),
        mig=True,
        dcgm=Alias("DCGM_FI_PROF_SM_OCCUPANCY", RATIO, "The ratio of number of warps resident on an SM."),
        dcgm49=Alias(
            "DCGM_FI_PROF_SM_OCCUPANCY_RATIO", RATIO, "The ratio of number of warps resident on an SM."
        ),
        dcgm1x=Alias(
            "dcgm_fi_prof_sm_occupancy", RATIO, "The ratio of number of warps resident on an SM (in %)."
        ),
    ),
    Metric(
        name="tensor_active_ratio",
        kind=Kind.GAUGE,
        help="Share of cycles since the previous reading in which any tensor core pipe was active.",
        read=Gpm(5, PROFILED_PERCENT),
        mig=True,
        dcgm=Alias("DCGM_FI_PROF_PIPE_TENSOR_ACTIVE", RATIO, f"{_TENSOR}."),
        dcgm49=Alias("DCGM_FI_PROF_TENSOR_UTIL_RATIO", RATIO, "Ratio of cycles any tensor pipe is active."),
        dcgm1x=Alias("dcgm_fi_prof_pipe_tensor_active", RATIO, f"{_TENSOR} (in %)."),
    ),
    Metric(
        name="dram_active_ratio",
        kind=Kind.GAUGE,
        help="Bandwidth of the device memory in use since the previous reading, as a share of the highest possible.",
        read=Gpm(10, PROFILED_PERCENT),
        mig=True,
        dcgm=Alias("DCGM_FI_PROF_DRAM_ACTIVE", RATIO, f"{_DRAM}."),
        dcgm49=Alias("DCGM_FI_PROF_DRAM_UTIL_RATIO", RATIO, f"{_DRAM}."),
        dcgm1x=Alias("dcgm_fi_prof_dram_active", RATIO, f"{_DRAM} (in %)."),
    ),
    _pipe("fp64", 11, "FP64", "FP64", "fp64 pipes are"),
    _pipe("fp32", 12, "FP32", "FP32", "fp32 pipes are"),
    _pipe("fp16", 13, "FP16", "FP16", "fp16 pipes are"),
    _pipe("integer", 4, "INT", "INT", "integer pipe is"),
    _pipe("tensor_hmma", 7, "TENSOR_HMMA", "HMMA", "tensor (HMMA) pipe is"),
    _pipe("tensor_imma", 9, "TENSOR_IMMA", "IMMA", "tensor (IMMA) pipe is"),
    _pipe("tensor_dfma", 6, "TENSOR_DFMA", "DFMA", "tensor (DFMA) pipe is"),
    _pipe("tensor_dmma", 8),
    *(_engine("nvdec", number, 30) for number in range(8)),
    *(_engine("nvjpg", number, 40) for number in range(8)),
    *(_engine("nvofa", number, 50) for number in range(2)),
)

# Links belong to the card, not to an instance. Old pages call some of these rates counters or totals, but their values
# have always been rates, so these are too.
TRAFFIC: tuple[Metric, ...] = (
    Metric(
        name="pcie_transmit_bytes_per_second",
        kind=Kind.GAUGE,
        help="Rate at which the GPU sent data over PCIe since the previous reading.",
        read=Gpm(20, MIB_PER_SECOND),
        dcgm=Alias("DCGM_FI_PROF_PCIE_TX_BYTES", BYTES_PER_SECOND, _PCIE.format("transmitted")),
        dcgm49=Alias("DCGM_FI_PROF_PCIE_TX_BYTES", BYTES_PER_SECOND, _PCIE.format("transmitted")),
        dcgm1x=Alias(
            "dcgm_pcie_tx_throughput",
            KILOBYTES_PER_SECOND,
            _PCIE_1X.format("transmitted through PCIe TX"),
            Kind.COUNTER,
        ),
        dcgm_also=(
            Alias("DCGM_FI_DEV_PCIE_TX_THROUGHPUT", KILOBYTES_PER_SECOND, "PCIe TX throughput (in kB/s)."),
            # What later exporters print under a name that looks like one of 1.x.
            Alias("dcgm_fi_prof_pcie_tx_bytes", BYTES_PER_SECOND, _PCIE.format("transmitted")),
        ),
    ),
    Metric(
        name="pcie_receive_bytes_per_second",
        kind=Kind.GAUGE,
        help="Rate at which the GPU received data over PCIe since the previous reading.",
        read=Gpm(21, MIB_PER_SECOND),
        dcgm=Alias("DCGM_FI_PROF_PCIE_RX_BYTES", BYTES_PER_SECOND, _PCIE.format("received")),
        dcgm49=Alias("DCGM_FI_PROF_PCIE_RX_BYTES", BYTES_PER_SECOND, _PCIE.format("received")),
        dcgm1x=Alias(
            "dcgm_pcie_rx_throughput",
            KILOBYTES_PER_SECOND,
            _PCIE_1X.format("received through PCIe RX"),
            Kind.COUNTER,
        ),
        dcgm_also=(
            Alias("DCGM_FI_DEV_PCIE_RX_THROUGHPUT", KILOBYTES_PER_SECOND, "PCIe RX throughput (in kB/s)."),
            # What later exporters print under a name that looks like one of 1.x.
            Alias("dcgm_fi_prof_pcie_rx_bytes", BYTES_PER_SECOND, _PCIE.format("received")),
        ),
    ),
    # Other systems have one number for both directions: a dialect adds up the rows that share an alias.
    *(
        Metric(
            name=f"nvlink_{direction}_bytes_per_second",
            kind=Kind.GAUGE,
            help=f"Rate at which the GPU {verb} data over all NVLinks since the previous reading.",
            read=Gpm(gpm, MIB_PER_SECOND, doubtful=True),
            dcgm=Alias(
                "DCGM_FI_DEV_NVLINK_BANDWIDTH_TOTAL", MEGABYTES_PER_SECOND, f"{_NVLINK}.", Kind.COUNTER
            ),
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
        Metric(
            name=f"nvlink_link_{direction}_bytes_per_second",
            kind=Kind.GAUGE,
            help=f"Rate at which the GPU {verb} data over this NVLink since the previous reading.",
            labels=(("link", str(link)),),
            read=Gpm(first + 2 * link, MIB_PER_SECOND, doubtful=True),
            worth=Worth.DETAIL,
            dcgm=Alias(
                f"DCGM_FI_DEV_NVLINK_BANDWIDTH_L{link}",
                MEGABYTES_PER_SECOND,
                "The number of bytes of active NVLink rx or tx data including both header and payload.",
                Kind.COUNTER,
            ),
        )
        for direction, verb, first in (("transmit", "sent", 63), ("receive", "received", 62))
        for link in range(18)
    ),
)

ROWS = ACTIVITY + TRAFFIC
