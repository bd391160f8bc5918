"""The node's pages in an application of one's own."""

from collections.abc import Awaitable, Callable

from aiohttp import web

from podgpu.assembly.menu import open_menu
from podgpu.library.node import Node
from podgpu.option.address import NATIVE
from podgpu.serve.load import Load
from podgpu.serve.pages import Pages
from podgpu.serve.routes import Route, Routes


def routes(node: Node, *, prefix: str = "") -> list[web.RouteDef]:
    """List routes for `app.add_routes`: every page of metrics and JSON document that podgpu's own server has.

    Its status page, probes and release are not among them: the application has its own.
    """
    config = node.config
    pages = Pages(config.series_limit, open_menu(config))
    found = Routes(node, pages, Load(config.web_max_requests)).pages(NATIVE)
    # Every method, so that a wrong one is answered as podgpu's own server does.
    return [web.route("*", prefix.rstrip("/") + path, _handler(route)) for path, route in found.items()]


def _handler(route: Route) -> Callable[[web.Request], Awaitable[web.StreamResponse]]:
    async def handler(request: web.Request) -> web.StreamResponse:
        refusal = route.refusal(request.method)
        return await route.handler(request) if refusal is None else refusal

    return handler
