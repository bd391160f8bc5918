"""The health of nodes and GPUs: what fails, what is hot, what is slowed down, and who is affected."""

from podgpu.catalog.xids import XIDS
from tools.dashboards.dashboard import Dashboard
from tools.dashboards.glance import (
    CLUSTER,
    CONTAINER,
    DOWN,
    GPU,
    GPUS,
    NAMESPACE,
    NODE,
    NOT_SEEN,
    POD,
    UUID,
    counted,
)
from tools.dashboards.panel import (
    BAD_ABOVE_ZERO,
    FULL,
    OVER,
    PRESENCE,
    RECOVERY,
    Column,
    Query,
    Section,
    Thresholds,
    lines,
    stat,
    table,
    works,
)

_GPU = "{{node}} GPU {{gpu}}"
_BY = "cluster, node, gpu, uuid"
_PLACE = "cluster, node, gpu, namespace, pod, container"

_XID = "podgpu_gpu_xid_errors_total{<node>}"
# A counter that appears with the first error has no increase from zero: if it was not there at the beginning of the
# time, all of it is new. Cards that report XIDs and raised none have nothing but a total of 0.
_XIDS = f"""sum(
  ({counted(_XID, "$__range")} and {_XID} offset $__range)
  or (max_over_time({_XID}[$__range]) unless {_XID} offset $__range)
) or sum(0 * podgpu_gpu_xids_total{{<node>}})"""

_REASON = Column("reason", "Reason", 110)
_SEVERITIES = {"critical": "red", "warning": "orange", "info": "blue"}
_XID_COLUMN = Column(
    "xid",
    "XID",
    60,
    colors=tuple((str(code), str(code), _SEVERITIES.get(xid.severity, "text")) for code, xid in sorted(XIDS.items())),
)
_PASSED: Thresholds = ((None, "red"), (0, "green"))

_NOW = Section(
    "Now",
    (
        GPUS,
        DOWN,
        NOT_SEEN,
        stat(
            "Recovery",
            "Cards for which the driver asks for a reset, a reboot or another action.",
            "short",
            "sum(clamp_max(podgpu_gpu_recovery_action{<node>}, 1))",
            thresholds=BAD_ABOVE_ZERO,
        ),
        stat(
            "To replace",
            "Cards whose faulty memory cannot be remapped: they have to be replaced.",
            "short",
            "sum(podgpu_gpu_row_remap_failed{<node>})",
            thresholds=BAD_ABOVE_ZERO,
        ),
        stat(
            "XIDs raised",
            "Errors that the driver raised in the chosen time. A counter that appeared meanwhile counts from zero.",
            "short",
            _XIDS,
            thresholds=BAD_ABOVE_ZERO,
            order="counts whole numbers",
        ),
    ),
)

_PRESENCE = Section(
    "Presence and errors",
    (
        table(
            "Problems",
            "Why a card does not answer, and the call at fault.",
            (CLUSTER, NODE, GPU, _REASON, Column("call", "Call", 120)),
            Query("max by (cluster, node, gpu, reason, call) (podgpu_gpu_problem{<node>})"),
            width=12,
            sort="Node",
            absent="No GPU reports a problem",
        ),
        table(
            "XIDs since the agent started",
            "Errors that the driver raised since the agent started, by XID.",
            (CLUSTER, NODE, GPU, _XID_COLUMN),
            Query("max by (cluster, node, gpu, xid) (podgpu_gpu_xid_errors_total{<node>})", "Errors", "none", width=85),
            sort="Errors",
            width=12,
            absent="No GPU raised an XID",
        ),
        works(
            "GPUs",
            "Whether each card answers, or its node is not seen at all. Those that failed in the chosen time are on"
            " top."
            " Needs the recording rules.",
            "1 - podgpu:gpu_down:bool{<node>} - 2 * podgpu:gpu_not_seen:bool{<node>}",
            "1 - max_over_time(podgpu:gpu_down:bool{<node>}[$__range] @ end())"
            " - 2 * max_over_time(podgpu:gpu_not_seen:bool{<node>}[$__range] @ end())",
            _BY,
            _GPU,
            states=PRESENCE,
            absent="No agent reports a GPU, or no recording rule: docs/alerts.md",
        ),
        lines(
            "Memory errors",
            "Errors that ECC found since the driver was loaded.",
            "short",
            Query('podgpu_gpu_ecc_errors_total{<node>, lifetime="volatile"}', f"{_GPU} {{{{error}}}}"),
            whole=True,
        ),
        lines(
            "Link errors",
            "PCIe packets that were sent again, and errors on NVLinks.",
            "short",
            Query(
                counted("podgpu_gpu_pcie_replays_total{<node>}", "$__rate_interval"),
                f"{_GPU} PCIe replays",
                order="counts whole numbers",
            ),
            Query(
                f"sum by ({_BY}) ({counted('podgpu_gpu_nvlink_errors_total{<node>}', '$__rate_interval')})",
                f"{_GPU} NVLink",
                order="counts whole numbers",
            ),
            whole=True,
        ),
    ),
)

_HEAT = Section(
    "Heat, power and clocks",
    (
        lines(
            "Temperature",
            "Temperature of GPU and memory.",
            "celsius",
            Query("podgpu_gpu_temperature_celsius{<node>}", f"{_GPU} {{{{sensor}}}}"),
        ),
        lines(
            "Margin",
            "How much hotter a card may get before it slows down. Below 0 it has passed its target.",
            "celsius",
            Query("podgpu_gpu_temperature_margin_celsius{<node>}", _GPU, order="lowest"),
            least=None,
            thresholds=_PASSED,
        ),
        lines("Power", "Power draw of the board.", "watt", Query("podgpu_gpu_power_watts{<node>}", _GPU)),
        lines(
            "Power by limit",
            "Power draw as a share of the limit in force. A peak may exceed 100 % until the card slows down.",
            "percentunit",
            Query("podgpu_gpu_power_watts{<node>} / podgpu_gpu_power_limit_watts{<node>}", _GPU),
            thresholds=OVER,
        ),
        lines(
            "SM clock",
            "Clock of the multiprocessors.",
            "hertz",
            Query('podgpu_gpu_clock_hertz{<node>, clock="sm"}', _GPU),
        ),
        lines(
            "Slowed down",
            "Share of time in which clocks were throttled, by reason. Reasons overlap.",
            "percentunit",
            Query(
                f"clamp_max(max by ({_BY}, reason)"
                " (rate(podgpu_gpu_throttle_seconds_total{<node>}[$__rate_interval])), 1)",
                f"{_GPU} {{{{reason}}}}",
            ),
            most=1,
        ),
    ),
)

_USE = Section(
    "Use",
    (
        lines(
            "Utilization",
            "Share of time during which a kernel ran. A card with MIG shows its instances instead.",
            "percentunit",
            Query("podgpu_gpu_utilization_ratio{<node>}", _GPU),
            Query("podgpu_mig_graphics_engine_active_ratio{<node>}", f"{_GPU} {{{{profile}}}}"),
            most=1,
        ),
        lines(
            "Memory in use",
            "Device memory in use, as a share of all of the card.",
            "percentunit",
            Query("podgpu_gpu_memory_used_bytes{<node>} / podgpu_gpu_memory_total_bytes{<node>}", _GPU),
            most=1,
            thresholds=FULL,
        ),
        lines(
            "SM activity",
            "Share of cycles in which a multiprocessor had work.",
            "percentunit",
            Query("podgpu_gpu_sm_active_ratio{<node>}", _GPU),
            most=1,
        ),
        lines(
            "Tensor cores",
            "Share of cycles in which any tensor core pipe was active.",
            "percentunit",
            Query("podgpu_gpu_tensor_active_ratio{<node>}", _GPU),
            most=1,
        ),
    ),
)

_LINKS = Section(
    "Links",
    (
        lines(
            "PCIe traffic",
            "Data sent and received over PCIe.",
            "Bps",
            Query("podgpu_gpu_pcie_transmit_bytes_per_second{<node>}", f"{_GPU} sent"),
            Query("podgpu_gpu_pcie_receive_bytes_per_second{<node>}", f"{_GPU} received"),
        ),
        lines(
            "NVLink traffic",
            "Payload sent and received over all NVLinks.",
            "Bps",
            Query("rate(podgpu_gpu_nvlink_transmit_bytes_total{<node>}[$__rate_interval])", f"{_GPU} sent"),
            Query("rate(podgpu_gpu_nvlink_receive_bytes_total{<node>}[$__rate_interval])", f"{_GPU} received"),
        ),
    ),
)

_INVENTORY = Section(
    "What there is, and who is on it",
    (
        table(
            "Cards",
            "Model of each card, and what the driver asks for: an action, or a reset that remaps faulty memory.",
            (
                CLUSTER,
                NODE,
                GPU,
                Column("model", "Model", 110),
                Column("mig_enabled", "MIG", 55),
                UUID,
            ),
            Query("max by (cluster, node, gpu, model, mig_enabled, uuid) (podgpu_gpu_info{<node>})"),
            Query(f"max by ({_BY}) (podgpu_gpu_recovery_action{{<node>}})", "Recovery", "none", RECOVERY, width=100),
            Query(
                f"max by ({_BY}) (podgpu_gpu_row_remap_pending{{<node>}})",
                "To remap",
                "none",
                width=80,
                thresholds=BAD_ABOVE_ZERO,
            ),
            sort="Node",
            absent="No agent reports a GPU",
        ),
        table(
            "Containers",
            "Who would notice if a card failed.",
            (CLUSTER, NODE, GPU, NAMESPACE, POD, CONTAINER),
            Query(f"sum by ({_PLACE}) (podgpu_container_allocated_ratio{{<namespace>}})", "Share", "percentunit"),
            Query(f"sum by ({_PLACE}) (podgpu_container_memory_used_bytes{{<namespace>}})", "Memory", "bytes"),
            sort="Node",
            absent="No container holds a GPU",
        ),
    ),
)

DASHBOARD = Dashboard(
    uid="podgpu-health",
    title="podgpu / Node and GPU health",
    description="What fails, what is hot, what is slowed down, and who is affected.",
    answer="Problems",
    sections=(_NOW, _PRESENCE, _HEAT, _USE, _LINKS, _INVENTORY),
)
