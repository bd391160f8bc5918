"""The whole cluster at a glance: how many GPUs there are, who has them, who uses them."""

from tools.dashboards.dashboard import Dashboard
from tools.dashboards.glance import BUSY, DOWN, GPUS, TO_NAMESPACE, TO_NODE, TO_POD
from tools.dashboards.panel import (
    FULL,
    Query,
    Section,
    areas,
    bars,
    lines,
    stat,
    table,
)

_IDLE = (
    "sum by (cluster, node, gpu, mig, namespace, pod, container) (podgpu_container_allocated_ratio{<namespace>})"
    " and on (cluster, node, gpu, mig, namespace, pod, container)"
    " (rate(podgpu_container_busy_seconds_total{<namespace>}[15m]) < 0.001)"
)

_NOW = Section(
    "Now",
    (
        GPUS,
        DOWN,
        stat(
            "Allocated",
            "Share of all cards that was given to containers of the chosen namespaces.",
            "percentunit",
            "sum(podgpu_container_allocated_ratio{<namespace>}) / count(podgpu_gpu_up{<node>})",
        ),
        stat(
            "Busy",
            "Share of all cards that containers of the chosen namespaces keep busy.",
            "percentunit",
            f"sum({BUSY}) / count(podgpu_gpu_up{{<node>}})",
        ),
        stat(
            "Memory in use",
            "Device memory in use, as a share of all there is.",
            "percentunit",
            "sum(podgpu_gpu_memory_used_bytes{<node>}) / sum(podgpu_gpu_memory_total_bytes{<node>})",
            thresholds=FULL,
        ),
        stat("Power", "Power draw of all boards.", "watt", "sum(podgpu_gpu_power_watts{<node>})"),
    ),
)

_OVER_TIME = Section(
    "Over time",
    (
        lines(
            "GPUs: there, allocated, busy",
            "The gap between the lines is what is free, and what is held without being used.",
            "short",
            Query("count(podgpu_gpu_up{<node>})", "there"),
            Query("sum(podgpu_container_allocated_ratio{<namespace>})", "allocated"),
            Query(f"sum({BUSY})", "busy"),
            width=12,
        ),
        areas(
            "Busy GPUs by namespace",
            "Busy time booked to each namespace, in cards.",
            "short",
            Query(f"sum by (namespace) ({BUSY})", "{{namespace}}"),
            width=12,
        ),
        areas(
            "Memory by namespace",
            "Device memory that the processes of each namespace hold.",
            "bytes",
            Query("sum by (namespace) (podgpu_container_memory_used_bytes{<namespace>})", "{{namespace}}"),
        ),
        areas(
            "Power by namespace",
            "Energy booked to each namespace over time.",
            "watt",
            Query(
                "sum by (namespace) (rate(podgpu_container_energy_joules_total{<namespace>}[$__rate_interval]))",
                "{{namespace}}",
            ),
        ),
        areas(
            "Power of nobody",
            "Energy that is booked to no container, by reason: idle cards, the host, unknown processes.",
            "watt",
            Query(
                "sum by (reason) (rate(podgpu_unattributed_energy_joules_total{<node>}[$__rate_interval]))",
                "{{reason}}",
            ),
        ),
    ),
)

_WHO = Section(
    "Who",
    (
        table(
            "Namespaces",
            "What each namespace holds and uses. Efficiency is busy time by what was allocated.",
            Query(
                "sum by (namespace) (podgpu_container_allocated_ratio{<namespace>})",
                "GPUs allocated",
                "short",
            ),
            Query(f"sum by (namespace) ({BUSY})", "GPUs busy", "short"),
            Query(
                f"sum by (namespace) ({BUSY})"
                " / on (namespace) sum by (namespace) (podgpu_container_allocated_ratio{<namespace>})",
                "efficiency",
                "percentunit",
            ),
            Query("sum by (namespace) (podgpu_container_memory_used_bytes{<namespace>})", "memory", "bytes"),
            Query("sum by (namespace) (podgpu_container_power_watts{<namespace>})", "power", "watt"),
            width=14,
            links={"namespace": TO_NAMESPACE},
        ),
        bars(
            "Busiest pods",
            "The ten pods that keep the most GPUs busy.",
            "short",
            Query(f"topk(10, sum by (namespace, pod) ({BUSY}))", "{{namespace}}/{{pod}}"),
            width=10,
        ),
        table(
            "Held and idle",
            "Containers that hold a share of a GPU and did not use it within the last 15 minutes.",
            Query(_IDLE, "share", "percentunit"),
            links={"namespace": TO_NAMESPACE, "pod": TO_POD, "node": TO_NODE},
        ),
    ),
)

_NODES = Section(
    "Nodes",
    (
        table(
            "Nodes",
            "What each node has, and how much of it is in use.",
            Query("count by (node) (podgpu_gpu_up{<node>})", "GPUs", "short"),
            Query("sum by (node) (1 - podgpu_gpu_up{<node>})", "down", "short"),
            Query("sum by (node) (podgpu_container_allocated_ratio{<namespace>})", "allocated", "short"),
            Query(f"sum by (node) ({BUSY})", "busy", "short"),
            Query(
                "sum by (node) (podgpu_gpu_memory_used_bytes{<node>})"
                " / sum by (node) (podgpu_gpu_memory_total_bytes{<node>})",
                "memory in use",
                "percentunit",
            ),
            Query("sum by (node) (podgpu_gpu_power_watts{<node>})", "power", "watt"),
            Query(
                'max by (node) (podgpu_gpu_temperature_celsius{<node>, sensor="gpu"})', "hottest", "celsius"
            ),
            links={"node": TO_NODE},
        ),
    ),
)

DASHBOARD = Dashboard(
    uid="podgpu-cluster",
    title="podgpu / Cluster",
    description="How many GPUs there are, who has them, and who uses them.",
    sections=(_NOW, _OVER_TIME, _WHO, _NODES),
)
