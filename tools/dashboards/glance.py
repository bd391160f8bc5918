"""What several dashboards have: stats, columns, the links between them, and ways to ask."""

from tools.dashboards.panel import BAD_ABOVE_ZERO, Column, Query, stat

_KEPT = "${datasource:queryparam}&${cluster:queryparam}&${__url_time_range}"
TO_NAMESPACE = f"/d/podgpu-namespace?var-namespace=${{__value.raw}}&${{node:queryparam}}&{_KEPT}"
TO_POD = (
    "/d/podgpu-workload?var-namespace=${__data.fields.namespace}&var-pod=${__value.raw}"
    f"&${{node:queryparam}}&{_KEPT}"
)
TO_NODE = f"/d/podgpu-health?var-node=${{__value.raw}}&${{namespace:queryparam}}&{_KEPT}"

CLUSTER = Column("cluster", "Cluster", 75)
NODE = Column("node", "Node", 110, TO_NODE)
GPU = Column("gpu", "GPU", 50)
NAMESPACE = Column("namespace", "Namespace", 107, TO_NAMESPACE)
POD = Column("pod", "Pod", 160, TO_POD)
CONTAINER = Column("container", "Container", 86)
UUID = Column("uuid", "UUID", 330)

BUSY = "rate(podgpu_container_busy_seconds_total{<namespace>}[$__rate_interval])"

# Recording rules know what should be there, as far as it was seen in the last six hours.
NO_RULES = "no rules"
GPUS = stat(
    "GPUs",
    "Cards that agents know, or knew in the last six hours. Needs the recording rules.",
    "short",
    "count(podgpu:gpu_not_seen:bool{<node>})",
    absent=NO_RULES,
)
DOWN = stat(
    "Down",
    "Cards that do not answer, or did not when their node was last seen. Needs the recording rules.",
    "short",
    "sum(podgpu:gpu_down:bool{<node>})",
    thresholds=BAD_ABOVE_ZERO,
    absent=NO_RULES,
)
NOT_SEEN = stat(
    "Not seen",
    "Cards of nodes whose agent is not scraped now. Their use, memory and power are in no sum. Needs the recording"
    " rules.",
    "short",
    "sum(podgpu:gpu_not_seen:bool{<node>})",
    thresholds=BAD_ABOVE_ZERO,
    absent=NO_RULES,
)
NODES_NOT_SEEN = Query(
    "sum by (cluster, node) (podgpu:gpu_not_seen:bool{<node>})",
    "Not seen",
    "short",
    width=80,
    thresholds=BAD_ABOVE_ZERO,
)
STATE = Column(
    "state",
    "State",
    80,
    colors=(
        ("working", "working", "green"),
        ("idle", "idle", "orange"),
        ("waiting", "waiting", "blue"),
        ("unknown", "unknown", "purple"),
    ),
)

PLACE = "cluster, node, gpu, uuid, mig, namespace, pod, container"
# Of a container on a card that cannot be read nobody knows it, so it has none: a rate of its counter would be 0.
BUSY_NOW = "podgpu_container_sm_utilization_ratio{<namespace>}"

BEGAN = 'ALERTS_FOR_STATE{alertname=~"Podgpu.+", <cluster>}'
FIRING = 'ALERTS{alertname=~"Podgpu.+", alertstate="firing", <cluster>}'


def counted(selector: str, window: str) -> str:
    """How often a counter went up, as the whole number that it is.

    increase() extends what it sees to the edges of the window, and so finds 8.07 errors. It is asked only about
    counters that restarted within the window: of all others the highest value less the lowest is exact.
    """
    series = f"{selector}[{window}]"
    return f"(max_over_time({series}) - min_over_time({series}) and resets({series}) == 0 or round(increase({series})))"
