"""Asks a store how many cards of each model there are, what an idle one takes, and what switching costs them."""

import asyncio
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping

from podgpu.cluster.report.counters import CardKey, card_of
from podgpu.cluster.report.queries import CounterStore, TimeWindow
from podgpu.cluster.store.response import Point
from podgpu.model.fit_plan import PoolFacts

PoolKey = tuple[str, str]  # a cluster, and a model
_INFO, _POWER, _SWITCHING = (
    "podgpu_gpu_info",
    "podgpu_gpu_power_watts",
    "podgpu_gpu_switching_seconds_total",
)
_RATE = "5m"  # switching is that of the worst five minutes
_CEILING = 0.9  # a card that does nothing but switch does not work


async def read_pools(store: CounterStore, window: TimeWindow) -> dict[PoolKey, PoolFacts]:
    infos, power, switching = await asyncio.gather(
        store.points(f"last_over_time({store.select(_INFO)}{window.range})", window.end),
        store.points(f"min_over_time({store.select(_POWER)}{window.range})", window.end),
        store.points(_worst_rate(store, window), window.end),
    )
    pools = {
        card: (card.cluster, point.labels.get("model", ""))
        for point in infos
        if (card := card_of(point.labels))
    }
    watts, parts = (_by_pool(pools, points) for points in (power, switching))
    return {
        pool: PoolFacts(
            cards=number,
            idle_watts=min(watts[pool]) if watts[pool] else None,
            switching=min(max(parts[pool]), _CEILING) if parts[pool] else None,
        )
        for pool, number in Counter(pools.values()).items()
    }


def _worst_rate(store: CounterStore, window: TimeWindow) -> str:
    return f"max_over_time(rate({store.select(_SWITCHING)}[{_RATE}]){window.range[:-1]}:{_RATE}])"


def _by_pool(pools: Mapping[CardKey, PoolKey], points: Iterable[Point]) -> Mapping[PoolKey, list[float]]:
    found: dict[PoolKey, list[float]] = defaultdict(list)
    for point in points:
        card = card_of(point.labels)
        if card and card in pools:
            found[pools[card]].append(point.value)
    return found
