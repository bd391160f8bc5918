"""One client's connection: reads its requests one after the other, and keeps it to its deadlines."""

import asyncio
from collections.abc import Iterable
from http import HTTPStatus
from typing import cast

from podgpu.serve import answer
from podgpu.serve.answer import Response, Stream
from podgpu.serve.crowd import Crowd
from podgpu.serve.desk import Desk
from podgpu.serve.entry.origin import origin
from podgpu.serve.head import Head, Refusal, too_long
from podgpu.serve.limits import Limits
from podgpu.serve.request import Request
from podgpu.supervise import brief

PIECE_BYTES = 64 * 1024
_SCRAPED = (HTTPStatus.OK, HTTPStatus.NOT_MODIFIED)


class Connection(asyncio.Protocol):
    """`quiet_since` is None while a request is in progress. `is_proven` is whether there ever was one.

    `scraped_at` is when it first got a page of metrics.
    """

    _wire: asyncio.Transport

    __slots__ = (
        "_ahead",
        "_crowd",
        "_desk",
        "_drained",
        "_head",
        "_head_since",
        "_limits",
        "_loop",
        "_paused",
        "_serving",
        "_stalled_since",
        "_stream",
        "_wire",
        "address",
        "is_proven",
        "quiet_since",
        "scraped_at",
    )

    def __init__(self, desk: Desk, crowd: Crowd, limits: Limits) -> None:
        self._desk = desk
        self._crowd = crowd
        self._limits = limits
        self._loop = asyncio.get_running_loop()
        self._ahead = b""
        self._head: Head | None = None
        self._head_since: float | None = None
        self._serving: asyncio.Task[None] | None = None
        self._paused = False
        self._stalled_since: float | None = None
        self._drained: asyncio.Future[None] | None = None
        self._stream: Stream | None = None
        self.quiet_since: float | None = None
        self.address = ""
        self.is_proven = False
        self.scraped_at: float | None = None

    @property
    def stalled_since(self) -> float | None:
        return self._stalled_since

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        now = self._loop.time()
        self._wire = cast("asyncio.Transport", transport)
        self.address = origin(transport.get_extra_info("peername"))
        if not self._crowd.admit(self, now):
            self._dismiss(answer.busy("too many connections; try again in a second"))
            return
        self._head_since = self.quiet_since = now
        # An answer counts as taken when the kernel has all of it; only then is the next request begun.
        # Not 0, at which a TLS transport with nothing to write would count as full.
        self._wire.set_write_buffer_limits(high=1)

    def connection_lost(self, exc: BaseException | None) -> None:
        self._crowd.leave(self)
        self.resume_writing()
        if self._stream is not None:
            self._stream.close()
        if self._head is not None:
            self._head.close()

    def data_received(self, data: bytes) -> None:
        if self._wire.is_closing():
            return
        self._ahead += data
        self._advance()
        # Requests sent ahead of their answers count as one head.
        if len(self._ahead) > self._limits.head_bytes:
            self._refuse(too_long())

    def pause_writing(self) -> None:
        self._paused = True
        if self._stalled_since is None:
            self._stalled_since = self._loop.time()

    def resume_writing(self) -> None:
        self._paused = False
        if self._drained is not None and not self._drained.done():
            self._drained.set_result(None)

    def check(self, now: float) -> None:
        """Cut a client that is late with taking its answer, with sending its request's head, or with asking again."""
        limits = self._limits
        if self._stalled_since is not None:
            late = now - self._stalled_since > limits.write_seconds
        elif self._head_since is not None:
            late = now - self._head_since > limits.head_seconds
        else:
            late = self.quiet_since is not None and now - self.quiet_since > limits.idle_seconds
        if late:
            self.abort()

    def abort(self) -> None:
        self._crowd.leave(self)
        self._wire.abort()

    def _advance(self) -> None:
        """Read on, up to the end of the next request."""
        if not self._ahead or self._serving is not None or self._wire.is_closing():
            return
        if self._head_since is None:
            self._head_since = self._loop.time()
        head = self._head = self._head or Head(self._limits)
        try:
            self._ahead = head.feed(self._ahead)
            if head.complete:
                self._begin(head)
        except Refusal as refusal:
            self._refuse(refusal)

    def _begin(self, head: Head) -> None:
        peer = self._wire.get_extra_info("peername")
        certified = bool(self._wire.get_extra_info("peercert"))
        request = head.request(peer[0] if isinstance(peer, tuple) else None, certified=certified)
        self._head = self._head_since = self.quiet_since = None
        self.is_proven = True
        self._serving = brief(self._serve(request, head))

    async def _serve(self, request: Request, head: Head) -> None:
        async def send(response: Response, *, closing: bool) -> None:
            await self._send(response, head, closing=closing, head_only=request.method == "HEAD")
            if response.status in _SCRAPED and self.scraped_at is None and request.is_scrape:
                self.scraped_at = self._loop.time()

        try:
            await self._desk(request, send)
        finally:
            self._serving = None
            self.quiet_since = self._loop.time()
        self._advance()

    async def _send(self, response: Response, head: Head, *, closing: bool, head_only: bool) -> None:
        """Return when the kernel has taken the answer, or when there is nobody left to take it.

        With TLS, up to two pieces of it may still be on their way to the kernel.
        """
        if self._wire.is_closing():
            return
        closing = closing or not head.keeps_alive or response.stream is not None
        word = "close" if closing else "keep-alive" if head.version == "1.0" else None
        if response.stream is not None:
            await self._flow(answer.encode(response, connection=word, head_only=head_only), response.stream)
        else:
            head_line = answer.encode(response, connection=word, head_only=True)
            await self._write(head_line, (b"",) if head_only else (response.body, *response.more))
        if closing:
            self._wire.close()

    async def _flow(self, first: bytes, stream: Stream) -> None:
        """Write what comes. A client that does not take it is cut like any other: see `check`."""
        with stream as pieces:
            self._stream = stream
            self._crowd.set_apart(self)
            await self._write(first, (b"",))
            async for piece in pieces:
                if self._wire.is_closing():
                    return
                await self._write(b"", (piece,))

    async def _write(self, head: bytes, bodies: Iterable[bytes]) -> None:
        """Write piece by piece: TLS would encrypt all of it at once, and a page would count as taken too early.

        Only the first piece is copied, to go with the head: many clients share a page.
        """
        try:
            for body in bodies:
                await self._put(head + body[:PIECE_BYTES], body)
                head = b""
                for at in range(PIECE_BYTES, len(body), PIECE_BYTES):
                    await self._put(memoryview(body)[at : at + PIECE_BYTES], body)
            if not self._wire.is_closing():
                self._crowd.standing.credit(self.address, self._loop.time())
        finally:
            self._stalled_since = None
            self._crowd.unread.release(self)

    async def _put(self, piece: bytes | memoryview, body: bytes) -> None:
        """Return when the kernel has taken the piece of the body, or when nobody is left to take it."""
        if self._wire.is_closing():
            return
        self._wire.write(piece)
        if self._paused:
            self._crowd.unread.hold(self, body)
            self._drained = self._loop.create_future()
            await self._drained

    def _refuse(self, refusal: Refusal) -> None:
        """Not logged: any client could fill the log with it."""
        if self._serving is not None:
            self.abort()  # an answer is on its way: another would end up in the midst of it
        else:
            self._dismiss(answer.text(refusal.status, refusal.line))

    def _dismiss(self, response: Response) -> None:
        self._ahead = b""
        self._wire.write(answer.encode(response, connection="close"))
        self._wire.close()
