"""Where an address's requests are taken: finds the route, keeps the caps, answers what goes wrong."""

from collections.abc import Mapping
from dataclasses import replace
from pathlib import PurePath
from time import monotonic
from typing import Protocol

from podgpu import log
from podgpu.serve import answer
from podgpu.serve.answer import Response
from podgpu.serve.guard.guard import Guard
from podgpu.serve.load import Load
from podgpu.serve.request import Request
from podgpu.serve.routes import Route

LOG_SECONDS = 60.0


class Send(Protocol):
    async def __call__(self, response: Response, *, closing: bool) -> None:
        """Write the answer and wait until it is taken; then end the connection, if it is closing."""


class Desk:
    def __init__(self, routes: Mapping[str, Route], load: Load, guard: Guard) -> None:
        self._routes = routes
        self._load = load
        self._guard = guard
        self._logged: dict[str, float] = {}

    async def __call__(self, request: Request, send: Send) -> None:
        # The answer is sent from here, so that a stop waits until it is taken.
        with self._load.request():
            response = await self._respond(request)
            await send(self._dressed(response), closing=self._load.stopping)

    async def _respond(self, request: Request) -> Response:
        route = self._routes.get(request.path)
        if (route is None or not route.open) and (refusal := await self._refusal(request)) is not None:
            return refusal
        if route is None:
            return answer.text(404, "\n".join(("no such page; there are:", *self._routes)))
        if (refusal := route.refusal(request.method)) is not None:
            return refusal
        if route.vital:
            return await self._run(route, request)
        if route.waits:
            return await self._run_waiting(route, request)
        if self._load.full:
            return _too_many()
        with self._load.page():
            return await self._run(route, request)

    async def _run_waiting(self, route: Route, request: Request) -> Response:
        if self._load.waits_full:
            return _too_many()
        with self._load.waiting():
            return await self._run(route, request)

    def _dressed(self, response: Response) -> Response:
        more = self._guard.headers
        return replace(response, headers={**response.headers, **more}) if more else response

    async def _refusal(self, request: Request) -> Response | None:
        try:
            return await self._guard.refusal(request)
        except Exception as error:
            # Not under the path: a stranger may ask for any number of them.
            self._complain("login", error)
            return answer.text(500, "the login failed; the agent's log says why")

    async def _run(self, route: Route, request: Request) -> Response:
        try:
            return await route.run(request)
        except Exception as error:
            self._complain(request.path, error)
            return answer.text(500, "this page failed; the agent's log says why")

    def _complain(self, path: str, error: Exception) -> None:
        now = monotonic()
        if now - self._logged.get(path, -LOG_SECONDS) >= LOG_SECONDS:
            self._logged[path] = now
            log.error(
                "a page failed; further failures of it within a minute are not logged",
                page=path,
                error=error,
                at=_place(error),
            )


def _too_many() -> Response:
    return answer.busy("too many requests at once; try again in a second")


def _place(error: Exception) -> str:
    """Say in which line the error was raised: the page's reader cannot know."""
    trace = error.__traceback__
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    return "" if trace is None else f"{PurePath(trace.tb_frame.f_code.co_filename).name}:{trace.tb_lineno}"
