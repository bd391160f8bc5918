"""The HTTP server of a cluster, and its events: the rows of nodes that have changed."""

import asyncio
from collections.abc import Iterable, Iterator, Sequence
from typing import Unpack

import msgspec

from podgpu.model import Cluster, ClusterNode
from podgpu.option.value import Address
from podgpu.serve.cluster.pages import BillMaker, ClusterFeed, ClusterPages, FitMaker, UsageHistory
from podgpu.serve.cluster.routes import ClusterRoutes
from podgpu.serve.cluster.views import ClusterPageRegistry, RenderedNodes, enclosed
from podgpu.serve.http.request import Limits
from podgpu.serve.pages import BodyPart
from podgpu.serve.past import History, PastRoutes, PastState, StoredMoment, StoredTimeline
from podgpu.serve.request_handler import Load
from podgpu.serve.server import HttpServer, ServerCaps
from podgpu.views import json
from podgpu.views.cluster import json as cluster_json
from podgpu.views.facts import FactsQuery, facts_of_nodes
from podgpu.views.rows_file import RowsQuery, rows_written

# The document of a thousand nodes takes a while over a slow line.
LIMITS = Limits(write_seconds=60.0)
EVENT_BYTES = 200_000
_MORE = "The agent of each node keeps more moments than the cluster does: its own page shows them."


class ClusterChanges:
    """Renders and compresses the row of a node when it changes, for the document and for the events."""

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
        return enclosed(before, self._rows.values, after, b",")

    async def change(self, before: Cluster, after: Cluster) -> Sequence[Sequence[BodyPart]]:
        """Encode the fields of the cluster itself, the names of nodes that are gone, and the rows that changed.

        Many rows are divided among several events: one of megabytes would freeze a browser.
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
            enclosed((first if place == 0 else b"{") + b'"rows":[', some, b"]}", b",")
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


def _past_document(past: PastState[Cluster, ClusterNode]) -> Iterable[bytes]:
    return cluster_json.document(*past.parts())


def _past_rows(past: PastState[Cluster, ClusterNode], query: RowsQuery) -> Iterable[bytes]:
    cluster, nodes = past.parts()
    return (rows_written(cluster, query, nodes),)


def _past_facts(past: PastState[Cluster, ClusterNode], asked: FactsQuery) -> Iterable[bytes]:
    return (facts_of_nodes(*past.parts(), asked),)


class ClusterServer(HttpServer):
    def __init__(
        self,
        feed: ClusterFeed,
        registry: ClusterPageRegistry,
        *,
        max_requests: int,
        history: UsageHistory | None = None,
        past: History[PastState[Cluster, ClusterNode]] | None = None,
        stored: StoredTimeline | None = None,
        stored_moment: StoredMoment[PastState[Cluster, ClusterNode]] | None = None,
        bills: BillMaker | None = None,
        fits: FitMaker | None = None,
        **caps: Unpack[ServerCaps],
    ) -> None:
        caps.setdefault("limits", LIMITS)
        load = Load(max_requests)
        self._pages = ClusterPages(feed, registry.views)
        self._routes = ClusterRoutes(feed, self._pages, registry, history, bills, fits, load)
        self._keeper: asyncio.Task[None] | None = None
        self._past = PastRoutes(
            past,
            _past_document,
            _past_rows,
            _past_facts,
            recorded=_past_document,
            stored=stored,
            stored_moment=stored_moment,
            note=_MORE,
        )
        super().__init__(
            lambda dialect: self._past.over(self._routes.table(dialect)),
            registry.dialects,
            ClusterChanges(feed),
            load,
            **caps,
        )

    async def start(self, addresses: Sequence[Address], probe_address: Address | None = None) -> None:
        await super().start(addresses, probe_address)
        self._keeper = self._supervisor.supervise("pages", self._pages.run)

    async def prepare(self) -> None:
        """Make the wanted pages of the newest cluster."""
        await self._pages.prepare()

    async def stop(self) -> None:
        if self._keeper is not None:
            self._keeper.cancel()
        self._past.close()
        await super().stop()
        self._routes.close()
