"""What a pod had of its GPUs over days, as a store remembers it."""

import time

from podgpu.cluster.store.answer import Sample
from podgpu.cluster.store.client import Store
from podgpu.cluster.store.fault import StoreFault
from podgpu.cluster.store.selector import quoted
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
                either = " or ".join(f"sum({self._of(metric, one, namespace, pod)})" for one in _PREFIXES)
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
