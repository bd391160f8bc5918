"""What a team has, uses and costs. The sums over the chosen time need the recording rules."""

from tools.dashboards.dashboard import Dashboard
from tools.dashboards.glance import BUSY, CLUSTER, NAMESPACE, POD
from tools.dashboards.panel import Column, Query, Section, areas, lines, stat, table

_WORKLOAD = "cluster, namespace, workload_kind, workload_name"


def _over_range(name: str, by: str, *, divisor: str = "") -> str:
    return f"sum by ({by}) (sum_over_time(podgpu:{name}:increase5m{{<team>}}[$__range])){divisor}"


def _bill(level: str, by: str) -> tuple[Query, ...]:
    return (
        Query(
            _over_range(f"{level}_gpu_seconds_allocated", by, divisor=" / 3600"),
            "GPU hours allocated",
            "short",
            width=150,
        ),
        Query(
            _over_range(f"{level}_gpu_seconds_busy", by, divisor=" / 3600"),
            "GPU hours busy",
            "short",
            width=130,
        ),
        Query(_over_range(f"{level}_energy_joules", by, divisor=" / 3.6e6"), "Energy", "kwatth"),
        Query(_over_range(f"{level}_cost", by), "Cost", "short"),
    )


_NOW = Section(
    "Now",
    (
        stat(
            "GPUs allocated",
            "Cards that were given to containers, shares added up.",
            "short",
            "sum(podgpu_container_allocated_ratio{<namespace>})",
        ),
        stat("GPUs busy", "Cards that are kept busy.", "short", f"sum({BUSY})"),
        stat(
            "Efficiency",
            "Busy time by what was allocated. Low means that GPUs are held and not used. Above 100 %:"
            " on a shared card a container may use what others leave.",
            "percentunit",
            f"sum({BUSY}) / (sum(podgpu_container_allocated_ratio{{<namespace>}}) > 0)",
        ),
        stat("Memory", "Device memory in use.", "bytes", "sum(podgpu_container_memory_used_bytes{<namespace>})"),
        stat("Power", "Power booked to containers.", "watt", "sum(podgpu_container_power_watts{<namespace>})"),
        stat(
            "Cost per hour",
            "What the allocated shares cost, by podgpu:gpu_hour_price. Needs the recording rules.",
            "short",
            "sum(podgpu:namespace_cost_per_hour:sum{<team>})",
        ),
    ),
)

_OVER_TIME = Section(
    "Over time",
    (
        lines(
            "GPUs allocated",
            "Cards given to each namespace, shares added up.",
            "short",
            Query("sum by (namespace) (podgpu_container_allocated_ratio{<namespace>})", "{{namespace}}"),
        ),
        lines(
            "GPUs busy",
            "Cards that each namespace keeps busy.",
            "short",
            Query(f"sum by (namespace) ({BUSY})", "{{namespace}}"),
        ),
        areas(
            "GPUs busy by workload",
            "Five-minute use of each workload, in cards. Needs the recording rules.",
            "short",
            Query(
                "sum by (namespace, workload_kind, workload_name) (podgpu:workload_gpus_busy:rate5m{<team>})",
                "{{namespace}}/{{workload_name}}",
            ),
        ),
        areas(
            "Power by workload",
            "Energy booked to each workload over time. Needs the recording rules.",
            "watt",
            Query(
                "sum by (namespace, workload_kind, workload_name) (podgpu:workload_power_watts:rate5m{<team>})",
                "{{namespace}}/{{workload_name}}",
            ),
        ),
    ),
)

_PODS = Section(
    "Pods",
    (
        table(
            "Pods",
            "Each pod's share, use, memory and power, now.",
            (CLUSTER, NAMESPACE, POD),
            Query(
                "sum by (cluster, namespace, pod) (podgpu_container_allocated_ratio{<namespace>})",
                "GPUs allocated",
                "short",
                width=120,
            ),
            Query(f"sum by (cluster, namespace, pod) ({BUSY})", "GPUs busy", "short"),
            Query(
                "sum by (cluster, namespace, pod) (podgpu_container_memory_used_bytes{<namespace>})",
                "Memory",
                "bytes",
            ),
            Query(
                "sum by (cluster, namespace, pod) (podgpu_container_power_watts{<namespace>})",
                "Power",
                "watt",
            ),
            sort="GPUs allocated",
            absent="No container holds a GPU",
        ),
    ),
)

_BILL = Section(
    "The chosen time added up (needs the recording rules)",
    (
        table(
            "Namespaces",
            "GPU hours, energy and cost of each namespace over the chosen time. Cost is by allocated share.",
            (CLUSTER, NAMESPACE),
            *_bill("namespace", "cluster, namespace"),
            sort="GPU hours allocated",
        ),
        table(
            "Workloads",
            "GPU hours, energy and cost of each workload over the chosen time. Cost is by allocated share.",
            (
                CLUSTER,
                NAMESPACE,
                Column("workload_kind", "Kind", 110),
                Column("workload_name", "Workload", 180),
            ),
            *_bill("workload", _WORKLOAD),
            sort="GPU hours allocated",
        ),
    ),
)

DASHBOARD = Dashboard(
    uid="podgpu-namespace",
    title="podgpu / Namespace",
    description="What a namespace or team has, uses and costs.",
    sections=(_NOW, _OVER_TIME, _PODS, _BILL),
)
