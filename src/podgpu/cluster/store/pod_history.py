"""What a store has of the last days: a pod's use of its GPUs, and how busy all GPUs were, by namespace."""

import time
from collections.abc import Collection, Iterable, Mapping

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
_CARD, _TENANT = ("node",), ("node", "namespace", "pod", "container")  # those that may be renamed


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
        by_name = f"sum by (namespace)({self._rate(BUSY_BY_NAMESPACE, _TENANT, step)})"
        found: dict[float, dict[str, float]] = {}
        names: dict[float, dict[str, float]] = {}
        up = _once(self._store.select(UP), _CARD)
        asked = {
            "busy": f"sum({self._rate(BUSY, _CARD, step)})",
            "gpus": f"count({up})",
            "seen": f"sum({up})",
        }
        now = time.time()
        for name, query in asked.items():
            for series in await self._steps(query, seconds, step, now):
                for at, value in series.samples:
                    found.setdefault(at, {})[name] = value
        for series in await self._steps(by_name, seconds, step, now):
            for at, value in series.samples:
                if value > 0:
                    names.setdefault(at, {})[series.labels.get("namespace", "")] = value
        return [_moment(at, values, names.get(at, {}), step) for at, values in sorted(found.items())]

    async def _steps(self, query: str, seconds: int, step: int, now: float) -> list[Series]:
        """Ask by a subquery in an instant query: every store answers it. Raises UserError."""
        try:
            return await self._store.series(f"({query})[{seconds}s:{step}s]", now)
        except StoreFault as fault:
            raise UserError(f"{fault.reason}: {fault.detail}") from None

    def _rate(self, metric: str, renamed: Iterable[str], step: int) -> str:
        # Less than two minutes may have no two scrapes.
        return _once(f"rate({self._store.select(metric)}[{max(step, 120)}s])", renamed)

    async def close(self) -> None:
        await self._store.close()

    def _of(self, metric: str, prefix: str, namespace: str, pod: str) -> str:
        chosen = f"{prefix}namespace={quoted(namespace)}", f"{prefix}pod={quoted(pod)}"
        return f"sum({_once(self._store.select(metric, *chosen), _TENANT)})"


def _once(series: str, renamed: Iterable[str]) -> str:
    """Count a card or a container once, though two servers or two jobs may scrape its agent."""
    for label in renamed:
        series = f'label_replace({series}, "{label}", "$1", "exported_{label}", "(.+)")'
    return f"max by (cluster, gpu, uuid, mig, {', '.join(renamed)}) ({series})"


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
