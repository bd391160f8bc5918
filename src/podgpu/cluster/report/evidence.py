"""Asks a store which GPUs there are besides those that were scraped within a period."""

import asyncio
from collections.abc import Callable, Collection, Iterable, Mapping

from podgpu.cluster.report.counters import CardKey, NodeKey, card_of
from podgpu.cluster.report.coverage import GpuEvidence, Stretch
from podgpu.cluster.report.queries import range_of
from podgpu.cluster.store.client import Store
from podgpu.cluster.store.response import Point, any_of, own_labels
from podgpu.model.kube import grouped

# For how long before and after the period a GPU is looked for.
AROUND_SECONDS = 7 * 86_400.0
# When a node was there is asked in so many steps first; then the samples around its end are read.
STEPS, SHORTEST_STEP = 2000, 60.0
_INFO = "podgpu_gpu_info"
_NODE = "kube_node_info"
_CAPACITY, _CREATED, _LABELS = "kube_node_status_capacity", "kube_node_created", "kube_node_labels"
_GPUS = 'resource=~"nvidia_com_(gpu|gpu_.+|mig_.+)"'  # not gpumem or gpucores, which count other things

NodeOf = Callable[[Point], NodeKey]


async def gather(store: Store, period: Stretch, now: float, scraped: Iterable[CardKey]) -> GpuEvidence:
    """`scraped` are the GPUs of the period itself."""
    start, end = period
    until = min(end + AROUND_SECONDS, now)
    info = store.select(_INFO)
    earlier, capacity = await asyncio.gather(
        store.points(f"last_over_time({info}{range_of(AROUND_SECONDS)})", start),
        store.points(f"max_over_time({store.select(_CAPACITY, _GPUS)}{range_of(end - start)})", end),
    )
    later = await store.points(f"last_over_time({info}{range_of(until - end)})", until) if until - end >= 1 else ()
    known = [frozenset(card for point in points if (card := card_of(point.labels))) for points in (earlier, later)]
    cards = {*known[0], *known[1], *scraped}
    # A store may name the cluster in the series of kube-state-metrics alone, or in podgpu's alone.
    node_of = _node_and_cluster if not cards or any(card.cluster for card in cards) else _node_alone
    nodes = {name for card in cards for name in ((card.cluster, card.node), ("", card.node))}
    counted = {node: points for node, points in grouped(capacity, node_of).items() if node not in nodes}
    unscraped = await _unscraped(store, period, counted, node_of)
    wanted = nodes | {(card.cluster, card.node) for card in unscraped}
    return GpuEvidence(known[0], known[1], await _node_times(store, period, wanted, node_of), unscraped)


async def demo_nodes(store: Store, start: float, end: float) -> set[NodeKey]:
    """Return the nodes whose numbers are made up, by a demo or a recording."""
    demo = store.select("podgpu_build_info", 'demo="true"')
    points = await store.points(f"last_over_time({demo}{range_of(end - start)})", end)
    return {_node_and_cluster(point) for point in points}


async def _unscraped(
    store: Store, period: Stretch, capacity: Mapping[NodeKey, Iterable[Point]], node_of: NodeOf
) -> dict[CardKey, str]:
    """Kubernetes counts replicas of a shared GPU as GPUs; GPU feature discovery has labels with the true number."""
    counts = {node: count for node, points in capacity.items() if (count := max(map(_capacity, points)))}
    if not counts:
        return {}
    known = f"last_over_time({store.select(_LABELS)}{range_of(period[1] - period[0])})"
    labels = {node_of(point): point.labels for point in await store.points(known, period[1])}
    found: dict[CardKey, str] = {}
    for (cluster, node), count in counts.items():
        own = labels.get((cluster, node), {})
        replicas = max(_number(own.get("label_nvidia_com_gpu_replicas")) or 1, 1)
        number = _number(own.get("label_nvidia_com_gpu_count")) or max(count // replicas, 1)
        model = own.get("label_nvidia_com_gpu_product", "").removesuffix("-SHARED").replace("-", " ")
        found |= {CardKey(cluster, node, f"{node}/{at}"): model for at in range(number)}
    return found


def _capacity(point: Point) -> int:
    # Only a label says how many GPUs the MIG instances are on.
    return int(point.value) if "_gpu" in point.labels.get("resource", "") else min(int(point.value), 1)


async def _node_times(
    store: Store, period: Stretch, wanted: Collection[NodeKey], node_of: NodeOf
) -> Mapping[NodeKey, list[Stretch]] | None:
    """Return when each node was in the cluster, or None if the store has no kube-state-metrics.

    If the samples of all nodes begin or end together, not the nodes came or went but the store or kube-state-metrics.
    """
    start, end = period
    step = max((end - start) / STEPS, SHORTEST_STEP)
    info, created = store.select(_NODE), store.select(_CREATED)
    within = f"[{round(end - start)}s:{round(step)}s]"
    last, first, since = await asyncio.gather(
        store.points(f"max_over_time(timestamp({info}){within})", end),
        store.points(f"min_over_time(timestamp({info}){within})", end),
        store.points(f"min_over_time({created}{range_of(end - start)})", end),
    )
    if not last:
        return None
    # A node has a new series when its kubelet is upgraded, or when kube-state-metrics moves to another address.
    firsts, lasts, begins = (
        {node: choose(point.value for point in points) for node, points in grouped(found, node_of).items()}
        for found, choose in ((first, min), (last, max), (since, min))
    )
    # Those that were not there at any step were there for a short time.
    found: dict[NodeKey, list[Stretch]] = {node: [] for node in begins.keys() & wanted}
    for node in lasts.keys() & wanted:
        cluster = [name for name in lasts if name[0] == node[0]]
        if node not in begins:
            came_late = firsts[node] - min(firsts[name] for name in cluster) > step
            begins[node] = firsts[node] if came_late else start
        left_early = max(lasts[name] for name in cluster) - lasts[node] > step
        ends = await _last_sample(store, node, lasts[node], step) if left_early else end
        found[node] = [(max(begins[node], start), ends)]
    return found


async def _last_sample(store: Store, node: NodeKey, last: float, step: float) -> float:
    """Find the last sample itself. It may be up to a step after `last`."""
    query = f"{store.select(_NODE, any_of('node', [node[1]]))}{range_of(2 * step)}"
    samples = await store.series(query, last + step)
    return max((at for series in samples for at, _ in series.samples), default=last)


def _node_and_cluster(point: Point) -> NodeKey:
    return point.labels.get("cluster", ""), own_labels(point.labels).get("node", "")


def _node_alone(point: Point) -> NodeKey:
    return "", own_labels(point.labels).get("node", "")


def _number(text: str | None) -> int:
    return int(text) if text and text.isascii() and text.isdigit() else 0
