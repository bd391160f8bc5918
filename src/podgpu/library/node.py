"""The agent inside your own program, and its pages for your own aiohttp application."""

import asyncio
import os
import time
from collections.abc import Awaitable, Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Protocol, Self

from podgpu.assembly.agent import open_agent
from podgpu.assembly.server import open_pages
from podgpu.config import OPTIONS, Config
from podgpu.config.precedence import load
from podgpu.errors import UserError
from podgpu.library.record import GpuMetric, as_document
from podgpu.model import Snapshot
from podgpu.option.value import NATIVE, did_you_mean
from podgpu.serve.http.request import Request
from podgpu.serve.pages import NodePages
from podgpu.serve.request_handler import Load, Route
from podgpu.serve.routes import NodeRoutes

# How long the start waits for parts that have not answered yet.
PATIENCE_SECONDS = 10.0
POLL_SECONDS = 0.02


class Node:
    """The node that this process runs on, read every interval inside `async with Node(source="dcgm") as node`.

    The options are those of `podgpu agent`: `--dcgm.url` is `dcgm_url`. Values are text or Python values. Like flags,
    they win over the environment, which wins over the file. Raises UserError for an option that is wrong.
    """

    def __init__(self, config: Config | None = None, /, **options: object) -> None:
        if config is not None and options:
            raise TypeError("give a Config or options, not both")
        self.config = _configured(options) if config is None else config
        self._agent = open_agent(self.config)
        self._loop: asyncio.Task[None] | None = None

    @property
    def ready(self) -> bool:
        """Whether the first attempt to read the node is over, successful or not."""
        return self._agent.ready

    @property
    def snapshot(self) -> Snapshot:
        """The latest snapshot, never older than three intervals. It is the same object until there is a newer one.

        A part that fails does not raise: it is down in `parts`, with its reason.
        """
        return self._agent.snapshot

    async def changed(self, seen: Snapshot) -> Snapshot:
        """Wait for a newer snapshot than `seen`, and return it."""
        return await self._agent.changed(seen)

    async def release(self, seconds: float) -> bool:
        """Release the driver, for example to upgrade it. Return True once nothing of it is held any more."""
        return await self._agent.release(seconds)

    async def __aenter__(self) -> Self:
        """Wait until every part has answered, at most ten seconds."""
        if self._loop is not None:
            raise RuntimeError("a Node runs once; make another one")
        self._loop = self._agent.supervisor.supervise(self._agent.name, self._agent.run)
        try:
            await self._first_snapshot(self._loop)
        except BaseException:
            await self._stop(self._loop)
            raise
        return self

    async def __aexit__(self, *_: object) -> None:
        if self._loop is not None:
            await self._stop(self._loop)

    async def _first_snapshot(self, loop: asyncio.Task[None]) -> None:
        until = time.monotonic() + PATIENCE_SECONDS
        while _is_starting(self.snapshot) and time.monotonic() < until:
            done, _ = await asyncio.wait({loop}, timeout=POLL_SECONDS)
            if done:
                loop.result()

    async def _stop(self, loop: asyncio.Task[None]) -> None:
        loop.cancel()
        await asyncio.wait({loop})
        await self._agent.close()


def _is_starting(snapshot: Snapshot) -> bool:
    return any(part.fault and part.fault.reason == "starting" for part in snapshot.parts)


def _configured(options: Mapping[str, object]) -> Config:
    for name in options:
        if name not in OPTIONS:
            advice = did_you_mean(name, OPTIONS, "docs/configuration.md lists the options")
            raise UserError(f"unknown option {name!r}; {advice}")
    return load({name: _texts(value) for name, value in options.items() if value is not None}, os.environ)


def _texts(value: object) -> list[str]:
    return [str(text) for text in value] if isinstance(value, list | tuple) else [str(value)]


if TYPE_CHECKING:  # only for users who have an aiohttp application
    from aiohttp import web


class Querier(Protocol):
    """Finds the rows that match all filters, as `gpu_metrics` does. An empty filter matches everything."""

    async def __call__(self, *, pod: str, namespace: str, container: str, node: str) -> Iterable[GpuMetric]: ...


def metrics_route(query: Querier, *, path: str = "/container/metrics") -> "web.RouteDef":
    """Return a route for `app.add_routes` that answers as /container/metrics does, with the rows of your own query."""
    from aiohttp import web

    async def handler(request: web.Request) -> web.Response:
        if request.method != "GET":
            return web.Response(status=405, text="method not allowed\n", headers={"Allow": "GET"})
        asked = request.query
        filters = {name: asked.get(name, "") for name in ("pod", "namespace", "container", "node")}
        missing = None if asked.get("missing") == "null" else 0
        rows = await query(**filters)
        return web.Response(body=as_document(rows, missing=missing), content_type="application/json")

    return web.route("*", path, handler)


def routes(node: Node, *, prefix: str = "") -> "list[web.RouteDef]":
    """Return routes for `app.add_routes`: every page of metrics and JSON document of podgpu's own server.

    The status page, the probes and release are left out: the application has its own.
    """
    from aiohttp import web

    config = node.config
    pages = NodePages(config.series_limit, open_pages(config))
    found = NodeRoutes(node, pages, Load(config.web_max_requests)).pages(NATIVE)
    # Take every method, so that a wrong one gets the answer of podgpu's own server.
    return [web.route("*", prefix.rstrip("/") + path, _handler(route)) for path, route in found.items()]


def _handler(route: Route) -> "Callable[[web.Request], Awaitable[web.Response]]":
    from aiohttp import web

    async def handler(theirs: web.Request) -> web.Response:
        headers = {name.lower(): ", ".join(theirs.headers.getall(name)) for name in theirs.headers}
        pairs = tuple(theirs.query.items())
        request = Request(theirs.method, theirs.path, dict(theirs.query), headers, theirs.remote or "", pairs=pairs)
        response = route.refusal(request.method) or await route.run(request)
        return web.Response(status=response.status, body=response.body, headers=response.fields)

    return handler
