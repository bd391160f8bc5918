"""The events of a cluster: rows of the nodes that changed."""

from collections.abc import Collection, Iterator, Sequence

import msgspec

from podgpu.model import Cluster
from podgpu.serve.cluster.feed import ClusterFeed
from podgpu.serve.cluster.views import RenderedNodes
from podgpu.serve.gzip_parts import BodyPart
from podgpu.views import json
from podgpu.views.cluster import json as cluster_json

EVENT_BYTES = 200_000


class ClusterChanges:
    """A row is rendered and compressed when its node changes, for the document and for the events."""

    def __init__(self, feed: ClusterFeed) -> None:
        self._feed = feed
        self._rows = RenderedNodes(lambda node: BodyPart(b"," + cluster_json.row(node)))

    @property
    def state(self) -> Cluster:
        return self._feed.cluster

    async def changed(self, seen: Cluster) -> Cluster:
        return await self._feed.changed(seen)

    async def document(self, state: Cluster) -> Sequence[BodyPart]:
        before, after = cluster_json.frame(state)
        await self._rows.update(state.nodes)
        return _enclosed(before, self._rows.values, after)

    async def change(self, before: Cluster, after: Cluster) -> Sequence[Sequence[BodyPart]]:
        """Encode the cluster's own fields, the names of nodes that are gone, and rows of those that changed.

        Many rows are divided among several events: a browser would stand still over one of megabytes.
        """
        known = {node.name: node for node in before.nodes}
        await self._rows.update(after.nodes)
        entries = zip(after.nodes, self._rows.values, strict=True)
        rows = [row for node, row in entries if known.get(node.name) is not node]
        head = json.plain(msgspec.structs.replace(after, nodes=()))
        del head["nodes"]
        gone = sorted(known.keys() - {node.name for node in after.nodes})
        first = msgspec.json.encode({**head, "gone": gone})[:-1] + b","
        return [
            _enclosed((first if place == 0 else b"{") + b'"rows":[', some, b"]}")
            for place, some in enumerate(list(_divided(rows)) or [[]])
        ]

    def forget(self) -> None:
        self._rows.clear()


def _divided(rows: Sequence[BodyPart]) -> Iterator[Sequence[BodyPart]]:
    start, size = 0, 0
    for place, row in enumerate(rows):
        size += len(row.plain)
        if size >= EVENT_BYTES or place == len(rows) - 1:
            yield rows[start : place + 1]
            start, size = place + 1, 0


def _enclosed(before: bytes, rows: Collection[BodyPart], after: bytes) -> Sequence[BodyPart]:
    first, *others = rows or [BodyPart(b"")]
    # The first has nothing before it.
    return BodyPart(before + first.plain.removeprefix(b",")), *others, BodyPart(after)
