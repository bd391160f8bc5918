"""The node's pages in an application of one's own."""

from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING

from podgpu.assembly.menu import open_menu
from podgpu.library.node import Node
from podgpu.option.address import NATIVE
from podgpu.serve.load import Load
from podgpu.serve.pages import Pages
from podgpu.serve.request import Request
from podgpu.serve.routes import Route, Routes

if TYPE_CHECKING:  # aiohttp's server is for whoever has an application of it
    from aiohttp import web


def routes(node: Node, *, prefix: str = "") -> "list[web.RouteDef]":
    """List routes for `app.add_routes`: every page of metrics and JSON document that podgpu's own server has.

    Its status page, probes and release are not among them: the application has its own.
    """
    from aiohttp import web

    config = node.config
    pages = Pages(config.series_limit, open_menu(config))
    found = Routes(node, pages, Load(config.web_max_requests)).pages(NATIVE)
    # Every method, so that a wrong one is answered as podgpu's own server does.
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
    return Request(theirs.method, theirs.path, dict(theirs.query), headers, theirs.remote)
