"""Asks a store how many cards of each model there are, what an idle one takes, and what switching costs them."""

import asyncio
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping

from podgpu.cluster.report.counters import CardKey, card_of
from podgpu.cluster.report.queries import CounterStore, TimeWindow
from podgpu.cluster.store.response import Point
from podgpu.model.fit import PoolFacts, PoolKey

_INFO, _POWER = "podgpu_gpu_info", "podgpu_gpu_power_watts"
_SWITCHES, _SWITCHING = "podgpu_gpu_context_switches_total", "podgpu_gpu_switching_seconds_total"
ENOUGH_SWITCHES = 1000  # to say how long one takes


async def read_pools(store: CounterStore, window: TimeWindow) -> dict[PoolKey, PoolFacts]:
    infos, power, switches, seconds = await asyncio.gather(
        *(
            store.points(f"{function}({store.select(metric)}{window.range})", window.end)
            for function, metric in (
                ("last_over_time", _INFO),
                ("min_over_time", _POWER),
                ("increase", _SWITCHES),
                ("increase", _SWITCHING),
            )
        )
    )
    pools = {
        card: (card.cluster, point.labels.get("model", ""))
        for point in infos
        if (card := card_of(point.labels))
    }
    watts, numbers, times = (_by_pool(pools, points) for points in (power, switches, seconds))
    return {
        pool: PoolFacts(
            cards=cards,
            idle_watts=min(watts[pool]) if watts[pool] else None,
            switch_seconds=sum(times[pool]) / sum(numbers[pool])
            if sum(numbers[pool]) >= ENOUGH_SWITCHES
            else None,
        )
        for pool, cards in Counter(pools.values()).items()
    }


def _by_pool(pools: Mapping[CardKey, PoolKey], points: Iterable[Point]) -> Mapping[PoolKey, list[float]]:
    found: dict[PoolKey, list[float]] = defaultdict(list)
    for point in points:
        card = card_of(point.labels)
        if card and card in pools:
            found[pools[card]].append(point.value)
    return found
