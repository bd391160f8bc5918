"""What is wrong in the cluster, most pressing first, one line each."""

from collections.abc import Iterator

from podgpu.catalog import xids
from podgpu.model import Card, Cluster, ClusterNode, Reading, Snapshot
from podgpu.numbers import age, integer
from podgpu.views.glance import problem
from podgpu.views.text import line

XID_SECONDS = 3600.0  # an older one is history
MAX_NAMED = 3


def wrongs(cluster: Cluster) -> list[str]:
    return [*_parts(cluster), *_nodes(cluster), *_cards(cluster), *_xids(cluster), *_node_parts(cluster)]


def _parts(cluster: Cluster) -> Iterator[str]:
    for part in cluster.parts:
        if not part.up and part.fault:
            fault = part.fault
            yield line(fault.detail) if part.name == "view" else f"{line(part.name)}: {problem(fault)}"


def _nodes(cluster: Cluster) -> Iterator[str]:
    """Group the nodes by what is wrong with them: a thousand may have the same trouble."""
    groups: dict[str, list[ClusterNode]] = {}
    for node in cluster.nodes:
        if node.state in ("stale", "failed"):
            groups.setdefault(line(node.reason) or node.state, []).append(node)
    for reason, nodes in groups.items():
        names = ", ".join(line(node.name) for node in nodes[:MAX_NAMED])
        more = f" and {integer(len(nodes) - MAX_NAMED)} more" if len(nodes) > MAX_NAMED else ""
        detail = f": {line(nodes[0].detail)}" if len(nodes) == 1 and nodes[0].detail else ""
        yield f"node {names}{more}: {reason}{detail}"


def _cards(cluster: Cluster) -> Iterator[str]:
    for snapshot, card in _all_cards(cluster):
        if card.fault is not None:
            yield f"{_name(snapshot, card)}: {problem(card.fault)}"


def _xids(cluster: Cluster) -> Iterator[str]:
    for snapshot, card in _all_cards(cluster):
        code = _number(card.readings, "xid_last_code")
        at = _number(card.readings, "xid_last_timestamp_seconds")
        if code is not None and at is not None and snapshot.taken_at - at < XID_SECONDS:
            yield f"{_name(snapshot, card)}: {xids.named(code)}, {age(snapshot.taken_at - at)} ago"


def _node_parts(cluster: Cluster) -> Iterator[str]:
    for node in cluster.nodes:
        for part in node.snapshot.parts if node.snapshot else ():
            if not part.up and part.fault:
                yield f"node {line(node.name)}, {line(part.name)}: {problem(part.fault)}"


def _all_cards(cluster: Cluster) -> Iterator[tuple[Snapshot, Card]]:
    return ((node.snapshot, card) for node in cluster.nodes if node.snapshot for card in node.snapshot.cards)


def _name(snapshot: Snapshot, card: Card) -> str:
    return f"{line(snapshot.node)} GPU {card.gpu.index}"


def _number(readings: tuple[Reading, ...], metric: str) -> float | None:
    return next((one.value for one in readings if one.metric == metric), None)
