"""The whole cluster: how many GPUs there are, which namespaces hold them, and which use them."""

from tools.dashboards.dashboard import Dashboard
from tools.dashboards.glance import (
    BUSY,
    BUSY_NOW,
    CLUSTER,
    CONTAINER,
    DOWN,
    GPU,
    GPUS,
    NAMESPACE,
    NODE,
    NODES_NOT_SEEN,
    NOT_SEEN,
    PLACE,
    POD,
)
from tools.dashboards.panel import (
    BAD_ABOVE_ZERO,
    FULL,
    Query,
    Section,
    areas,
    bars,
    lines,
    stat,
    table,
)

_SHOWN = "cluster, namespace, pod, container, node, gpu"
_IDLE = "podgpu_container_idle_since_timestamp_seconds{<namespace>}"

_NOW = Section(
    "Now",
    (
        GPUS,
        DOWN,
        NOT_SEEN,
        stat(
            "Allocated",
            "Share of the cards that are seen that was given to containers of the chosen namespaces. Above 100 %: a"
            " sharing system"
            " gives out more than there is.",
            "percentunit",
            "sum(podgpu_container_allocated_ratio{<namespace>}) / count(podgpu_gpu_up{<node>})",
        ),
        stat(
            "Busy",
            "Share of the cards that are seen that containers of the chosen namespaces keep busy, as far as that is"
            " known.",
            "percentunit",
            f"clamp_max(sum({BUSY_NOW}) / count(podgpu_gpu_up{{<node>}}), 1)",
        ),
        stat("Power", "Power draw of all boards.", "watt", "sum(podgpu_gpu_power_watts{<node>})"),
    ),
)

_OVER_TIME = Section(
    "Over time",
    (
        lines(
            "GPUs: there, seen, allocated, busy",
            "What was seen in the last six hours is there; that and what is seen differ by what agents no longer"
            " report. Allocated and busy are of what is seen.",
            "short",
            Query("count(podgpu:gpu_not_seen:bool{<node>})", "there"),
            Query("count(podgpu_gpu_up{<node>})", "seen"),
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
                "GPUs held",
                "short",
                width=115,
            ),
            Query(f"sum by (cluster, namespace) ({BUSY_NOW})", "GPUs busy", "short"),
            Query(
                f"sum by (cluster, namespace) ({BUSY_NOW}) / on (cluster, namespace)"
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
            sort="GPUs held",
            absent="No container holds a GPU",
        ),
        bars(
            "Busiest pods",
            "The ten pods that keep the most GPUs busy.",
            "short",
            Query(f"topk(10, sum by (namespace, pod) ({BUSY}))", "{{namespace}}/{{pod}}"),
            width=24,
        ),
        table(
            "Held and idle",
            "Containers that hold a share of a GPU and have not used it for longer than the agents' --idle.after.",
            (CLUSTER, NAMESPACE, POD, CONTAINER, NODE, GPU),
            Query(f"max by ({_SHOWN}) (time() - {_IDLE})", "Idle for", "s", width=100),
            Query(
                f"sum by ({_SHOWN}) (podgpu_container_allocated_ratio{{<namespace>}} and on ({PLACE}) {_IDLE})",
                "Share",
                "percentunit",
                width=70,
            ),
            sort="Idle for",
            absent="No container holds a GPU idle",
        ),
    ),
)

_NODES = Section(
    "Nodes",
    (
        table(
            "Nodes",
            "What each node has, or had when it was last seen, and how much of it is in use.",
            (CLUSTER, NODE),
            Query("count by (cluster, node) (podgpu:gpu_not_seen:bool{<node>})", "GPUs", "short", width=60),
            Query(
                "sum by (cluster, node) (podgpu:gpu_down:bool{<node>})",
                "Down",
                "short",
                width=75,
                thresholds=BAD_ABOVE_ZERO,
            ),
            NODES_NOT_SEEN,
            Query(
                "sum by (cluster, node) (podgpu_container_allocated_ratio{<namespace>})", "Allocated", "short", width=85
            ),
            Query(f"sum by (cluster, node) ({BUSY_NOW})", "Busy", "short", width=75),
            Query(
                "sum by (cluster, node) (podgpu_gpu_memory_used_bytes{<node>})"
                " / sum by (cluster, node) (podgpu_gpu_memory_total_bytes{<node>})",
                "Memory in use",
                "percentunit",
                width=120,
                thresholds=FULL,
            ),
            Query("sum by (cluster, node) (podgpu_gpu_power_watts{<node>})", "Power", "watt", width=85),
            Query(
                'max by (cluster, node) (podgpu_gpu_temperature_celsius{<node>, sensor="gpu"})',
                "Hottest",
                "celsius",
                width=85,
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
    answer="Namespaces",
    sections=(_NOW, _WHO, _NODES, _OVER_TIME),
)
