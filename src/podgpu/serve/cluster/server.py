"""The HTTP server of a cluster."""

import asyncio
from collections.abc import Sequence
from dataclasses import replace

from podgpu.model import Cluster
from podgpu.option.value import Address
from podgpu.serve.cluster.events import ClusterChanges
from podgpu.serve.cluster.feed import Bills, ClusterFeed, Fits, UsageHistory
from podgpu.serve.cluster.page_registry import ClusterPageRegistry
from podgpu.serve.cluster.pages import ClusterPages
from podgpu.serve.cluster.routes import ClusterRoutes
from podgpu.serve.guard.guard import Guard
from podgpu.serve.http.request import DEFAULT, Limits
from podgpu.serve.past import History, PastRoutes, StoredTimeline
from podgpu.serve.request_handler import Load
from podgpu.serve.server import HttpServer
from podgpu.supervise import Supervisor
from podgpu.views.cluster import json
from podgpu.views.json import rows_document

# The document of a thousand nodes takes a slow line a while.
LIMITS = replace(DEFAULT, write_seconds=60.0)


class ClusterServer(HttpServer):
    def __init__(
        self,
        feed: ClusterFeed,
        registry: ClusterPageRegistry,
        *,
        max_requests: int,
        max_connections: int,
        max_streams: int,
        limits: Limits = LIMITS,
        guard: Guard | None = None,
        history: UsageHistory | None = None,
        past: History[Cluster] | None = None,
        stored: StoredTimeline | None = None,
        bills: Bills | None = None,
        fits: Fits | None = None,
        supervisor: Supervisor | None = None,
    ) -> None:
        load = Load(max_requests)
        self._pages = ClusterPages(feed, registry.views)
        self._routes = ClusterRoutes(feed, self._pages, registry, history, bills, fits, load)
        self._keeper: asyncio.Task[None] | None = None
        kept = PastRoutes(past, json.encode, rows_document, stored=stored)
        super().__init__(
            lambda dialect: kept.over(self._routes.table(dialect)),
            registry.dialects,
            ClusterChanges(feed),
            load,
            max_connections=max_connections,
            max_streams=max_streams,
            limits=limits,
            guard=guard,
            supervisor=supervisor,
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
        await super().stop()
        self._routes.close()
