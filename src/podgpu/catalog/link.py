"""How a card talks to the host and to its neighbours: PCIe and NVLink."""

from podgpu.catalog.row import Alias, Cadence, Call, Field, Gpm, Kind, Metric, OtelName, Worth
from podgpu.catalog.units import (
    COUNT,
    KIB,
    LINK_GENERATION,
    LINK_WIDTH,
    MEGABYTES_PER_SECOND,
    MIB_PER_SECOND,
)

# The scope of a field is a link. This scope means the sum of all links.
ALL_LINKS = 0xFFFFFFFF

_PCIE_ERRORS = "Errors on the PCIe link since boot, by type."
_NVLINK_ERRORS = "Errors on all NVLinks together since the counters were reset, by type."


def _pcie_error(kind: str, field: int) -> Metric:
    return Metric(
        name="pcie_errors_total",
        kind=Kind.COUNTER,
        help=_PCIE_ERRORS,
        labels=(("type", kind),),
        read=Field(field, COUNT),
        cadence=Cadence.SLOW,
        worth=Worth.DETAIL,
    )


def _nvlink_error(kind: str, field: int, dcgm: str, dcgm1x: str, words: str) -> Metric:
    help_text = f"Total number of NVLink {words}."
    return Metric(
        name="nvlink_errors_total",
        kind=Kind.COUNTER,
        help=_NVLINK_ERRORS,
        labels=(("type", kind),),
        read=Field(field, COUNT),
        cadence=Cadence.SLOW,
        worth=Worth.DETAIL,
        asked=True,
        dcgm=Alias(f"DCGM_FI_DEV_NVLINK_{dcgm}_ERROR_COUNT_TOTAL", COUNT, help_text, Kind.COUNTER),
        dcgm49=Alias(f"DCGM_FI_DEV_NVLINK_{dcgm}_ERROR_TOTAL", COUNT, help_text, Kind.COUNTER),
        dcgm1x=Alias(f"dcgm_nvlink_{dcgm1x}_error_count_total", COUNT, help_text, Kind.COUNTER),
    )


PCIE: tuple[Metric, ...] = (
    Metric(
        name="pcie_link_generation",
        kind=Kind.GAUGE,
        help="Current PCIe generation. An idle card may step down.",
        read=Call("CurrPcieLinkGeneration", LINK_GENERATION),
        cadence=Cadence.SLOW,
        dcgm=Alias("DCGM_FI_DEV_PCIE_LINK_GEN", LINK_GENERATION, "PCIe current link generation."),
        dcgm49=Alias("DCGM_FI_DEV_PCIE_LINK_GEN", LINK_GENERATION, "PCIe current link generation."),
    ),
    Metric(
        name="pcie_link_generation_max",
        kind=Kind.GAUGE,
        help="Highest PCIe generation the card and its slot support.",
        read=Call("MaxPcieLinkGeneration", LINK_GENERATION),
        cadence=Cadence.SLOW,
        dcgm=Alias("DCGM_FI_DEV_PCIE_MAX_LINK_GEN", LINK_GENERATION, "PCIe maximum link generation."),
        dcgm49=Alias("DCGM_FI_DEV_PCIE_MAX_LINK_GEN", LINK_GENERATION, "PCIe maximum link generation."),
    ),
    Metric(
        name="pcie_link_width",
        kind=Kind.GAUGE,
        help="Current number of PCIe lanes.",
        read=Call("CurrPcieLinkWidth", LINK_WIDTH),
        cadence=Cadence.SLOW,
        dcgm=Alias("DCGM_FI_DEV_PCIE_LINK_WIDTH", LINK_WIDTH, "PCIe current link width."),
        dcgm49=Alias("DCGM_FI_DEV_PCIE_LINK_WIDTH", LINK_WIDTH, "PCIe current link width."),
    ),
    Metric(
        name="pcie_link_width_max",
        kind=Kind.GAUGE,
        help="Highest number of PCIe lanes the card and its slot support.",
        read=Call("MaxPcieLinkWidth", LINK_WIDTH),
        cadence=Cadence.SLOW,
        dcgm=Alias("DCGM_FI_DEV_PCIE_MAX_LINK_WIDTH", LINK_WIDTH, "PCIe maximum link width."),
        dcgm49=Alias("DCGM_FI_DEV_PCIE_MAX_LINK_WIDTH", LINK_WIDTH, "PCIe maximum link width."),
    ),
    # Integrated from GPM's rates. The driver's own byte counts (fields 197 and 198) have 32 bits and wrap at 4 GiB, ten
    # times a second on a busy link. nvmlDeviceGetPcieThroughput blocks for 20 ms to estimate a rate.
    Metric(
        name="pcie_transmit_bytes_total",
        kind=Kind.COUNTER,
        help="Bytes the GPU sent over PCIe, with overhead.",
        read=Gpm(20, MIB_PER_SECOND, integral=True),
        otel=OtelName("hw.gpu.io", (("network.io.direction", "transmit"), ("podgpu.link", "pcie"))),
    ),
    Metric(
        name="pcie_receive_bytes_total",
        kind=Kind.COUNTER,
        help="Bytes the GPU received over PCIe, with overhead.",
        read=Gpm(21, MIB_PER_SECOND, integral=True),
        otel=OtelName("hw.gpu.io", (("network.io.direction", "receive"), ("podgpu.link", "pcie"))),
    ),
    Metric(
        name="pcie_replays_total",
        kind=Kind.COUNTER,
        help="PCIe packets that had to be sent again since boot.",
        read=Field(94, COUNT),
        cadence=Cadence.SLOW,
        dcgm=Alias("DCGM_FI_DEV_PCIE_REPLAY_COUNTER", COUNT, "Total number of PCIe retries.", Kind.COUNTER),
        dcgm49=Alias("DCGM_FI_DEV_PCIE_REPLAY_TOTAL", COUNT, "Total number of PCIe retries.", Kind.COUNTER),
        dcgm1x=Alias("dcgm_pcie_replay_counter", COUNT, "Total number of PCIe retries.", Kind.COUNTER),
    ),
    _pcie_error("correctable", 173),
    _pcie_error("naks_received", 174),
    _pcie_error("receiver", 175),
    _pcie_error("bad_tlp", 176),
    _pcie_error("naks_sent", 177),
    _pcie_error("bad_dllp", 178),
    _pcie_error("non_fatal", 179),
    _pcie_error("fatal", 180),
    _pcie_error("unsupported_request", 181),
    _pcie_error("lcrc", 182),
    _pcie_error("lane", 183),
)

NVLINK: tuple[Metric, ...] = (
    Metric(
        name="nvlink_links",
        kind=Kind.GAUGE,
        help="Number of NVLinks the card has.",
        read=Field(91, COUNT),
        cadence=Cadence.SLOW,
    ),
    Metric(
        name="nvlink_speed_bytes_per_second",
        kind=Kind.GAUGE,
        help="Speed of one active NVLink.",
        read=Field(90, MEGABYTES_PER_SECOND),
        cadence=Cadence.SLOW,
    ),
    Metric(
        name="nvlink_transmit_bytes_total",
        kind=Kind.COUNTER,
        help="Bytes of payload the GPU sent over all NVLinks.",
        read=Field(138, KIB, ALL_LINKS),
        otel=OtelName("hw.gpu.io", (("network.io.direction", "transmit"), ("podgpu.link", "nvlink"))),
    ),
    Metric(
        name="nvlink_receive_bytes_total",
        kind=Kind.COUNTER,
        help="Bytes of payload the GPU received over all NVLinks.",
        read=Field(139, KIB, ALL_LINKS),
        otel=OtelName("hw.gpu.io", (("network.io.direction", "receive"), ("podgpu.link", "nvlink"))),
    ),
    _nvlink_error("crc_flit", 38, "CRC_FLIT", "flit_crc", "flow-control CRC errors"),
    _nvlink_error("crc_data", 45, "CRC_DATA", "data_crc", "data CRC errors"),
    _nvlink_error("replay", 52, "REPLAY", "replay", "retries"),
    _nvlink_error("recovery", 59, "RECOVERY", "recovery", "recovery errors"),
    Metric(
        name="nvlink_errors_total",
        kind=Kind.COUNTER,
        help=_NVLINK_ERRORS,
        labels=(("type", "ecc_data"),),
        read=Field(160, COUNT),
        cadence=Cadence.SLOW,
        worth=Worth.DETAIL,
        asked=True,
    ),
)
