"""The events of a cluster: rows of the nodes that changed."""

from collections.abc import Iterator, Sequence

import msgspec

from podgpu.model import Cluster
from podgpu.serve.cluster.feed import ClusterFeed
from podgpu.serve.cluster.shelf import Shelf
from podgpu.serve.events.piece import Piece
from podgpu.views import json
from podgpu.views.cluster import json as cluster_json

PART_BYTES = 200_000


class ClusterSubject:
    """A row is rendered and packed when its node changes, for the document and for the events."""

    def __init__(self, feed: ClusterFeed) -> None:
        self._feed = feed
        self._shelf = Shelf(lambda node: Piece(b"," + cluster_json.row(node)))

    @property
    def state(self) -> Cluster:
        return self._feed.cluster

    async def changed(self, seen: Cluster) -> Cluster:
        return await self._feed.changed(seen)

    async def document(self, state: Cluster) -> Sequence[Piece]:
        before, after = cluster_json.frame(state)
        await self._shelf.update(state.nodes)
        first, *others = self._shelf.made or [Piece(b"")]
        return Piece(before + first.plain.removeprefix(b",")), *others, Piece(after)

    async def change(self, before: Cluster, after: Cluster) -> Sequence[Sequence[Piece]]:
        """Write the cluster's own fields, the names of nodes that are gone, and rows of those that changed.

        Many rows are divided among several parts: a browser would stand still over one of megabytes.
        """
        known = {node.name: node for node in before.nodes}
        await self._shelf.update(after.nodes)
        entries = zip(after.nodes, self._shelf.made, strict=True)
        rows = [piece for node, piece in entries if known.get(node.name) is not node]
        head = json.plain(msgspec.structs.replace(after, nodes=()))
        del head["nodes"]
        gone = sorted(known.keys() - {node.name for node in after.nodes})
        first = msgspec.json.encode({**head, "gone": gone})[:-1] + b","
        return [
            _part(first if place == 0 else b"{", some)
            for place, some in enumerate(list(_parts(rows)) or [[]])
        ]

    def forget(self) -> None:
        self._shelf.clear()


def _parts(rows: Sequence[Piece]) -> Iterator[Sequence[Piece]]:
    start, size = 0, 0
    for place, row in enumerate(rows):
        size += len(row.plain)
        if size >= PART_BYTES or place == len(rows) - 1:
            yield rows[start : place + 1]
            start, size = place + 1, 0


def _part(before: bytes, rows: Sequence[Piece]) -> Sequence[Piece]:
    if not rows:
        return (Piece(before + b'"rows":[]}'),)
    first, *others = rows
    # The first has nothing before it.
    return Piece(before + b'"rows":[' + first.plain.removeprefix(b",")), *others, Piece(b"]}")
