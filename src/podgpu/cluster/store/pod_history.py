"""What a store remembers of days: a pod's use of its GPUs, and how busy all GPUs were, by namespace."""

import time
from collections.abc import Collection, Mapping

from podgpu.cluster.store.client import Store
from podgpu.cluster.store.response import Sample, Series, StoreFault, any_of, own_labels, quoted
from podgpu.errors import UserError
from podgpu.insight.idle import PlaceKey
from podgpu.model import Moment

POINTS = 240
LEAST_STEP = 30
METRICS = {
    "busy": "podgpu_container_sm_utilization_ratio",
    "memory": "podgpu_container_memory_used_bytes",
    "watts": "podgpu_container_power_watts",
}
# How busy everything was; a rate is taken over a step.
BUSY_BY_NAMESPACE = "podgpu_container_busy_seconds_total"
BUSY, UP = "podgpu_gpu_booked_busy_seconds_total", "podgpu_gpu_up"
# A scrape without `honor_labels` renames podgpu's labels.
_PREFIXES = ("", "exported_")
# Two servers may scrape the same agent: what has the same labels of podgpu is counted once.
_CARD = "cluster, node, exported_node, gpu, uuid"
_TENANT = f"{_CARD}, mig, namespace, exported_namespace, pod, exported_pod, container, exported_container"


class StoreHistory:
    def __init__(self, store: Store) -> None:
        self._store = store

    async def of(self, namespace: str, pod: str, seconds: int) -> dict[str, list[Sample]]:
        """Return its busy time, memory and power, summed over its GPUs. Raises UserError."""
        step, now = max(LEAST_STEP, seconds // POINTS), time.time()
        found: dict[str, list[Sample]] = {}
        for name, metric in METRICS.items():
            either = " or ".join(self._of(metric, prefix, namespace, pod) for prefix in _PREFIXES)
            series = await self._steps(either, seconds, step, now)
            found[name] = series[0].samples if series else []
        return found

    async def moments(self, seconds: int, step: int) -> list[Moment]:
        """Return how busy the GPUs were in each step of so many seconds until now. Raises UserError."""
        by_name = self._rate("sum by (namespace, exported_namespace)", _TENANT, BUSY_BY_NAMESPACE, step)
        found: dict[float, dict[str, float]] = {}
        names: dict[float, dict[str, float]] = {}
        up = f"max by ({_CARD}) ({self._store.select(UP)})"
        asked = {
            "busy": self._rate("sum", _CARD, BUSY, step),
            "gpus": f"count({up})",
            "seen": f"sum({up})",
        }
        now = time.time()
        for name, query in asked.items():
            for series in await self._steps(query, seconds, step, now):
                for at, value in series.samples:
                    found.setdefault(at, {})[name] = value
        for series in await self._steps(by_name, seconds, step, now):
            namespace = own_labels(series.labels).get("namespace", "")
            for at, value in series.samples:
                if value > 0:
                    busy = names.setdefault(at, {})
                    busy[namespace] = busy.get(namespace, 0.0) + value
        return [_moment(at, values, names.get(at, {}), step) for at, values in sorted(found.items())]

    async def _steps(self, query: str, seconds: int, step: int, now: float) -> list[Series]:
        """Ask by a subquery in an instant query: every store answers it. Raises UserError."""
        try:
            return await self._store.series(f"({query})[{seconds}s:{step}s]", now)
        except StoreFault as fault:
            raise UserError(f"{fault.reason}: {fault.detail}") from None

    def _rate(self, summed: str, labels: str, metric: str, step: int) -> str:
        # Of a shorter time than a minute there may be no two scrapes.
        return f"{summed}(max by ({labels}) (rate({self._store.select(metric)}[{max(step, 120)}s])))"

    async def close(self) -> None:
        await self._store.close()

    def _of(self, metric: str, prefix: str, namespace: str, pod: str) -> str:
        chosen = f"{prefix}namespace={quoted(namespace)}", f"{prefix}pod={quoted(pod)}"
        return f"sum(max by ({_TENANT}) ({self._store.select(metric, *chosen)}))"


def _moment(at: float, values: Mapping[str, float], namespaces: dict[str, float], step: int) -> Moment:
    """A sample is of the step that ends with it."""
    return Moment(
        at=at - step,
        gpus=round(values.get("gpus", 0)),
        seen_gpus=round(values.get("seen", 0)),
        busy_gpus=values.get("busy"),
        namespaces=namespaces,
    )


LONGEST_SECONDS = 30 * 86400.0
PODS_AT_A_TIME = 50
LAST_ACTIVE = "podgpu_container_last_active_timestamp_seconds"


async def last_uses(store: Store, pods: Collection[str], seconds: float, now: float) -> dict[PlaceKey, float]:
    """Return the last use of each container on a card, within so many seconds before now."""
    within = f"[{round(max(min(seconds, LONGEST_SECONDS), 60.0))}s]"
    found: dict[PlaceKey, float] = {}
    names = sorted(set(pods))
    for at in range(0, len(names), PODS_AT_A_TIME):
        some = names[at : at + PODS_AT_A_TIME]
        chosen = (store.select(LAST_ACTIVE, any_of(f"{prefix}pod", some)) for prefix in _PREFIXES)
        for point in await store.points(" or ".join(f"max_over_time({each}{within})" for each in chosen), now):
            key = PlaceKey.of(own_labels(point.labels))
            found[key] = max(point.value, found.get(key, 0.0))
    return found
