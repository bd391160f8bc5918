"""Where an address's requests are taken: finds the route, keeps the caps, answers what goes wrong."""

import logging
from collections.abc import Mapping
from contextlib import ExitStack
from time import monotonic

from aiohttp import web

from podgpu.serve import answer
from podgpu.serve.load import Load
from podgpu.serve.routes import Route

LOG_SECONDS = 60.0

log = logging.getLogger(__name__)


class Desk:
    def __init__(self, routes: Mapping[str, Route], load: Load) -> None:
        self._routes = routes
        self._load = load
        self._logged: dict[str, float] = {}

    async def __call__(self, request: web.BaseRequest) -> web.StreamResponse:
        with self._load.request(), ExitStack() as stack:
            response = await self._respond(request, stack)
            if self._load.stopping:
                response.force_close()
            try:
                # Written here, not by the caller, so that the request counts until its answer is taken.
                await response.prepare(request)
                await response.write_eof()
            except ConnectionError:
                pass  # the client has gone
        return response

    async def _respond(self, request: web.BaseRequest, stack: ExitStack) -> web.Response:
        if request.body_exists:
            response = answer.text(413, "a request must not have a body")
            response.force_close()
            return response
        route = self._routes.get(request.path)
        if route is None:
            return answer.text(404, "\n".join(("no such page; there are:", *self._routes)))
        if (refusal := route.refusal(request.method)) is not None:
            return refusal
        if not route.vital:
            if self._load.full:
                return answer.busy("too many requests at once; try again in a second")
            stack.enter_context(self._load.page())
        return await self._run(route, request)

    async def _run(self, route: Route, request: web.BaseRequest) -> web.Response:
        try:
            return await route.handler(request)
        except Exception:
            self._complain(request.path)
            return answer.text(500, "this page failed; the agent's log says why")

    def _complain(self, path: str) -> None:
        now = monotonic()
        if now - self._logged.get(path, -LOG_SECONDS) >= LOG_SECONDS:
            self._logged[path] = now
            log.exception("%s failed; further failures within a minute are not logged", path)
