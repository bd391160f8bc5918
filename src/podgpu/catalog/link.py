"""How a card talks to the host and to its neighbours: PCIe and NVLink."""

from podgpu.catalog.row import (
    COUNT,
    DETAIL,
    KIB,
    LINK_GENERATION,
    LINK_WIDTH,
    MEGABYTES_PER_SECOND,
    MIB_PER_SECOND,
    SLOW,
    Call,
    Field,
    Gpm,
    Metric,
    OtelName,
    counter,
    gauge,
)

# The scope of a field is a link. This scope means the sum of all links.
ALL_LINKS = 0xFFFFFFFF
MOST_LINKS = 18  # of a card


# The fields of the driver from 173 on.
_PCIE_ERRORS = (
    "correctable",
    "naks_received",
    "receiver",
    "bad_tlp",
    "naks_sent",
    "bad_dllp",
    "non_fatal",
    "fatal",
    "unsupported_request",
    "lcrc",
    "lane",
)


def _pcie_error(kind: str, field: int) -> Metric:
    return counter(
        "podgpu_gpu_pcie_errors_total",
        "Errors on the PCIe link since boot, by type.",
        Field(field, COUNT),
        labels={"type": kind},
        cadence=SLOW,
        worth=DETAIL,
    )


def _nvlink_error(kind: str, field: int, dcgm: str = "", words: str = "", links: int = 0) -> Metric:
    return counter(
        "podgpu_gpu_nvlink_errors_total",
        "Errors on all NVLinks together since the counters were reset, by type.",
        Field(field, COUNT, links=links),
        labels={"type": kind},
        cadence=SLOW,
        worth=DETAIL,
        asked=True,
        dcgm=dcgm,
        dcgm_help=f"Total number of NVLink {words}.",
    )


PCIE: tuple[Metric, ...] = (
    gauge(
        "podgpu_gpu_pcie_link_generation",
        "Current PCIe generation. An idle card may step down.",
        Call("CurrPcieLinkGeneration", LINK_GENERATION),
        cadence=SLOW,
        dcgm="DCGM_FI_DEV_PCIE_LINK_GEN =",
        dcgm_help="PCIe current link generation.",
    ),
    gauge(
        "podgpu_gpu_pcie_link_generation_max",
        "Highest PCIe generation the card and its slot support.",
        Call("MaxPcieLinkGeneration", LINK_GENERATION),
        cadence=SLOW,
        dcgm="DCGM_FI_DEV_PCIE_MAX_LINK_GEN =",
        dcgm_help="PCIe maximum link generation.",
    ),
    gauge(
        "podgpu_gpu_pcie_link_width",
        "Current number of PCIe lanes.",
        Call("CurrPcieLinkWidth", LINK_WIDTH),
        cadence=SLOW,
        dcgm="DCGM_FI_DEV_PCIE_LINK_WIDTH =",
        dcgm_help="PCIe current link width.",
    ),
    gauge(
        "podgpu_gpu_pcie_link_width_max",
        "Highest number of PCIe lanes the card and its slot support.",
        Call("MaxPcieLinkWidth", LINK_WIDTH),
        cadence=SLOW,
        dcgm="DCGM_FI_DEV_PCIE_MAX_LINK_WIDTH =",
        dcgm_help="PCIe maximum link width.",
    ),
    # Integrated from GPM's rates. The driver's own byte counts (fields 197 and 198) have 32 bits and wrap at 4 GiB, ten
    # times a second on a busy link. nvmlDeviceGetPcieThroughput blocks for 20 ms to estimate a rate.
    counter(
        "podgpu_gpu_pcie_transmit_bytes_total",
        "Bytes the GPU sent over PCIe, with overhead.",
        Gpm(20, MIB_PER_SECOND, integral=True),
        otel=OtelName("hw.gpu.io", (("network.io.direction", "transmit"), ("podgpu.link", "pcie"))),
    ),
    counter(
        "podgpu_gpu_pcie_receive_bytes_total",
        "Bytes the GPU received over PCIe, with overhead.",
        Gpm(21, MIB_PER_SECOND, integral=True),
        otel=OtelName("hw.gpu.io", (("network.io.direction", "receive"), ("podgpu.link", "pcie"))),
    ),
    counter(
        "podgpu_gpu_pcie_replays_total",
        "PCIe packets that had to be sent again since boot.",
        Field(94, COUNT),
        cadence=SLOW,
        dcgm="DCGM_FI_DEV_PCIE_REPLAY_COUNTER DCGM_FI_DEV_PCIE_REPLAY_TOTAL dcgm_pcie_replay_counter",
        dcgm_help="Total number of PCIe retries.",
    ),
    *(_pcie_error(kind, field) for field, kind in enumerate(_PCIE_ERRORS, 173)),
)

NVLINK: tuple[Metric, ...] = (
    gauge("podgpu_gpu_nvlink_links", "Number of NVLinks the card has.", Field(91, COUNT), cadence=SLOW),
    gauge(
        "podgpu_gpu_nvlink_speed_bytes_per_second",
        "Speed of one active NVLink.",
        Field(90, MEGABYTES_PER_SECOND),
        cadence=SLOW,
    ),
    counter(
        "podgpu_gpu_nvlink_transmit_bytes_total",
        "Bytes of payload the GPU sent over all NVLinks.",
        Field(138, KIB, ALL_LINKS),
        otel=OtelName("hw.gpu.io", (("network.io.direction", "transmit"), ("podgpu.link", "nvlink"))),
    ),
    counter(
        "podgpu_gpu_nvlink_receive_bytes_total",
        "Bytes of payload the GPU received over all NVLinks.",
        Field(139, KIB, ALL_LINKS),
        otel=OtelName("hw.gpu.io", (("network.io.direction", "receive"), ("podgpu.link", "nvlink"))),
    ),
    *(
        _nvlink_error(
            kind,
            field,
            f"DCGM_FI_DEV_NVLINK_{kind.upper()}_ERROR_COUNT_TOTAL DCGM_FI_DEV_NVLINK_{kind.upper()}_ERROR_TOTAL "
            f"dcgm_nvlink_{dcgm1x}_error_count_total",
            words,
        )
        for kind, field, dcgm1x, words in (
            ("crc_flit", 38, "flit_crc", "flow-control CRC errors"),
            ("crc_data", 45, "data_crc", "data CRC errors"),
            ("replay", 52, "replay", "retries"),
            ("recovery", 59, "recovery", "recovery errors"),
        )
    ),
    _nvlink_error("ecc_data", 160),
    # The driver has these for each link alone: the first three up to Hopper, the others from Blackwell on.
    *(
        _nvlink_error(kind, field, links=MOST_LINKS)
        for kind, field in (
            ("link_replay", 161),
            ("link_recovery", 162),
            ("link_crc", 163),
            ("link_receive", 208),
            ("link_recovery_failed", 214),
            ("link_recovery_event", 215),
        )
    ),
)
