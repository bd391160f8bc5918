"""What a team has, uses and costs. Workloads and cost need the recording rules."""

from tools.dashboards.dashboard import Dashboard
from tools.dashboards.glance import BUSY, BUSY_NOW, CLUSTER, NAMESPACE, POD, STATE
from tools.dashboards.hours import (
    BY_TEAM,
    BY_WORKLOAD,
    ENERGY,
    NO_PRICE,
    cost,
    held,
    hours,
    summed,
    used,
    wasted,
)
from tools.dashboards.panel import Column, Query, Section, areas, lines, stat, table

_CURRENCY = Column("currency", "Currency", 85)


def _bill(by: str) -> tuple[Query, ...]:
    return (
        Query(hours(held(), by), "Hours held", "short", width=115),
        Query(hours(used(), by), "Hours used", "short", width=95),
        Query(hours(wasted(), by), "Wasted", "short", width=75),
        Query(f"{summed(ENERGY, by)} / 3.6e6", "Energy", "kwatth", width=85),
    )


_POWER = "rate(podgpu_container_energy_joules_total{<namespace>}[$__rate_interval])"

_NOW = Section(
    "Now",
    (
        stat(
            "Allocated",
            "Cards that were given to containers, shares added up.",
            "short",
            "sum(podgpu_container_allocated_ratio{<namespace>})",
        ),
        stat("Busy", "Cards that are kept busy, as far as that is known.", "short", f"sum({BUSY_NOW})"),
        stat(
            "Efficiency",
            "Busy time by what was allocated. Low means that GPUs are held and not used. Above 100 %:"
            " on a shared card a container may use what others leave.",
            "percentunit",
            f"sum({BUSY_NOW}) / (sum(podgpu_container_allocated_ratio{{<namespace>}}) > 0)",
        ),
        stat("Memory", "Device memory in use.", "bytes", "sum(podgpu_container_memory_used_bytes{<namespace>})"),
        stat("Power", "Power booked to containers.", "watt", "sum(podgpu_container_power_watts{<namespace>})"),
        stat(
            "Hourly cost",
            "What the allocated shares cost, by podgpu:gpu_hour_price and its label currency. Needs its recording"
            " rule.",
            "short",
            "sum by (currency) (podgpu_container_allocated_ratio{<namespace>}"
            " * on (cluster, node, uuid) group_left (currency) podgpu:gpu_hour_price{<node>})",
            legend="{{currency}}",
            absent=NO_PRICE,
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
            "Use of each workload, in cards. Needs the recording rules.",
            "short",
            Query(summed(BUSY, BY_WORKLOAD), "{{namespace}}/{{workload_name}}"),
        ),
        areas(
            "Power by workload",
            "Energy booked to each workload over time. Needs the recording rules.",
            "watt",
            Query(summed(_POWER, BY_WORKLOAD), "{{namespace}}/{{workload_name}}"),
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
                "GPUs held",
                "short",
                width=115,
            ),
            Query(f"sum by (cluster, namespace, pod) ({BUSY_NOW})", "GPUs busy", "short"),
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
            sort="GPUs held",
            absent="No container holds a GPU",
        ),
        table(
            "States",
            "What the containers of each pod do with what they hold: idle is longer than the agents' --idle.after.",
            (CLUSTER, NAMESPACE, POD, STATE),
            Query("sum by (cluster, namespace, pod, state) (podgpu_container_state{<namespace>})", "Places", "short"),
            sort="State",
            absent="No container holds a GPU",
        ),
    ),
)

_BILL = Section(
    "The chosen time added up",
    (
        table(
            "Namespaces",
            "GPU hours and energy of each namespace over the chosen time, as on the dashboard of bills.",
            (CLUSTER, NAMESPACE),
            *_bill(BY_TEAM),
            sort="Hours held",
        ),
        table(
            "Workloads",
            "GPU hours and energy of each workload over the chosen time. Needs the recording rules.",
            (CLUSTER, NAMESPACE, Column("workload_kind", "Kind", 100), Column("workload_name", "Workload", 160)),
            *_bill(BY_WORKLOAD),
            sort="Hours held",
        ),
        table(
            "Cost of workloads",
            "What the hours of each workload cost, by what was held. Needs the recording rules.",
            (
                CLUSTER,
                NAMESPACE,
                Column("workload_kind", "Kind", 100),
                Column("workload_name", "Workload", 160),
                _CURRENCY,
            ),
            Query(cost(held(), BY_WORKLOAD), "Cost", "short"),
            sort="Cost",
        ),
    ),
)

DASHBOARD = Dashboard(
    uid="podgpu-namespace",
    title="podgpu / Namespace",
    description="What a namespace or team has, uses and costs.",
    answer="Pods",
    sections=(_NOW, _PODS, _OVER_TIME, _BILL),
)
