"""One workload or pod: its share, its use, its memory, its power, and how these numbers were found."""

from tools.dashboards import glance
from tools.dashboards.dashboard import CLUSTER, NAMESPACE, NODE, POD, Dashboard
from tools.dashboards.panel import OVER, Column, Panel, Query, Section, lines, stat, table

# A gauge, since nobody knows what happens on a card that cannot be read: the rate of its counter would be 0.
_BUSY = "avg_over_time(podgpu_container_sm_utilization_ratio{<pod>}[$__rate_interval])"
_HELD = "cluster, node, gpu, namespace, pod, container"
_CONTAINER = "{{namespace}}/{{pod}}/{{container}} GPU {{gpu}} {{mig}}"
_PLACE = "cluster, node, gpu, mig, namespace, pod, container"


def _on_its_cards(title: str, words: str, metric: str) -> Panel:
    """Whole cards that a pod is on, shared or not, and the MIG instances it is alone on."""
    return lines(
        title,
        words,
        "percentunit",
        Query(
            f'podgpu_gpu_{metric}{{<node>}} and on (cluster, node, uuid) podgpu_container_info{{<pod>, mig=""}}',
            "GPU {{gpu}} of {{node}}",
        ),
        Query(
            f"podgpu_mig_{metric}{{<node>}} and on (cluster, node, mig) podgpu_container_info{{<pod>}}",
            "{{profile}} {{mig}} on GPU {{gpu}} of {{node}}",
        ),
        most=1,
    )


_NOW = Section(
    "Now",
    (
        stat(
            "Allocated",
            "Share of cards it was given.",
            "short",
            "sum(podgpu_container_allocated_ratio{<pod>})",
        ),
        stat(
            "Busy",
            "Cards it keeps busy, as far as that is known.",
            "short",
            "sum(podgpu_container_sm_utilization_ratio{<pod>})",
            absent="not known",
        ),
        stat(
            "Memory",
            "Device memory its processes hold.",
            "bytes",
            "sum(podgpu_container_memory_used_bytes{<pod>})",
            absent="not known",
        ),
        stat(
            "Power",
            "Power booked to it.",
            "watt",
            "sum(podgpu_container_power_watts{<pod>})",
            absent="not known",
        ),
        stat(
            "Idle for",
            "For how long the first of its containers has held a GPU without using it, if longer than --idle.after.",
            "s",
            "time() - min(podgpu_container_idle_since_timestamp_seconds{<pod>})",
            absent="not idle",
        ),
        stat(
            "Processes",
            "Its processes on GPUs, where podgpu can count them.",
            "short",
            "sum(podgpu_container_processes{<pod>})",
        ),
    ),
)

_STATES = Section(
    "What it does with what it holds",
    (
        table(
            "Containers",
            "Where each container is, and what it does with what it holds. `podgpu why POD` says how that is known.",
            (
                glance.CLUSTER,
                glance.NAMESPACE,
                Column("pod", "Pod", 160),
                glance.CONTAINER,
                glance.STATE,
                glance.NODE,
                glance.GPU,
            ),
            Query(f"max by ({_HELD}, state) (podgpu_container_state{{<pod>}})"),
            sort="State",
            absent="None of these pods holds a GPU",
        ),
    ),
)

_USE = Section(
    "Use",
    (
        lines(
            "Busy time",
            "Busy time of the GPU that is booked to each container. Absent where it cannot be known, as on a lost"
            " card.",
            "percentunit",
            Query(f"clamp_max(sum by ({_PLACE}) ({_BUSY}), 1)", _CONTAINER),
            most=1,
            width=24,
        ),
        lines(
            "Share of the card",
            "What each container was given of a card.",
            "percentunit",
            Query("podgpu_container_allocated_ratio{<pod>}", _CONTAINER),
            most=1,
            width=24,
        ),
        lines(
            "Memory",
            "Device memory each container's processes hold.",
            "bytes",
            Query("podgpu_container_memory_used_bytes{<pod>}", _CONTAINER),
            width=24,
        ),
        lines(
            "Memory by limit",
            "Memory in use as a share of what a sharing system promised. Above 100 %: the limit is not enforced.",
            "percentunit",
            Query(
                "podgpu_container_memory_used_bytes{<pod>} / podgpu_container_memory_limit_bytes{<pod>}",
                _CONTAINER,
            ),
            absent="No sharing system sets a limit",
            thresholds=OVER,
            width=24,
        ),
        lines(
            "Power",
            "Power booked to each container. Absent where it cannot be known.",
            "watt",
            Query(
                f"sum by ({_PLACE}) (avg_over_time(podgpu_container_power_watts{{<pod>}}[$__rate_interval]))",
                _CONTAINER,
            ),
            width=24,
        ),
    ),
)

_CARDS = Section(
    "The cards it is on, with all their tenants",
    (
        _on_its_cards("SM activity", "Share of cycles in which a multiprocessor had work.", "sm_active_ratio"),
        _on_its_cards(
            "Tensor cores", "Share of cycles in which any tensor core pipe was active.", "tensor_active_ratio"
        ),
        _on_its_cards(
            "Occupancy",
            "Warps on the multiprocessors, as a share of the most that fit.",
            "sm_occupancy_ratio",
        ),
        _on_its_cards("Memory bandwidth", "Bandwidth of the device memory in use.", "dram_active_ratio"),
    ),
)

_EVIDENCE = Section(
    "How this is known",
    (
        table(
            "Methods",
            "The method by which the busy time of each container was found, and the MIG instance that it is on.",
            (
                glance.NAMESPACE,
                Column("pod", "Pod", 160),
                glance.CONTAINER,
                Column("method", "Method", 85),
                Column("certainty", "Certainty", 85),
                Column("mig", "MIG instance", 330),
            ),
            Query("max by (namespace, pod, container, method, certainty, mig) (podgpu_container_info{<pod>})"),
            sort="Namespace",
            absent="None of these pods holds a GPU",
        ),
        table(
            "Pods",
            "What each pod was made for.",
            (
                glance.CLUSTER,
                glance.NAMESPACE,
                Column("pod", "Pod", 160),
                Column("workload_kind", "Kind", 100),
                Column("workload_name", "Workload", 160),
                Column("phase", "Phase", 85),
                glance.NODE,
            ),
            Query(
                "max by (cluster, namespace, pod, workload_kind, workload_name, phase, node) (podgpu_pod_info{<pod>})"
            ),
            sort="Namespace",
            absent="The agents know nothing about these pods",
        ),
    ),
)

DASHBOARD = Dashboard(
    uid="podgpu-workload",
    title="podgpu / Workload",
    description="What a workload's pods have of which GPU, what they do with it, and how that is known.",
    answer="Containers",
    sections=(_NOW, _STATES, _USE, _CARDS, _EVIDENCE),
    variables=(CLUSTER, NODE, NAMESPACE, POD),
)
