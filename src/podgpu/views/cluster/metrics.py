"""The cluster as metric families, and pages joined from the lines that each node rendered.

The sums of a node are by model and namespace. A sum of which a part is unknown is absent, never smaller.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import chain

from podgpu import catalog
from podgpu.catalog.row import Scope
from podgpu.insight.sums import held_sums, of_cards, of_placements
from podgpu.insight.tenants import IDLE, UNKNOWN, NodeCard, Placement, cards_of_node, placements
from podgpu.model import NODE_STATES, Cluster, ClusterNode, PendingPod
from podgpu.model.kube import amount, grouped, total
from podgpu.views import exposition
from podgpu.views.exposition import Format
from podgpu.views.series import Family, FamilyQuery, Labels, fit

# The name of a row without its prefix, label values, and a value or None if it is unknown.
Series = tuple[str, Sequence[str], float | None]
# Families without their samples, each with its lines.
RenderedFamilies = tuple[tuple[Family, bytes], ...]
CLUSTER = "cluster"  # the label of series where several clusters are read

_ROWS = {
    name.removeprefix(Scope.CLUSTER.prefix): rows[0]
    for name, rows in catalog.families().items()
    if rows[0].scope in (Scope.CLUSTER, Scope.CLUSTER_NODE)
}


def rendered(families: Sequence[Family], limit: int) -> RenderedFamilies:
    """Write the lines. Families of least worth go beyond the limit, so that no node can fill the whole page."""
    fitting, _ = fit(families, limit)
    written = ((family, exposition.lines(family)) for family in fitting)
    return tuple((replace(family, samples={}), lines.encode()) for family, lines in written if lines)


def join(parts: Iterable[RenderedFamilies], form: Format, query: FamilyQuery | None = None) -> bytes:
    """Join pages, family by family in the order in which they first appear, with the help and type found there.

    `query` is what the client wants of the page, if not all of it.
    """
    joined: dict[str, tuple[Family, list[bytes]]] = {}
    for family, lines in chain.from_iterable(parts):
        if query is None or query.matches(family):
            joined.setdefault(family.name, (family, []))[1].append(lines)
    pieces: list[bytes] = []
    for family, lines_of_all in joined.values():
        pieces.append(exposition.metadata(family, form).encode())
        pieces += lines_of_all
    return b"".join([*pieces, exposition.end(form)])


def of_node(node: ClusterNode) -> list[Family]:
    return _families({node.cluster: _of_node(node)})


def of_cluster(cluster: Cluster) -> list[Family]:
    """Series about nodes and pods name their cluster, where several are read."""
    series: dict[str, list[Series]] = {"": list(_of_reader(cluster))}
    by_cluster = grouped(cluster.nodes, lambda node: node.cluster) or {"": []}
    for name, nodes in by_cluster.items():
        states = Counter(node.state for node in nodes)
        series.setdefault(name, []).extend(("nodes", (state,), float(states[state])) for state in NODE_STATES)
    for name, pods in grouped(cluster.pending, lambda pod: pod.cluster).items():
        series.setdefault(name, []).extend(_pending(pods))
    return _families(series)


def _families(series: Mapping[str, Iterable[Series]]) -> list[Family]:
    """Return the families that have series, in the order of the catalog. `series` are by cluster."""
    page: dict[str, Family] = {}
    for cluster, own in series.items():
        names, first = ((CLUSTER,), (cluster,)) if cluster else ((), ())
        for name, values, number in own:
            if number is None:
                continue
            row = _ROWS[name]
            if name not in page:
                page[name] = Family(row.family, row.kind, row.help, row.worth, group=catalog.group_of(row))
            page[name].put(number, Labels((*names, *row.scope.labels, *row.own_labels), (*first, *values)))
    return [page[name] for name in _ROWS if name in page]


def _of_reader(cluster: Cluster) -> Iterator[Series]:
    yield "build_info", (cluster.name, cluster.version, "true" if cluster.demo else "false"), 1.0
    for part in cluster.parts:
        yield "source_up", (part.name,), float(part.up)
    if cluster.insight and cluster.insight.dark:
        yield "dark_nodes", (), float(cluster.insight.dark.nodes)
        yield "dark_critical_nodes", (), float(cluster.insight.dark.critical_nodes)
    for error in cluster.errors:
        yield "errors_total", (error.source, error.reason), float(error.count)


def _pending(pending: Iterable[PendingPod]) -> Iterator[Series]:
    requests = ((pod.namespace, resource, amount(text)) for pod in pending for resource, text in pod.asks.items())
    for place, own in grouped(requests, lambda request: request[:2]).items():
        yield "pending_pods", place, float(len(own))
        yield "pending_requests", place, total(number for _, _, number in own)


def _of_node(node: ClusterNode) -> Iterator[Series]:
    """Yield a node's series. If it is not fresh, only capacity and allocations are shown."""
    name = node.bare_name
    yield "node_info", (name, node.state, node.origin, node.reason), 1.0
    if node.heard is not None:
        yield "heard_timestamp_seconds", (name,), node.heard.at
    for resource, text in node.allocatable.items():
        yield "allocatable", (name, resource), amount(text)
    if node.snapshot is None:
        return
    yield "snapshot_timestamp_seconds", (name,), node.snapshot.taken_at
    if node.concluded and node.concluded.sums.guest_gpus:
        yield "guest_gpus", (name,), node.concluded.sums.guest_gpus
    models = grouped(cards_of_node(node), lambda on: on.card.gpu.model)
    for model, cards in models.items():
        place = (name, model)
        yield from _capacity(place, cards)
        if node.is_outdated:
            continue
        yield from _allocated(place, cards)
        up = [on for on in cards if on.is_fresh and on.card.fault is None and on.card.readings]
        yield from _used(place, up)


def _capacity(place: tuple[str, ...], cards: list[NodeCard]) -> Iterator[Series]:
    sums = of_cards(cards)
    yield "gpus", place, sums.gpus
    if sums.dark_gpus:  # what is lost or free there now, nobody knows
        return
    yield "faulty_gpus", place, sums.lost_gpus
    if sums.lost_gpus == sums.gpus:
        return
    unknown = sums.unknown_shares and of_cards(on for on in cards if on.card.fault is None).unknown_shares
    yield "free_gpus", place, None if unknown else sums.free_gpus
    yield "cordoned_gpus", place, None if unknown else sums.cordoned_gpus
    yield "fragmented_gpus", place, None if unknown else sums.fragmented_gpus
    if any(on.is_fresh and on.card.readings for on in cards):
        yield "busy_gpus", place, None if sums.unknown_busy else sums.busy_gpus
        yield "memory_total_bytes", place, sums.memory_total_bytes
        yield "memory_used_bytes", place, None if sums.unknown_memory else sums.memory_used_bytes
        yield "power_watts", place, None if sums.unknown_power else sums.power_watts


def _allocated(place: tuple[str, ...], cards: list[NodeCard]) -> Iterator[Series]:
    claimed = [placement for placement in placements(cards) if placement.tenant.claims]
    for (namespace, resource), own in grouped(claimed, _by_resource).items():
        sums, key = held_sums(own), (*place, namespace, resource)
        yield "allocated_gpus", key, None if sums.unknown_shares else sums.allocated_gpus
        if own[0].on.is_fresh and any(placement.state not in ("", UNKNOWN) for placement in own):
            idle = (placement for placement in own if placement.state == IDLE)
            yield "idle_gpus", key, None if sums.unknown_shares and held_sums(idle).unknown_shares else sums.unused_gpus


def _used(place: tuple[str, ...], up: list[NodeCard]) -> Iterator[Series]:
    by_namespace = grouped(placements(up), lambda placement: placement.tenant.container.namespace)
    for namespace, own in by_namespace.items():
        if namespace:
            sums, key = of_placements(own), (*place, namespace)
            yield "used_gpus", key, None if sums.unknown_busy else sums.busy_gpus
            yield "used_memory_bytes", key, None if sums.unknown_memory else sums.memory_used_bytes or 0
    # What belongs to no pod: tenants outside Kubernetes, and what is booked to no container.
    sums = of_placements(by_namespace.get("", ()))
    rests = [rest for on in up for rest in on.card.rest]
    ratios = [rest.use.ratio for rest in rests if rest.use and rest.use.ratio is not None]
    sizes = [rest.memory_bytes for rest in rests if rest.memory_bytes is not None]
    if (ratios or sums.busy_gpus is not None) and not sums.unknown_busy:
        yield "used_gpus", (*place, ""), sum(ratios) + (sums.busy_gpus or 0.0)
    if (sizes or sums.memory_used_bytes is not None) and not sums.unknown_memory:
        yield "used_memory_bytes", (*place, ""), sum(sizes) + (sums.memory_used_bytes or 0)


def _by_resource(placement: Placement) -> tuple[str, str]:
    return placement.tenant.container.namespace, placement.tenant.claims[0].resource
