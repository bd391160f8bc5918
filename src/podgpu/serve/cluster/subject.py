"""The events of a cluster: rows of the nodes that changed."""

from collections.abc import Sequence

import msgspec

from podgpu.model import Cluster
from podgpu.serve.cluster.feed import ClusterFeed
from podgpu.serve.cluster.shelf import Piece
from podgpu.serve.cluster.views import ListView
from podgpu.views import json


class ClusterSubject:
    """A row is rendered and packed once, for the document and for the events."""

    def __init__(self, feed: ClusterFeed, view: ListView) -> None:
        self._feed = feed
        self._view = view

    @property
    def state(self) -> Cluster:
        return self._feed.cluster

    async def changed(self, seen: Cluster) -> Cluster:
        return await self._feed.changed(seen)

    async def document(self, state: Cluster) -> Sequence[Piece]:
        return (await self._view.make(state)).pieces

    async def change(self, before: Cluster, after: Cluster) -> Sequence[Piece]:
        """Write the cluster's own fields, the names of nodes that are gone, and rows of those that changed."""
        known = {node.name: node for node in before.nodes}
        entries = zip(after.nodes, await self._view.entries(after), strict=True)
        rows = [piece for node, piece in entries if known.get(node.name) is not node]
        head = json.plain(msgspec.structs.replace(after, nodes=()))
        del head["nodes"]
        gone = sorted(known.keys() - {node.name for node in after.nodes})
        frame = msgspec.json.encode({**head, "gone": gone})
        if rows:  # the first has nothing before it
            rows[0] = Piece(rows[0].plain.removeprefix(b","))
        return Piece(frame[:-1] + b',"rows":['), *rows, Piece(b"]}")
