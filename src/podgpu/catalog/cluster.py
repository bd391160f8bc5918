"""The whole cluster, as `podgpu cluster` serves it: what there is, what was given, what is used, and who waits."""

from podgpu.catalog.row import Kind, Metric, Scope, Stability, Worth

_CARDS = ("model",)
_HELD = (*_CARDS, "namespace", "resource")
_USED = (*_CARDS, "namespace")


def _row(
    name: str,
    labels: tuple[str, ...],
    text: str,
    *,
    scope: Scope = Scope.CLUSTER_NODE,
    kind: Kind = Kind.GAUGE,
    worth: Worth = Worth.CORE,
) -> Metric:
    return Metric(
        name=name,
        kind=kind,
        help=text,
        scope=scope,
        own_labels=labels,
        worth=worth,
        stability=Stability.EXPERIMENTAL,
    )


ITSELF: tuple[Metric, ...] = (
    _row(
        "build_info",
        ("cluster", "version", "demo"),
        "Name of the cluster and version of podgpu. demo is true when any node's numbers are made up.",
        kind=Kind.INFO,
        worth=Worth.VITAL,
        scope=Scope.CLUSTER,
    ),
    _row(
        "nodes",
        ("state",),
        "Nodes by state: fresh, stale, allocation (nobody reads their GPUs) or failed.",
        worth=Worth.VITAL,
        scope=Scope.CLUSTER,
    ),
    _row(
        "source_up",
        ("source",),
        "1 when this part of the reader of the cluster works, else 0.",
        worth=Worth.VITAL,
        scope=Scope.CLUSTER,
    ),
    _row(
        "errors_total",
        ("source", "reason"),
        "How often a part of the reader of the cluster failed and was started again.",
        kind=Kind.COUNTER,
        worth=Worth.VITAL,
        scope=Scope.CLUSTER,
    ),
    _row(
        "node_info",
        ("state", "origin", "reason"),
        "How a node stands, who reported it (agent, dcgm, store or api), and why it is not fresh.",
        kind=Kind.INFO,
        worth=Worth.VITAL,
    ),
    _row(
        "snapshot_timestamp_seconds",
        (),
        "When the numbers of the node were taken, in seconds since 1970.",
        worth=Worth.VITAL,
    ),
)
CAPACITY: tuple[Metric, ...] = (
    _row("gpus", _CARDS, "Cards of the node, broken ones too."),
    _row(
        "faulty_gpus",
        _CARDS,
        "Cards that cannot be read. They count as neither free nor fragmented.",
    ),
    _row(
        "allocatable",
        ("resource",),
        "What the node offers of a resource of GPUs, in the resource's own units, according to Kubernetes.",
    ),
    _row(
        "allocated_gpus",
        _HELD,
        "Shares of cards that containers were given, in cards, by the resource they were given by. Absent where the "
        "size of a share is not known.",
    ),
    _row(
        "free_gpus",
        _CARDS,
        "Shares of cards that nobody was given, in cards. Absent if the share of anybody there is not known.",
    ),
    _row(
        "fragmented_gpus",
        _CARDS,
        "The part of free_gpus on cards that somebody else has a share of: no use to a pod that wants a whole card.",
    ),
    _row("memory_total_bytes", _CARDS, "Device memory of the cards."),
)
USE: tuple[Metric, ...] = (
    _row(
        "busy_gpus",
        _CARDS,
        "Busy part of the cards' time since the previous reading, in cards. Absent if any card does not report it.",
    ),
    _row(
        "used_gpus",
        _USED,
        "Busy part of the cards' time that is booked to containers of the namespace, in cards. Empty namespace: what "
        "belongs to no pod.",
    ),
    _row(
        "idle_gpus",
        _HELD,
        "The part of allocated_gpus whose containers have not used their card for the time of --idle.after: held, but "
        "not used.",
    ),
    _row("memory_used_bytes", _CARDS, "Device memory in use. Absent if any card does not report it."),
    _row(
        "used_memory_bytes",
        _USED,
        "Device memory that is booked to containers of the namespace. Empty namespace: what belongs to no pod.",
    ),
    _row("power_watts", _CARDS, "Power that the cards draw. Absent if any card does not report it."),
)
WAITING: tuple[Metric, ...] = (
    _row(
        "pending_pods",
        ("namespace", "resource"),
        "Pods that ask for the resource and are on no node yet. A pod counts once for each resource that it asks for.",
        scope=Scope.CLUSTER,
    ),
    _row(
        "pending_requests",
        ("namespace", "resource"),
        "What these pods ask for together, in the resource's own units.",
        scope=Scope.CLUSTER,
    ),
)
