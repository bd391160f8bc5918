"""What several dashboards have: stats, columns, the links between them, and ways to ask."""

from tools.dashboards.panel import BAD_ABOVE_ZERO, Column, stat

_KEPT = "${datasource:queryparam}&${cluster:queryparam}&${__url_time_range}"
TO_NAMESPACE = f"/d/podgpu-namespace?var-namespace=${{__value.raw}}&${{node:queryparam}}&{_KEPT}"
TO_POD = (
    "/d/podgpu-workload?var-namespace=${__data.fields.namespace}&var-pod=${__value.raw}"
    f"&${{node:queryparam}}&{_KEPT}"
)
TO_NODE = f"/d/podgpu-health?var-node=${{__value.raw}}&${{namespace:queryparam}}&{_KEPT}"

CLUSTER = Column("cluster", "Cluster", 90)
NODE = Column("node", "Node", 130, TO_NODE)
GPU = Column("gpu", "GPU", 60)
NAMESPACE = Column("namespace", "Namespace", 120, TO_NAMESPACE)
POD = Column("pod", "Pod", 200, TO_POD)
CONTAINER = Column("container", "Container", 110)
UUID = Column("uuid", "UUID", 375)

BUSY = "rate(podgpu_container_busy_seconds_total{<namespace>}[$__rate_interval])"

GPUS = stat("GPUs", "Cards that the agents know.", "short", "count(podgpu_gpu_up{<node>})", absent="none")
DOWN = stat(
    "Down",
    "Cards that do not answer.",
    "short",
    "sum(1 - podgpu_gpu_up{<node>})",
    thresholds=BAD_ABOVE_ZERO,
    absent="no GPU",
)

FIRING = 'ALERTS{alertname=~"Podgpu.+", alertstate="firing", <cluster>}'


def counted(selector: str, window: str) -> str:
    """How often a counter went up, as the whole number that it is.

    increase() extends what it sees to the edges of the window, and so finds 8.07 errors. It is asked only about
    counters that restarted within the window: of all others the highest value less the lowest is exact.
    """
    series = f"{selector}[{window}]"
    return f"(max_over_time({series}) - min_over_time({series}) and resets({series}) == 0 or round(increase({series})))"
