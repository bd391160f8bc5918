"""The server: several addresses, one set of pages, one set of caps; and an address for probes with its own.

podgpu has an HTTP server of its own, since probes and scrapes must succeed whatever other clients do. That takes
deadlines, evictions by client network and bounds of memory below the request handler: see `http/`.
docs/architecture.md compares it with aiohttp.web and uvicorn.
"""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from podgpu.errors import UserError
from podgpu.model import Lanes, Snapshot, of_one
from podgpu.option.value import Address
from podgpu.serve import assets, event_stream
from podgpu.serve.event_stream import ChangeSource, EventBroadcaster
from podgpu.serve.guard.guard import Guard
from podgpu.serve.http.limits import DEFAULT, Limits
from podgpu.serve.http.listener import ListenerGroup
from podgpu.serve.node_events import NodeChanges
from podgpu.serve.page_registry import NATIVE_ALONE, PageRegistry
from podgpu.serve.pages import NodePages
from podgpu.serve.past import History, PastRoutes
from podgpu.serve.request_handler import Load, RequestHandler, Route
from podgpu.serve.routes import PROBED, NodeFeed, NodeRoutes
from podgpu.serve.sockets import bind, spare_descriptors
from podgpu.supervise import Supervisor
from podgpu.views import json

# For requests that were sent before the stop to be read and begun.
LAST_CALL_SECONDS = 0.05
PENDING_PER_CONNECTION = 16


class HttpServer:
    """Addresses, caps and the guard, whatever is served.

    `table` lists the paths of an address whose `/metrics` speaks one of the `dialects`. Events are about the `changes`.
    """

    def __init__(
        self,
        table: Callable[[str], Mapping[str, Route]],
        dialects: Sequence[str],
        changes: ChangeSource[Any],
        load: Load,
        *,
        max_connections: int,
        max_streams: int,
        limits: Limits = DEFAULT,
        guard: Guard | None = None,
        supervisor: Supervisor | None = None,
    ) -> None:
        self._supervisor = supervisor or Supervisor()
        self._limits = limits
        self._guard = guard or Guard()
        self._load = load
        places = spare_descriptors(max_connections, wanted=PENDING_PER_CONNECTION * max_connections)
        self._listeners = ListenerGroup(limits, max_connections, places)
        self._probe_listeners = ListenerGroup(limits, max_connections, places)
        self._groups = (self._listeners, self._probe_listeners)
        self._routes_of = table
        self._dialects = dialects
        self._events = EventBroadcaster(changes, max_streams, self._supervisor)
        self._files = assets.routes()
        self._sweeper: asyncio.Task[None] | None = None
        self.addresses: tuple[Address, ...] = ()
        self.probe_address: Address | None = None

    @property
    def ports(self) -> tuple[int, ...]:
        return tuple(address.port for address in self.addresses)

    @property
    def clients(self) -> int:
        """How many are connected, whether they have sent a request or not."""
        return sum(map(len, self._groups))

    @property
    def scheme(self) -> str:
        return "http" if self._guard.context is None else "https"

    async def start(self, addresses: Sequence[Address], probe_address: Address | None = None) -> None:
        """`addresses` become those given, with the port found where any was asked for.

        The `probe_address` answers probes and scrapes alone, and no other address can fill its places.
        """
        for address in addresses:
            self._check_dialect(address, "--web.listen-address")
        try:
            for address in addresses:
                found = await self._listen(address, self._table(address.dialect), self._listeners)
                self.addresses += (found,)
            if probe_address is not None:
                self._check_dialect(probe_address, "--web.probe-address")
                table = self._routes_of(probe_address.dialect)
                probed = {path: table[path] for path in PROBED}
                self.probe_address = await self._listen(probe_address, probed, self._probe_listeners)
        except BaseException:
            await self.stop()
            raise
        self._sweeper = self._supervisor.supervise("server", self._sweep)

    async def stop(self) -> None:
        """Accept nothing more, let requests in progress finish, then close."""
        self._load.stopping = True
        self._events.close()
        for group in self._groups:
            group.close()
        if self.clients:
            await asyncio.sleep(LAST_CALL_SECONDS)
            seconds = self._limits.stop_seconds
            await asyncio.gather(*(group.connections.tasks.finish(seconds) for group in self._groups))
        for group in self._groups:
            group.abort()
        if self._sweeper is not None:
            self._sweeper.cancel()
        await self._guard.close()
        await asyncio.sleep(0)

    def _check_dialect(self, address: Address, option: str) -> None:
        if address.dialect not in self._dialects:
            known = ", ".join(self._dialects)
            raise UserError(
                f"{option}={address}: there is no dialect {address.dialect!r}; choose one of: {known}"
            )

    def _table(self, dialect: str) -> Mapping[str, Route]:
        # Vital: a stream takes no place of a page, and has a cap of its own.
        events = Route(event_stream.handler(self._events), ("GET",), vital=True)
        return {**self._routes_of(dialect), event_stream.PATH: events, **self._files}

    async def _listen(self, address: Address, table: Mapping[str, Route], group: ListenerGroup) -> Address:
        bound = await bind(address)
        group.open(bound, RequestHandler(table, self._load, self._guard), lambda: self._guard.context)
        return replace(address, port=bound[0].getsockname()[1])

    async def _sweep(self) -> None:
        loop = asyncio.get_running_loop()
        while True:
            await asyncio.sleep(self._limits.sweep_seconds)
            for group in self._groups:
                group.sweep(loop.time())
            if self._guard.reload():
                self._events.disconnect()  # credentials are checked by request, and a stream is one without an end


class NodeServer(HttpServer):
    def __init__(
        self,
        feed: NodeFeed,
        *,
        series_limit: int,
        max_requests: int,
        max_connections: int,
        max_streams: int,
        limits: Limits = DEFAULT,
        registry: PageRegistry = NATIVE_ALONE,
        guard: Guard | None = None,
        history: History[Snapshot] | None = None,
        lanes: Callable[[str], Lanes | None] | None = None,
        supervisor: Supervisor | None = None,
    ) -> None:
        pages, load, guard = NodePages(series_limit, registry), Load(max_requests), guard or Guard()
        routes = NodeRoutes(feed, pages, load, guard.hosts)
        past = PastRoutes(
            history, json.encode, lambda was, by: json.rows_document(of_one(was), by), lanes=lanes
        )
        super().__init__(
            lambda dialect: past.over(routes.table(dialect)),
            registry.dialects,
            NodeChanges(feed, pages),
            load,
            max_connections=max_connections,
            max_streams=max_streams,
            limits=limits,
            guard=guard,
            supervisor=supervisor,
        )
