"""Handles the requests of an address: finds the route, enforces the limits, answers what goes wrong."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from contextlib import nullcontext
from dataclasses import dataclass, replace
from time import monotonic
from typing import TypeVar

from podgpu import log
from podgpu.errors import UserError
from podgpu.serve.guard.guard import Guard
from podgpu.serve.http.request import Request
from podgpu.serve.http.response import Response, busy_response, text_response

LOG_SECONDS = 60.0

T = TypeVar("T")
Handler = Callable[[Request], Response | Awaitable[Response]]


@dataclass(frozen=True, slots=True)
class Route:
    """A `vital` route is answered however many pages are being rendered: probes must not fail under load.

    An `open` route needs no credentials: the kubelet's probes have none. `refused` is the message for a wrong method,
    instead of a list of the right ones. Requests that wait for other servers, or for a moment of the past, are
    limited separately.
    """

    handler: Handler
    methods: tuple[str, ...] = ("GET", "HEAD")
    vital: bool = False
    open: bool = False
    refused: str = ""
    waits: bool | Callable[[Request], bool] = False

    def refusal(self, method: str) -> Response | None:
        if method in self.methods:
            return None
        line = self.refused or f"use {' or '.join(self.methods)}"
        return text_response(405, line, {"Allow": ", ".join(self.methods)})

    def makes_wait(self, request: Request) -> bool:
        return self.waits if isinstance(self.waits, bool) else self.waits(request)

    async def run(self, request: Request) -> Response:
        """Run the handler. Its UserError says what is wrong with the request."""
        try:
            response = self.handler(request)
            return response if isinstance(response, Response) else await response
        except UserError as error:
            return text_response(400, str(error))


class Load:
    """How many pages may be in progress. Those that wait for other servers, which may be slow, are counted apart.

    A page counts while it is rendered, not while it is sent: a client that does not read takes no place.
    """

    def __init__(self, max_requests: int) -> None:
        self.stopping = False
        self.pages = asyncio.Semaphore(max_requests)
        self.waiting = asyncio.Semaphore(max_requests)


class RequestHandler:
    def __init__(self, routes: Mapping[str, Route], load: Load, guard: Guard) -> None:
        self._routes = routes
        self._load = load
        self._guard = guard
        self._logged: dict[str, float] = {}

    async def __call__(self, request: Request) -> Response:
        response = await self._respond(self._guard.proxies.seen(request))
        headers = {**response.headers, **self._guard.headers}
        return replace(response, headers=headers, closing=self._load.stopping)

    async def _respond(self, request: Request) -> Response:
        route = self._routes.get(request.path)
        if route is None or not route.open:
            # Not logged under the path: a client may request any number of paths.
            refusal = await self._answered(self._guard.refusal(request), "login", "the login failed")
            if refusal is not None:
                return refusal
        if route is None:
            return text_response(404, "\n".join(("no such page; there are:", *self._routes)))
        if (refusal := route.refusal(request.method)) is not None:
            return refusal
        places = self._load.waiting if route.makes_wait(request) else self._load.pages
        if places.locked() and not route.vital:
            return busy_response("too many requests at once; try again in a second")
        async with nullcontext() if route.vital else places:
            return await self._answered(route.run(request), request.path, "this page failed")

    async def _answered(self, answer: Awaitable[T], page: str, failure: str) -> T | Response:
        """Wait for an answer. If it fails, say so, and log why, once a minute for each page."""
        try:
            return await answer
        except Exception as error:
            now = monotonic()
            if now - self._logged.get(page, -LOG_SECONDS) >= LOG_SECONDS:
                self._logged[page] = now
                message = "a page failed; further failures of it within a minute are not logged"
                log.error(message, page=page, error=error, at=log.raised_at(error.__traceback__))
            return text_response(500, f"{failure}; see the log of podgpu")
