"""The whole cluster: how many GPUs there are, which namespaces hold them, and which use them."""

from tools.dashboards.dashboard import Dashboard
from tools.dashboards.glance import BUSY, CLUSTER, CONTAINER, DOWN, GPU, GPUS, NAMESPACE, NODE, POD
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
    "sum by (cluster, node, gpu, namespace, pod, container) (podgpu_container_allocated_ratio{<namespace>}"
    " and on (cluster, node, gpu, mig, namespace, pod, container)"
    " (rate(podgpu_container_busy_seconds_total{<namespace>}[15m]) < 0.001))"
)

_NOW = Section(
    "Now",
    (
        GPUS,
        DOWN,
        stat(
            "Allocated",
            "Share of all cards that was given to containers of the chosen namespaces. Above 100 %: a sharing system"
            " gives out more than there is.",
            "percentunit",
            "sum(podgpu_container_allocated_ratio{<namespace>}) / count(podgpu_gpu_up{<node>})",
        ),
        stat(
            "Busy",
            "Share of all cards that containers of the chosen namespaces keep busy.",
            "percentunit",
            f"clamp_max(sum({BUSY}) / count(podgpu_gpu_up{{<node>}}), 1)",
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
            width=24,
        ),
        areas(
            "Busy GPUs by namespace",
            "Busy time booked to each namespace, in cards.",
            "short",
            Query(f"sum by (namespace) ({BUSY})", "{{namespace}}"),
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
            "Unattributed power",
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
            "What each namespace holds and uses. Efficiency is busy time by what was allocated. Above 100 %:"
            " on a shared card a container may use what others leave.",
            (CLUSTER, NAMESPACE),
            Query(
                "sum by (cluster, namespace) (podgpu_container_allocated_ratio{<namespace>})",
                "GPUs allocated",
                "short",
                width=120,
            ),
            Query(f"sum by (cluster, namespace) ({BUSY})", "GPUs busy", "short"),
            Query(
                f"sum by (cluster, namespace) ({BUSY}) / on (cluster, namespace)"
                " (sum by (cluster, namespace) (podgpu_container_allocated_ratio{<namespace>}) > 0)",
                "Efficiency",
                "percentunit",
            ),
            Query(
                "sum by (cluster, namespace) (podgpu_container_memory_used_bytes{<namespace>})",
                "Memory",
                "bytes",
            ),
            Query("sum by (cluster, namespace) (podgpu_container_power_watts{<namespace>})", "Power", "watt"),
            sort="GPUs allocated",
            absent="No container holds a GPU",
        ),
        bars(
            "Busiest pods",
            "The ten pods that keep the most GPUs busy.",
            "short",
            Query(f"topk(10, sum by (namespace, pod) ({BUSY}))", "{{namespace}}/{{pod}}"),
            width=8,
        ),
        table(
            "Held and idle",
            "Containers that hold a share of a GPU and did not use it within the last 15 minutes.",
            (NAMESPACE, POD, CONTAINER, NODE, GPU),
            Query(_IDLE, "Share", "percentunit", width=80),
            sort="Share",
            width=16,
            absent="No container holds a GPU idle",
        ),
    ),
)

_NODES = Section(
    "Nodes",
    (
        table(
            "Nodes",
            "What each node has, and how much of it is in use.",
            (CLUSTER, NODE),
            Query("count by (cluster, node) (podgpu_gpu_up{<node>})", "GPUs", "short", width=70),
            Query("sum by (cluster, node) (1 - podgpu_gpu_up{<node>})", "Down", "short", width=70),
            Query("sum by (cluster, node) (podgpu_container_allocated_ratio{<namespace>})", "Allocated", "short"),
            Query(f"sum by (cluster, node) ({BUSY})", "Busy", "short"),
            Query(
                "sum by (cluster, node) (podgpu_gpu_memory_used_bytes{<node>})"
                " / sum by (cluster, node) (podgpu_gpu_memory_total_bytes{<node>})",
                "Memory in use",
                "percentunit",
                width=120,
            ),
            Query("sum by (cluster, node) (podgpu_gpu_power_watts{<node>})", "Power", "watt"),
            Query(
                'max by (cluster, node) (podgpu_gpu_temperature_celsius{<node>, sensor="gpu"})',
                "Hottest",
                "celsius",
            ),
            sort="Down",
            absent="No agent reports a GPU",
        ),
    ),
)

DASHBOARD = Dashboard(
    uid="podgpu-cluster",
    title="podgpu / Cluster",
    description="How many GPUs there are, who has them, and who uses them.",
    sections=(_NOW, _OVER_TIME, _WHO, _NODES),
)
