"""The HTTP server of a cluster."""

import asyncio
from collections.abc import Sequence
from dataclasses import replace
from functools import partial

from podgpu.option.address import Address
from podgpu.serve.cluster.feed import ClusterFeed, History
from podgpu.serve.cluster.menu import ClusterMenu
from podgpu.serve.cluster.pages import ClusterPages
from podgpu.serve.cluster.questions import Questions
from podgpu.serve.cluster.routes import ClusterRoutes
from podgpu.serve.cluster.subject import ClusterSubject
from podgpu.serve.events.journal import Journal
from podgpu.serve.guard.guard import Guard
from podgpu.serve.limits import DEFAULT, Limits
from podgpu.serve.server import Front
from podgpu.supervise import Supervisor

# The document of a thousand nodes takes a slow line a while.
LIMITS = replace(DEFAULT, write_seconds=60.0)


class ClusterServer(Front):
    def __init__(
        self,
        feed: ClusterFeed,
        menu: ClusterMenu,
        *,
        max_requests: int,
        max_connections: int,
        max_streams: int,
        limits: Limits = LIMITS,
        guard: Guard | None = None,
        history: History | None = None,
        supervisor: Supervisor | None = None,
    ) -> None:
        supervisor = supervisor or Supervisor()
        self._pages = ClusterPages(feed, menu.views)
        self._questions: Questions[bytes] = Questions()
        self._keeper: asyncio.Task[None] | None = None
        super().__init__(
            partial(ClusterRoutes, feed, self._pages, menu, history, self._questions),
            Journal(ClusterSubject(feed), max_streams, supervisor),
            max_requests=max_requests,
            max_connections=max_connections,
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
        self._questions.close()
