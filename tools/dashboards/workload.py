"""One workload or pod: its share, its use, its memory, its power, and how these numbers were found."""

from tools.dashboards import glance
from tools.dashboards.dashboard import CLUSTER, NAMESPACE, NODE, POD, Dashboard
from tools.dashboards.panel import Column, Panel, Query, Section, lines, stat, table

_BUSY = "rate(podgpu_container_busy_seconds_total{<pod>}[$__rate_interval])"
_CONTAINER = "{{namespace}}/{{pod}}/{{container}} GPU {{gpu}}"
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
            "{{profile}} on GPU {{gpu}} of {{node}}",
        ),
        most=1,
    )


_NOW = Section(
    "Now",
    (
        stat(
            "GPUs allocated",
            "Share of cards it was given.",
            "short",
            "sum(podgpu_container_allocated_ratio{<pod>})",
        ),
        stat("GPUs busy", "Cards it keeps busy.", "short", f"sum({_BUSY})"),
        stat(
            "Memory",
            "Device memory its processes hold.",
            "bytes",
            "sum(podgpu_container_memory_used_bytes{<pod>})",
        ),
        stat("Power", "Power booked to it.", "watt", "sum(podgpu_container_power_watts{<pod>})"),
        stat(
            "Last active",
            "Time since any of its containers used a GPU.",
            "s",
            "time() - max(podgpu_container_last_active_timestamp_seconds{<pod>})",
            absent="never seen",
        ),
        stat(
            "Processes",
            "Its processes on GPUs, where podgpu can count them.",
            "short",
            "sum(podgpu_container_processes{<pod>})",
        ),
    ),
)

_USE = Section(
    "Use",
    (
        lines(
            "Busy time",
            "Busy time of the GPU that is booked to each container, in cards.",
            "percentunit",
            Query(f"clamp_max(sum by ({_PLACE}) ({_BUSY}), 1)", _CONTAINER),
            most=1,
            width=24,
        ),
        lines(
            "SM utilization",
            "Share of time during which the container's kernels ran. Absent where it cannot be measured, as under MPS.",
            "percentunit",
            Query("podgpu_container_sm_utilization_ratio{<pod>}", _CONTAINER),
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
            width=24,
        ),
        lines(
            "Power",
            "Energy booked to each container over time.",
            "watt",
            Query(
                f"sum by ({_PLACE}) (rate(podgpu_container_energy_joules_total{{<pod>}}[$__rate_interval]))",
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
            "Containers",
            "Where each container is, and the method by which its busy time was found. `podgpu why POD` says more.",
            (
                glance.CLUSTER,
                glance.NAMESPACE,
                Column("pod", "Pod", 200),
                glance.CONTAINER,
                Column("method", "Method", 100),
                glance.NODE,
                glance.GPU,
                Column("mig", "MIG instance", 330),
            ),
            Query(f"max by ({_PLACE}, method) (podgpu_container_info{{<pod>}})"),
            sort="Namespace",
            absent="None of these pods holds a GPU",
        ),
        table(
            "Pods",
            "What each pod was made for.",
            (
                glance.CLUSTER,
                glance.NAMESPACE,
                Column("pod", "Pod", 200),
                Column("workload_kind", "Kind", 110),
                Column("workload_name", "Workload", 180),
                Column("phase", "Phase", 100),
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
    sections=(_NOW, _USE, _CARDS, _EVIDENCE),
    variables=(CLUSTER, NODE, NAMESPACE, POD),
)
