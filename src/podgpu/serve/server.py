"""The HTTP server: several addresses, one set of pages, one set of caps; and an address for probes with its own."""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, Protocol

from podgpu.errors import UserError
from podgpu.option.address import Address
from podgpu.serve import listen
from podgpu.serve.connection import Connection
from podgpu.serve.crowd import Crowd
from podgpu.serve.desk import Desk
from podgpu.serve.entry.hall import Hall
from podgpu.serve.events import route as event_route
from podgpu.serve.events.journal import Journal
from podgpu.serve.events.subject import NodeSubject
from podgpu.serve.guard.guard import Guard
from podgpu.serve.guard.handshake import Handshake
from podgpu.serve.limits import DEFAULT, Limits
from podgpu.serve.load import Load
from podgpu.serve.menu import NATIVE_ALONE, Menu
from podgpu.serve.node import Node
from podgpu.serve.pages import Pages
from podgpu.serve.routes import PROBED, Route, Routes
from podgpu.serve.static import assets
from podgpu.supervise import Supervisor

# For requests that were sent before the stop to be read and begun.
LAST_CALL_SECONDS = 0.05


class Tables(Protocol):
    """What there is to serve."""

    @property
    def dialects(self) -> list[str]:
        """What an address can be given."""

    def table(self, dialect: str) -> Mapping[str, Route]:
        """List the paths of an address whose `/metrics` speaks the dialect."""


class Front:
    """Addresses, caps and the guard, before whatever is served."""

    def __init__(
        self,
        tables: Callable[[Load], Tables],
        journal: Journal[Any],
        *,
        max_requests: int,
        max_connections: int,
        limits: Limits = DEFAULT,
        guard: Guard | None = None,
        supervisor: Supervisor | None = None,
    ) -> None:
        self._supervisor = supervisor or Supervisor()
        self._limits = limits
        self._guard = guard or Guard()
        self._load = Load(max_requests)
        self._hall = Hall(limits, max_connections)
        self._side_hall = Hall(limits, max_connections)
        self._halls = (self._hall, self._side_hall)
        self._routes = tables(self._load)
        self._journal = journal
        self._files = assets.routes()
        self._sweeper: asyncio.Task[None] | None = None
        self.addresses: tuple[Address, ...] = ()
        self.probe_address: Address | None = None

    @property
    def ports(self) -> tuple[int, ...]:
        return tuple(address.port for address in self.addresses)

    @property
    def clients(self) -> int:
        """How many are connected, whether they have asked for anything or not."""
        return sum(map(len, self._halls))

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
                found = await self._listen(address, self._table(address.dialect), self._hall)
                self.addresses += (found,)
            if probe_address is not None:
                await self._listen_for_probes(probe_address)
        except BaseException:
            await self.stop()
            raise
        self._sweeper = self._supervisor.supervise("server", self._sweep)

    async def stop(self) -> None:
        """Accept nothing more, let requests in progress finish, then close."""
        self._load.stopping = True
        self._journal.close()
        for hall in self._halls:
            hall.close()
        if self.clients:
            await asyncio.sleep(LAST_CALL_SECONDS)
            await self._load.finish(self._limits.stop_seconds)
        for hall in self._halls:
            hall.abort()
        if self._sweeper is not None:
            self._sweeper.cancel()
        await self._guard.close()
        await asyncio.sleep(0)

    def _check_dialect(self, address: Address, option: str) -> None:
        if address.dialect not in self._routes.dialects:
            known = ", ".join(self._routes.dialects)
            raise UserError(
                f"{option}={address}: there is no dialect {address.dialect!r}; choose one of: {known}"
            )

    def _table(self, dialect: str) -> Mapping[str, Route]:
        # Vital: a stream takes no place of a page, and has a cap of its own.
        stream = Route(event_route.events(self._journal), ("GET",), vital=True)
        return {**self._routes.table(dialect), event_route.PATH: stream, **self._files}

    async def _listen_for_probes(self, address: Address) -> None:
        self._check_dialect(address, "--web.probe-address")
        table = self._routes.table(address.dialect)
        few = {path: table[path] for path in PROBED}
        self.probe_address = await self._listen(address, few, self._side_hall)

    async def _listen(self, address: Address, table: Mapping[str, Route], hall: Hall) -> Address:
        desk = Desk(table, self._load, self._guard)
        sockets = await listen.sockets(address)
        hall.open(sockets, partial(self._connection, desk), lambda: self._guard.context is not None)
        return replace(address, port=sockets[0].getsockname()[1])

    def _connection(self, desk: Desk, crowd: Crowd) -> asyncio.Protocol:
        """Begin a connection by the rules of this moment: a new certificate disturbs no older connection."""
        connection, context = Connection(desk, crowd, self._limits), self._guard.context
        return connection if context is None else Handshake(connection, context, crowd, self._limits)

    async def _sweep(self) -> None:
        loop = asyncio.get_running_loop()
        while True:
            await asyncio.sleep(self._limits.sweep_seconds)
            for hall in self._halls:
                hall.sweep(loop.time())
            if self._guard.look():
                self._journal.dismiss()  # a request is checked, and a stream is one that never ends


class Server(Front):
    """The pages of one node."""

    def __init__(
        self,
        agent: Node,
        *,
        series_limit: int,
        max_requests: int,
        max_connections: int,
        max_streams: int,
        limits: Limits = DEFAULT,
        menu: Menu = NATIVE_ALONE,
        guard: Guard | None = None,
        supervisor: Supervisor | None = None,
    ) -> None:
        supervisor = supervisor or Supervisor()
        pages, guard = Pages(series_limit, menu), guard or Guard()
        super().__init__(
            partial(Routes, agent, pages, hosts=guard.hosts),
            Journal(NodeSubject(agent, pages), max_streams, supervisor),
            max_requests=max_requests,
            max_connections=max_connections,
            limits=limits,
            guard=guard,
            supervisor=supervisor,
        )
