"""When containers last used their GPUs, as far as a store remembers. Agents forget it when they start anew."""

from collections.abc import Collection

from podgpu.cluster.store.client import Store
from podgpu.cluster.store.labels import own
from podgpu.cluster.store.selector import one_of

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
            one_of("pod", names[at : at + PODS_AT_A_TIME]),
        )
        for point in await store.points(f"max_over_time({chosen}{within})", now):
            labels = own(point.labels)
            key = tuple(labels.get(name, "") for name in _LABELS)
            found[key] = max(point.value, found.get(key, 0.0))
    return found
