"""The node's pages for your own aiohttp application."""

from collections.abc import Awaitable, Callable, Iterable
from typing import TYPE_CHECKING, Protocol

from podgpu.assembly.server import open_pages
from podgpu.library.node import Node
from podgpu.library.record import GpuMetric, as_document
from podgpu.option.address import NATIVE
from podgpu.serve.http.request import Request
from podgpu.serve.pages import NodePages
from podgpu.serve.request_handler import Load, Route
from podgpu.serve.routes import NodeRoutes

if TYPE_CHECKING:  # only for users who have an aiohttp application
    from aiohttp import web


class Querier(Protocol):
    """Finds the rows that match all filters, as `gpu_metrics` does. An empty filter matches everything."""

    async def __call__(
        self, *, pod: str, namespace: str, container: str, node: str
    ) -> Iterable[GpuMetric]: ...


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
        request = _request(theirs)
        response = route.refusal(request.method) or await route.run(request)
        return web.Response(status=response.status, body=response.body, headers=response.fields)

    return handler


def _request(theirs: "web.Request") -> Request:
    headers = {name.lower(): ", ".join(theirs.headers.getall(name)) for name in theirs.headers}
    query = dict(theirs.query)
    pairs = tuple(theirs.query.items())
    return Request(theirs.method, theirs.path, query, headers, theirs.remote, pairs=pairs)
