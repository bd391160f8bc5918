"""The cluster as metric families: those of each node, and those about the cluster itself."""

from collections import Counter
from collections.abc import Iterable, Sequence

from podgpu import catalog
from podgpu.catalog.row import Scope
from podgpu.model import NODE_STATES, Cluster, ClusterNode, PendingPod
from podgpu.model.quantity import amount
from podgpu.views.cluster import capacity
from podgpu.views.series import Family, Labels

_ROWS = {
    name.removeprefix(Scope.CLUSTER.prefix): rows[0]
    for name, rows in catalog.families().items()
    if rows[0].scope in (Scope.CLUSTER, Scope.CLUSTER_NODE)
}


class _Families:
    def __init__(self) -> None:
        self._found: dict[str, Family] = {}

    def put(self, name: str, values: Sequence[str], number: float | None) -> None:
        if number is None:
            return
        row = _ROWS[name]
        family = self._found.get(name)
        if family is None:
            family = self._found[name] = Family(
                row.family, row.kind, row.help, row.worth, group=catalog.group_of(row)
            )
        family.put(number, Labels((*row.scope.labels, *row.own_labels), values))

    def all(self) -> list[Family]:
        """In the order of the catalog."""
        return [self._found[name] for name in _ROWS if name in self._found]


def of_node(node: ClusterNode) -> list[Family]:
    page = _Families()
    page.put("node_info", (node.name, node.state, node.origin, node.reason), 1.0)
    for resource, text in node.allocatable.items():
        page.put("allocatable", (node.name, resource), amount(text))
    if node.snapshot is not None:
        page.put("snapshot_timestamp_seconds", (node.name,), node.snapshot.taken_at)
        for name, labels, number in capacity.of_node(node):
            page.put(name, labels, number)
    return page.all()


def of_cluster(cluster: Cluster) -> list[Family]:
    page = _Families()
    page.put("build_info", (cluster.name, cluster.version, "true" if cluster.demo else "false"), 1.0)
    states = Counter(node.state for node in cluster.nodes)
    for state in NODE_STATES:
        page.put("nodes", (state,), float(states[state]))
    for part in cluster.parts:
        page.put("source_up", (part.name,), float(part.up))
    for one in cluster.errors:
        page.put("errors_total", (one.source, one.reason), float(one.count))
    _add_pending(page, cluster.pending)
    return page.all()


def _add_pending(page: _Families, pending: Iterable[PendingPod]) -> None:
    pods: Counter[tuple[str, str]] = Counter()
    asked: dict[tuple[str, str], float | None] = {}
    for pod in pending:
        for resource, text in pod.asks.items():
            key, number = (pod.namespace, resource), amount(text)
            pods[key] += 1
            before = asked.get(key, 0.0)
            asked[key] = None if before is None or number is None else before + number
    for key, count in pods.items():
        page.put("pending_pods", key, float(count))
        page.put("pending_requests", key, asked[key])
