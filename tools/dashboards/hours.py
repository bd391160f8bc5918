"""GPU hours of a time, as two dashboards add them up: held, used, unknown, wasted, and what they cost."""

BY_TEAM = "cluster, namespace"
BY_POD = "cluster, namespace, pod"
BY_WORKLOAD = "cluster, namespace, workload_kind, workload_name"
ENERGY = "increase(podgpu_container_energy_joules_total{<namespace>}[$__range])"
NO_PRICE = "no price"

_PRICE = "on (cluster, node, uuid) group_left (currency) last_over_time(podgpu:gpu_hour_price{<node>}[$__range])"
_WORKLOADS = (
    f"on ({BY_POD}) group_left (workload_kind, workload_name)"
    f" topk by ({BY_POD}) (1, last_over_time(podgpu:pod_workload:info{{<team>}}[$__range]))"
)


def held(window: str = "increase", span: str = "$__range") -> str:
    return f"{window}(podgpu_container_allocated_seconds_total{{<namespace>}}[{span}])"


def used(window: str = "increase", span: str = "$__range") -> str:
    return f"{window}(podgpu_container_busy_seconds_total{{<namespace>}}[{span}])"


def unknown(window: str = "increase", span: str = "$__range") -> str:
    """What was held while nobody knows whether it was used."""
    return f"{window}(podgpu_container_unknown_use_seconds_total{{<namespace>}}[{span}])"


def wasted(window: str = "increase", span: str = "$__range") -> str:
    """What each container held and is known not to have used. One that uses more makes up for no other."""
    return f"clamp_min({held(window, span)} - {unknown(window, span)} - {used(window, span)}, 0)"


def hours(seconds: str, by: str) -> str:
    return f"{summed(seconds, by)} / 3600"


def cost(seconds: str, by: str) -> str:
    return f"{summed(f'{seconds} * {_PRICE}', by, 'currency')} / 3600"


def summed(values: str, by: str, *more: str) -> str:
    """Add up what containers have; a workload has what its pods have."""
    if by != BY_WORKLOAD:
        return f"sum by ({', '.join((*filter(None, [by]), *more))}) ({values})"
    return f"sum by ({', '.join((by, *more))}) (sum by ({', '.join((BY_POD, *more))}) ({values}) * {_WORKLOADS})"
