"""The HTTP server: several addresses, one set of pages, one set of caps."""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, Protocol

from podgpu.errors import UserError
from podgpu.model import Prices
from podgpu.option.address import Address
from podgpu.serve import listen
from podgpu.serve.connection import Connection
from podgpu.serve.crowd import Crowd
from podgpu.serve.desk import Desk
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
from podgpu.serve.routes import Route, Routes
from podgpu.serve.static import assets

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
        prices: Prices | None = None,
    ) -> None:
        self._limits = limits
        self._guard = guard or Guard()
        self._load = Load(max_requests)
        self._crowd = Crowd(limits, max_connections)
        self._routes = tables(self._load)
        self._journal = journal
        self._files = assets.routes(prices)
        self._listeners: list[asyncio.Server] = []
        self._sweeper: asyncio.Task[None] | None = None
        self.addresses: tuple[Address, ...] = ()

    @property
    def ports(self) -> tuple[int, ...]:
        return tuple(address.port for address in self.addresses)

    @property
    def scheme(self) -> str:
        return "http" if self._guard.context is None else "https"

    async def start(self, addresses: Sequence[Address]) -> None:
        """`addresses` become those given, with the port found where any was asked for."""
        for address in addresses:
            self._check_dialect(address)
        try:
            for address in addresses:
                await self._listen(address)
        except BaseException:
            await self.stop()
            raise
        self._sweeper = asyncio.create_task(self._sweep())

    async def stop(self) -> None:
        """Accept nothing more, let requests in progress finish, then close."""
        self._load.stopping = True
        self._journal.close()
        for listener in self._listeners:
            listener.close()
        if len(self._crowd):
            await asyncio.sleep(LAST_CALL_SECONDS)
            await self._load.finish(self._limits.stop_seconds)
        self._crowd.abort()
        if self._sweeper is not None:
            self._sweeper.cancel()
        await self._guard.close()
        await asyncio.sleep(0)

    def _check_dialect(self, address: Address) -> None:
        if address.dialect not in self._routes.dialects:
            known = ", ".join(self._routes.dialects)
            raise UserError(
                f"--web.listen-address={address}: there is no dialect {address.dialect!r}; choose one of: {known}"
            )

    async def _listen(self, address: Address) -> None:
        connect = partial(
            self._connection,
            Desk(self._table(address.dialect), self._load, self._guard),
        )
        sockets = await listen.sockets(address)
        self.addresses += (replace(address, port=sockets[0].getsockname()[1]),)
        loop = asyncio.get_running_loop()
        for one in sockets:
            self._listeners.append(await loop.create_server(connect, sock=one, backlog=listen.BACKLOG))

    def _table(self, dialect: str) -> Mapping[str, Route]:
        # Vital: a stream takes no place of a page, and has a cap of its own.
        stream = Route(event_route.events(self._journal), ("GET",), vital=True)
        return {**self._routes.table(dialect), event_route.PATH: stream, **self._files}

    def _connection(self, desk: Desk) -> asyncio.Protocol:
        """Begin a connection by the rules of this moment: a new certificate disturbs no older connection."""
        connection, context = Connection(desk, self._crowd, self._limits), self._guard.context
        return connection if context is None else Handshake(connection, context, self._crowd, self._limits)

    async def _sweep(self) -> None:
        loop = asyncio.get_running_loop()
        while True:
            await asyncio.sleep(self._limits.sweep_seconds)
            self._crowd.sweep(loop.time())
            self._guard.look()


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
    ) -> None:
        pages = Pages(series_limit, menu)
        super().__init__(
            partial(Routes, agent, pages),
            Journal(NodeSubject(agent, pages), max_streams),
            max_requests=max_requests,
            max_connections=max_connections,
            limits=limits,
            guard=guard,
        )
