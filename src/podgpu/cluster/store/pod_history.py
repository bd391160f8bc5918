"""What a pod had of its GPUs over days, as a store remembers it."""

import time
from collections.abc import Collection

from podgpu.cluster.store.client import Store
from podgpu.cluster.store.response import Sample, StoreFault, any_of, own_labels, quoted
from podgpu.errors import UserError

POINTS = 240
LEAST_STEP = 30
METRICS = {
    "busy": "podgpu_container_sm_utilization_ratio",
    "memory": "podgpu_container_memory_used_bytes",
    "watts": "podgpu_container_power_watts",
}
# A scrape without `honor_labels` renames podgpu's labels.
_PREFIXES = ("", "exported_")


class StoreHistory:
    def __init__(self, store: Store) -> None:
        self._store = store

    async def of(self, namespace: str, pod: str, seconds: int) -> dict[str, list[Sample]]:
        """Return its busy time, memory and power, summed over its GPUs. Raises UserError."""
        step, now = max(LEAST_STEP, seconds // POINTS), time.time()
        found: dict[str, list[Sample]] = {}
        try:
            for name, metric in METRICS.items():
                either = " or ".join(
                    f"sum({self._of(metric, prefix, namespace, pod)})" for prefix in _PREFIXES
                )
                # A subquery in an instant query: every store answers it.
                series = await self._store.series(f"({either})[{seconds}s:{step}s]", now)
                found[name] = series[0].samples if series else []
        except StoreFault as fault:
            raise UserError(f"{fault.reason}: {fault.detail}") from None
        return found

    async def close(self) -> None:
        await self._store.close()

    def _of(self, metric: str, prefix: str, namespace: str, pod: str) -> str:
        return self._store.select(
            metric, f"{prefix}namespace={quoted(namespace)}", f"{prefix}pod={quoted(pod)}"
        )


LONGEST_SECONDS = 30 * 86400.0
PODS_AT_A_TIME = 50
_LABELS = ("node", "uuid", "mig", "namespace", "pod", "container")


async def last_uses(
    store: Store, pods: Collection[str], seconds: float, now: float
) -> dict[tuple[str, ...], float]:
    """Return the last use by node, card, instance, namespace, pod and container, within so many seconds before now."""
    within = f"[{round(max(min(seconds, LONGEST_SECONDS), 60.0))}s]"
    found: dict[tuple[str, ...], float] = {}
    names = sorted(set(pods))
    for at in range(0, len(names), PODS_AT_A_TIME):
        chosen = store.select(
            "podgpu_container_last_active_timestamp_seconds",
            any_of("pod", names[at : at + PODS_AT_A_TIME]),
        )
        for point in await store.points(f"max_over_time({chosen}{within})", now):
            labels = own_labels(point.labels)
            key = tuple(labels.get(name, "") for name in _LABELS)
            found[key] = max(point.value, found.get(key, 0.0))
    return found
