"""The health of nodes and GPUs: what fails, what is hot, what is slowed down, and who is affected."""

from tools.dashboards.dashboard import Dashboard
from tools.dashboards.glance import DOWN, GPUS, TO_NAMESPACE, TO_POD
from tools.dashboards.panel import BAD_ABOVE_ZERO, Query, Section, lines, stat, states, table

_GPU = "{{node}} GPU {{gpu}}"
_BY = "cluster, node, gpu, uuid"

# A counter that appears with the first error has no increase from zero: if it was not there at the beginning of the
# time, all of it is new. increase() sees the resets of the others, which come with a restart of the agent.
_XIDS = """sum(
  (
    increase(podgpu_gpu_xid_errors_total{<node>}[$__range])
    and podgpu_gpu_xid_errors_total{<node>} offset $__range
  )
  or (
    max_over_time(podgpu_gpu_xid_errors_total{<node>}[$__range])
    unless podgpu_gpu_xid_errors_total{<node>} offset $__range
  )
) or vector(0)"""

_NOW = Section(
    "Now",
    (
        GPUS,
        DOWN,
        stat(
            "Recovery wanted",
            "Cards for which the driver asks for a reset, a reboot or another action.",
            "short",
            "count(podgpu_gpu_recovery_action{<node>} > 0) or vector(0)",
            thresholds=BAD_ABOVE_ZERO,
        ),
        stat(
            "Rows to remap",
            "Cards that wait for a reset to replace faulty memory.",
            "short",
            "sum(podgpu_gpu_row_remap_pending{<node>})",
            thresholds=BAD_ABOVE_ZERO,
        ),
        stat(
            "Remapping failed",
            "Cards that have to be replaced.",
            "short",
            "sum(podgpu_gpu_row_remap_failed{<node>})",
            thresholds=BAD_ABOVE_ZERO,
        ),
        stat(
            "XIDs in the chosen time",
            "Errors that the driver raised. A counter that appeared within this time counts from zero.",
            "short",
            _XIDS,
            thresholds=BAD_ABOVE_ZERO,
        ),
    ),
)

_PRESENCE = Section(
    "Presence and errors",
    (
        states(
            "GPUs", "Whether each card answers.", Query(f"max by ({_BY}) (podgpu_gpu_up{{<node>}})", _GPU)
        ),
        table(
            "Problems",
            "Why a card does not answer, and the call at fault.",
            Query(f"max by ({_BY}, reason, call) (podgpu_gpu_problem{{<node>}})"),
            width=12,
        ),
        table(
            "XIDs",
            "Errors that the driver raised since the agent started, by XID.",
            Query(f"max by ({_BY}, xid) (podgpu_gpu_xid_errors_total{{<node>}})", "errors", "short"),
            width=12,
        ),
        lines(
            "Memory errors",
            "Errors that ECC found since the driver was loaded.",
            "short",
            Query('podgpu_gpu_ecc_errors_total{<node>, lifetime="volatile"}', f"{_GPU} {{{{error}}}}"),
            width=12,
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
            "How much hotter a card may get before it slows down.",
            "celsius",
            Query("podgpu_gpu_temperature_margin_celsius{<node>}", _GPU),
        ),
        lines("Power", "Power draw of the board.", "watt", Query("podgpu_gpu_power_watts{<node>}", _GPU)),
        lines(
            "Power by limit",
            "Power draw as a share of the limit in force.",
            "percentunit",
            Query("podgpu_gpu_power_watts{<node>} / podgpu_gpu_power_limit_watts{<node>}", _GPU),
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
                f"max by ({_BY}, reason) (rate(podgpu_gpu_throttle_seconds_total{{<node>}}[$__rate_interval]))",
                f"{_GPU} {{{{reason}}}}",
            ),
        ),
    ),
)

_USE = Section(
    "Use",
    (
        lines(
            "Utilisation",
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
        ),
        lines(
            "SM activity",
            "Share of cycles in which a multiprocessor had work.",
            "percentunit",
            Query("podgpu_gpu_sm_active_ratio{<node>}", _GPU),
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
            Query(
                "rate(podgpu_gpu_nvlink_receive_bytes_total{<node>}[$__rate_interval])", f"{_GPU} received"
            ),
        ),
        lines(
            "Link errors",
            "PCIe packets that were sent again, and errors on NVLinks.",
            "short",
            Query(
                "increase(podgpu_gpu_pcie_replays_total{<node>}[$__rate_interval])", f"{_GPU} PCIe replays"
            ),
            Query(
                f"sum by ({_BY}) (increase(podgpu_gpu_nvlink_errors_total{{<node>}}[$__rate_interval]))",
                f"{_GPU} NVLink",
            ),
        ),
    ),
)

_INVENTORY = Section(
    "What there is, and who is on it",
    (
        table(
            "Cards",
            "Model, driver and place of each card.",
            Query("podgpu_gpu_info{<node>}"),
            hidden=("compute_capability", "minor"),
        ),
        table(
            "Containers",
            "Who would notice if a card failed.",
            Query(
                "sum by (node, gpu, mig, namespace, pod, container) (podgpu_container_allocated_ratio{<namespace>})",
                "share",
                "percentunit",
            ),
            Query(
                "sum by (node, gpu, mig, namespace, pod, container) (podgpu_container_memory_used_bytes{<namespace>})",
                "memory",
                "bytes",
            ),
            links={"namespace": TO_NAMESPACE, "pod": TO_POD},
        ),
    ),
)

DASHBOARD = Dashboard(
    uid="podgpu-health",
    title="podgpu / Node and GPU health",
    description="What fails, what is hot, what is slowed down, and who is affected.",
    sections=(_NOW, _PRESENCE, _HEAT, _USE, _LINKS, _INVENTORY),
)
