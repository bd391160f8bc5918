"""What several dashboards begin with, and the links between them."""

from tools.dashboards.panel import BAD_ABOVE_ZERO, stat

_KEPT = "${datasource:queryparam}&${cluster:queryparam}&${__url_time_range}"
TO_NAMESPACE = f"/d/podgpu-namespace?var-namespace=${{__value.raw}}&{_KEPT}"
TO_POD = f"/d/podgpu-workload?var-namespace=${{__data.fields.namespace}}&var-pod=${{__value.raw}}&{_KEPT}"
TO_NODE = f"/d/podgpu-health?var-node=${{__value.raw}}&{_KEPT}"

BUSY = "rate(podgpu_container_busy_seconds_total{<namespace>}[$__rate_interval])"

GPUS = stat("GPUs", "Cards that the agents know.", "short", "count(podgpu_gpu_up{<node>})")
DOWN = stat(
    "Down",
    "Cards that do not answer.",
    "short",
    "sum(1 - podgpu_gpu_up{<node>})",
    thresholds=BAD_ABOVE_ZERO,
)
