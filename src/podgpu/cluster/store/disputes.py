"""Finds the nodes that two targets speak for at the same time without saying the same, by what a store has now."""

import asyncio
from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping
from itertools import combinations

from podgpu.cluster.store.client import Store
from podgpu.cluster.store.response import DecodeBudget, Point, Series, own_labels
from podgpu.cluster.store.targets import MOST_TARGETS, MOST_WATTS, ScrapeTarget, advice, agree, several, together
from podgpu.model import Fault

RECENT = "[5m]"  # far enough to see two scrapes of nearly every configuration; a store itself forgets a series then
REASON = "disputed"
CLOCK = "podgpu_snapshot_timestamp_seconds"
COUNTERS = "podgpu_(container|gpu_booked)_(allocated_seconds|busy_seconds|energy_joules)_total"
_OWN = ("__name__", "uuid", "mig", "namespace", "pod", "container")

Counter = tuple[str, ...]
Disputes = Mapping[str, tuple[ScrapeTarget, ...]]  # the targets that speak for a node


def disputes(clocks: Iterable[Series], counters: Iterable[Point]) -> Disputes:
    """`clocks` has the times of each target's scrapes, `counters` what it said last."""
    times: dict[str, dict[ScrapeTarget, list[float]]] = defaultdict(lambda: defaultdict(list))
    for clock in clocks:
        if node := own_labels(clock.labels).get("node", ""):
            times[node][ScrapeTarget.of(clock.labels)] += [at for at, _ in clock.samples]
    several = {node: targets for node, targets in times.items() if len(targets) > 1}
    if not several:
        return {}
    said: dict[tuple[str, ScrapeTarget], dict[Counter, float]] = defaultdict(dict)
    for point in counters:
        own = own_labels(point.labels)
        if (node := own.get("node", "")) in several:
            said[node, ScrapeTarget.of(point.labels)][tuple(own.get(name, "") for name in _OWN)] = point.value
    return {
        node: tuple(sorted(targets))
        for node, targets in several.items()
        if _differ({target: (sorted(seen), said[node, target]) for target, seen in targets.items()})
    }


def _differ(targets: Mapping[ScrapeTarget, tuple[list[float], Mapping[Counter, float]]]) -> bool:
    if len(targets) > MOST_TARGETS:
        return True
    for (times, own), (others, theirs) in combinations(targets.values(), 2):
        rates = {counter: MOST_WATTS if "joules" in counter[0] else 1.0 for counter in {*own, *theirs}}
        if together(times, others) and not agree({times[-1]: own}, {others[-1]: theirs}, rates):
            return True
    return False


def fault(targets: Collection[ScrapeTarget]) -> Fault:
    return Fault(reason=REASON, detail=f"{several(targets)} say different things of it; {advice(targets)}")


async def find_disputes(store: Store, at: float) -> Disputes:
    """Raises StoreFault."""
    budget = DecodeBudget()
    clocks, counters = await asyncio.gather(
        store.series(f"{store.select(CLOCK)}{RECENT}", at, budget),
        store.points(store.select("", f'__name__=~"{COUNTERS}"'), at, budget),
    )
    return disputes(clocks, counters)
