"""One client's connection: aiohttp's, with the deadlines it lacks.

aiohttp has a single timer for the silence before a request. It gives an unfinished head as long as an idle
connection, does not bound a head as a whole, and lets a client that never reads its answer stay for ever.
"""

import asyncio
from typing import Any, cast

from aiohttp import web
from aiohttp.web_protocol import RequestHandler

from podgpu.serve import answer
from podgpu.serve.limits import Limits

_FULL = answer.raw("503 Service Unavailable", "too many connections; try again in a second")
_LONG = answer.raw("431 Request Header Fields Too Large", "the request head is too long")


class Crowd:
    """All connections of a server, over all its addresses."""

    def __init__(self, limits: Limits, max_connections: int) -> None:
        self._limits = limits
        self._max_connections = max_connections
        self._present: set[Connection] = set()

    def __len__(self) -> int:
        return len(self._present)

    def admit(self, connection: "Connection", now: float) -> bool:
        if len(self._present) >= self._max_connections and not self._make_room(now):
            return False
        self._present.add(connection)
        return True

    def leave(self, connection: "Connection") -> None:
        self._present.discard(connection)

    def sweep(self, now: float) -> None:
        for connection in list(self._present):
            connection.check(now)

    def abort(self) -> None:
        for connection in list(self._present):
            connection.abort()

    def _make_room(self, now: float) -> bool:
        """Part with the connection that has been without a request the longest.

        Otherwise a few hundred silent connections could keep the liveness probe out and get the agent killed.
        """
        quiet = [(one.quiet_since, one) for one in self._present if one.quiet_since is not None]
        since, connection = min(quiet, key=lambda pair: pair[0], default=(now, None))
        if connection is None or now - since < self._limits.settle_seconds:
            return False
        connection.abort()
        return True


class Connection(RequestHandler):
    """`quiet_since` is None while a request is in progress."""

    __slots__ = ("_crowd", "_head_bytes", "_head_since", "_limits", "_stalled_since", "_wire", "quiet_since")

    def __init__(self, server: web.Server, crowd: Crowd, limits: Limits, **settings: Any) -> None:
        super().__init__(server, **settings)
        self._crowd = crowd
        self._limits = limits
        # The base class forgets its transport when it begins to close, which may take for ever.
        self._wire: asyncio.Transport | None = None
        self._head_bytes = 0
        self._head_since: float | None = None
        self._stalled_since: float | None = None
        self.quiet_since: float | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        wire = cast("asyncio.Transport", transport)
        now = self._loop.time()
        if not self._crowd.admit(self, now):
            wire.write(_FULL)
            wire.close()
            return
        self._wire = wire
        self._head_since = self.quiet_since = now
        # An answer counts as taken when the kernel has all of it; only then is the next request begun.
        wire.set_write_buffer_limits(high=0)
        super().connection_made(transport)

    def connection_lost(self, exc: BaseException | None) -> None:
        self._crowd.leave(self)
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """Count requests sent ahead of their answers as one head, until the first of them is complete."""
        if self._head_since is None:
            self._head_since = self._loop.time()
        self._head_bytes += len(data)
        if self._head_bytes > self._limits.head_bytes:
            self._refuse_head()
            return
        heads = self._request_count
        super().data_received(data)
        if self._request_count > heads:
            self._head_bytes = 0
            self._head_since = self.quiet_since = None

    async def finish_response(
        self, request: web.BaseRequest, resp: web.StreamResponse, start_time: float | None
    ) -> tuple[web.StreamResponse, bool]:
        try:
            return await super().finish_response(request, resp, start_time)
        finally:
            self.quiet_since = self._loop.time()

    def handle_error(
        self,
        request: web.BaseRequest,
        status: int = 500,
        exc: BaseException | None = None,
        message: str | None = None,
    ) -> web.StreamResponse:
        """Answer what is not HTTP. Not logged: any client could fill the log with it."""
        response = answer.text(
            status, "this is not a valid HTTP request" if status < 500 else "the request failed"
        )
        response.force_close()
        return response

    def pause_writing(self) -> None:
        super().pause_writing()
        self._stalled_since = self._loop.time()

    def resume_writing(self) -> None:
        super().resume_writing()
        self._stalled_since = None

    def check(self, now: float) -> None:
        """Cut a client that is late with taking its answer or with sending its request's head."""
        if self._stalled_since is not None:
            if now - self._stalled_since > self._limits.write_seconds:
                self.abort()
        elif self._head_since is not None and now - self._head_since > self._limits.head_seconds:
            self.abort()

    def abort(self) -> None:
        self._crowd.leave(self)
        if self._wire is not None:
            self._wire.abort()

    def _refuse_head(self) -> None:
        if self.quiet_since is None or self._wire is None:
            self.abort()  # an answer is on its way: another would end up in the midst of it
            return
        self._wire.write(_LONG)
        self.force_close()
