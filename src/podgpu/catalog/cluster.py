"""The whole cluster, as `podgpu cluster` serves it: what there is, what is allocated, what is used, and what waits.

And what fits, as `podgpu fit` advises: served on request alone.
"""

from podgpu.catalog.row import VITAL, Metric, Scope, counter, gauge, info

_CARDS = ("model",)
_HELD = (*_CARDS, "namespace", "resource")
_USED = (*_CARDS, "namespace")


ITSELF: tuple[Metric, ...] = (
    info(
        "podgpu_cluster_build_info",
        "Name of the cluster and version of podgpu. demo is true when any node's numbers are made up.",
        own_labels=("cluster", "version", "demo"),
        scope=Scope.CLUSTER,
        worth=VITAL,
    ),
    gauge(
        "podgpu_cluster_nodes",
        "Nodes by state: fresh, stale, allocation (nothing reads their GPUs) or failed.",
        own_labels=("state",),
        scope=Scope.CLUSTER,
        worth=VITAL,
    ),
    gauge(
        "podgpu_cluster_dark_nodes",
        "Nodes whose GPUs should be read, and are not: those that are stale or failed.",
        scope=Scope.CLUSTER,
        worth=VITAL,
    ),
    gauge(
        "podgpu_cluster_dark_critical_nodes",
        "From so many dark nodes on they are critical, by --cluster.dark-critical.",
        scope=Scope.CLUSTER,
        worth=VITAL,
    ),
    gauge(
        "podgpu_cluster_source_up",
        "1 when this part of the reader of the cluster works, else 0.",
        own_labels=("source",),
        scope=Scope.CLUSTER,
        worth=VITAL,
    ),
    counter(
        "podgpu_cluster_errors_total",
        "How often a part of the reader of the cluster failed and was restarted.",
        own_labels=("source", "reason"),
        scope=Scope.CLUSTER,
        worth=VITAL,
    ),
    info(
        "podgpu_cluster_node_info",
        "The state of a node, what reported it (agent, dcgm, store or api), and why it is not fresh.",
        own_labels=("state", "origin", "reason"),
        worth=VITAL,
    ),
    gauge(
        "podgpu_cluster_snapshot_timestamp_seconds",
        "When the numbers of the node were taken, in seconds since 1970.",
        worth=VITAL,
    ),
    gauge(
        "podgpu_cluster_heard_timestamp_seconds",
        "When a dark node last gave new numbers, in seconds since 1970. Absent while a node is read.",
        worth=VITAL,
    ),
)
CAPACITY: tuple[Metric, ...] = (
    gauge("podgpu_cluster_gpus", "Cards of the node, broken ones too.", own_labels=_CARDS),
    gauge(
        "podgpu_cluster_faulty_gpus",
        "Cards that cannot be read. They count as neither free nor fragmented.",
        own_labels=_CARDS,
    ),
    gauge(
        "podgpu_cluster_guest_gpus",
        "Cards that are given to virtual machines, and counted nowhere else. Absent where none is.",
    ),
    gauge(
        "podgpu_cluster_allocatable",
        "What the node offers of a resource of GPUs, in the resource's own units, according to Kubernetes.",
        own_labels=("resource",),
    ),
    gauge(
        "podgpu_cluster_allocated_gpus",
        "Shares of cards that are allocated to containers, in cards, by resource. Absent where the size of a share "
        "is not known.",
        own_labels=_HELD,
    ),
    gauge(
        "podgpu_cluster_free_gpus",
        "Shares of cards that are not allocated, in cards. Absent if the size of any share there is not known.",
        own_labels=_CARDS,
    ),
    gauge(
        "podgpu_cluster_cordoned_gpus",
        "Shares of cards that are not allocated, in cards, on a node that is cordoned: no pod is placed there, so they "
        "are not free. Absent for other nodes.",
        own_labels=_CARDS,
    ),
    gauge(
        "podgpu_cluster_fragmented_gpus",
        "The part of free_gpus on cards that are partly allocated: no use to a pod that needs a whole card.",
        own_labels=_CARDS,
    ),
    gauge("podgpu_cluster_memory_total_bytes", "Device memory of the cards.", own_labels=_CARDS),
)
USE: tuple[Metric, ...] = (
    gauge(
        "podgpu_cluster_busy_gpus",
        "Busy part of the cards' time since the previous reading, in cards. Absent if any card does not report it.",
        own_labels=_CARDS,
    ),
    gauge(
        "podgpu_cluster_used_gpus",
        "Busy part of the cards' time that is booked to containers of the namespace, in cards. Empty namespace: "
        "what belongs to no pod.",
        own_labels=_USED,
    ),
    gauge(
        "podgpu_cluster_idle_gpus",
        "The part of allocated_gpus whose containers have not used their card for the time of --idle.after: "
        "held, but not used.",
        own_labels=_HELD,
    ),
    gauge(
        "podgpu_cluster_memory_used_bytes",
        "Device memory in use. Absent if any card does not report it.",
        own_labels=_CARDS,
    ),
    gauge(
        "podgpu_cluster_used_memory_bytes",
        "Device memory that is booked to containers of the namespace. Empty namespace: what belongs to no pod.",
        own_labels=_USED,
    ),
    gauge(
        "podgpu_cluster_power_watts",
        "Power that the cards draw. Absent if any card does not report it.",
        own_labels=_CARDS,
    ),
)
WAITING: tuple[Metric, ...] = (
    gauge(
        "podgpu_cluster_pending_pods",
        "Pods that ask for the resource and are on no node yet. A pod counts once for each resource that it asks for.",
        own_labels=("namespace", "resource"),
        scope=Scope.CLUSTER,
    ),
    gauge(
        "podgpu_cluster_pending_requests",
        "What these pods ask for together, in the resource's own units.",
        own_labels=("namespace", "resource"),
        scope=Scope.CLUSTER,
    ),
)
FIT: tuple[Metric, ...] = (
    info(
        "podgpu_workload_fit_info",
        "What `podgpu fit` advises about a container of a workload: release, smaller, share, leave, larger or unknown; "
        "what it should hold, and how sure that is.",
        own_labels=("advice", "to", "certainty"),
    ),
    gauge("podgpu_workload_fit_gpus", "Shares of cards that its replicas hold, in cards. Absent if not known."),
    gauge(
        "podgpu_workload_fit_saved_gpus",
        "Shares of cards that the advice saves, in cards; below 0 if it needs more. Absent if not known.",
    ),
    gauge(
        "podgpu_workload_fit_peak_memory_bytes",
        "Most device memory that was seen on one of its devices. Absent if not measured.",
    ),
    gauge(
        "podgpu_workload_fit_busy_ratio",
        "Part of a card that it was busy for, at most, in 99 % of the minutes, or as many as were asked for.",
    ),
    gauge("podgpu_workload_fit_timestamp_seconds", "Until when the evidence was read, in seconds since 1970."),
)
