"""One client's connection: reads its requests one after the other, and keeps it to its deadlines."""

import asyncio
import ssl
from collections.abc import Awaitable, Callable, Iterable
from http import HTTPStatus
from typing import cast

from podgpu.serve.http.connections import Connections, TrackedConnection, client_network
from podgpu.serve.http.limits import Limits
from podgpu.serve.http.request import Request, RequestError, RequestParser, too_long
from podgpu.serve.http.response import BodyStream, Response, busy_response, text_response
from podgpu.supervise import brief

CHUNK_BYTES = 64 * 1024
_SCRAPED = (HTTPStatus.OK, HTTPStatus.NOT_MODIFIED)

Respond = Callable[[Request], Awaitable[Response]]


class ServerConnection(TrackedConnection):
    """With a `context` it begins with a TLS handshake."""

    _transport: asyncio.Transport

    def __init__(
        self,
        respond: Respond,
        connections: Connections,
        limits: Limits,
        context: ssl.SSLContext | None = None,
    ) -> None:
        self._respond = respond
        self._connections = connections
        self._limits = limits
        self._context = context
        self._loop = asyncio.get_running_loop()
        self._handshake: asyncio.Task[None] | None = None
        self._is_open = False
        self._is_lost = False
        self._ahead = b""
        self._parser: RequestParser | None = None
        self._head_since: float | None = None
        self._serving: asyncio.Task[None] | None = None
        self._stream: BodyStream | None = None
        self._writable = asyncio.Event()
        self._writable.set()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.Transport", transport)
        self.client = client_network(transport.get_extra_info("peername"))
        now = self._loop.time()
        if not self._connections.admit(self, now):
            if self._context is None:
                self._close_with(busy_response("too many connections; try again in a second"))
            else:
                self._transport.abort()  # a response would take a handshake
        elif self._context is None:
            self._open()
        else:
            # Counted from the start, so that clients who do not get on with it have a deadline and can be evicted.
            self._head_since = self.idle_since = now
            self._transport.pause_reading()
            self._handshake = brief(self._shake_hands(self._transport, self._context))

    def connection_lost(self, exc: BaseException | None) -> None:
        self._is_lost = True
        self._connections.remove(self)
        self.resume_writing()
        if self._stream is not None:
            self._stream.close()
        if self._parser is not None:
            self._parser.close()

    def data_received(self, data: bytes) -> None:
        if self._transport.is_closing():
            return
        self._ahead += data
        if not self._is_open:
            return  # the client sent it right behind its handshake
        self._advance()
        # Requests sent ahead of their responses count as one head.
        if len(self._ahead) > self._limits.head_bytes:
            self._reject(too_long())

    def pause_writing(self) -> None:
        self._writable.clear()
        if self.stalled_since is None:
            self.stalled_since = self._loop.time()

    def resume_writing(self) -> None:
        self._writable.set()

    def check(self, now: float) -> None:
        """Abort it if the client is late to read a response, to send a head, or to send another request."""
        limits = self._limits
        if self.stalled_since is not None:
            late = now - self.stalled_since > limits.write_seconds
        elif self._head_since is not None:
            late = now - self._head_since > limits.head_seconds
        else:
            late = self.idle_since is not None and now - self.idle_since > limits.idle_seconds
        if late:
            self.abort()

    def abort(self) -> None:
        self._connections.remove(self)
        if self._handshake is not None:
            self._handshake.cancel()
        self._transport.abort()

    async def _shake_hands(self, raw: asyncio.Transport, context: ssl.SSLContext) -> None:
        try:
            encrypted = await self._loop.start_tls(
                raw, self, context, server_side=True, ssl_shutdown_timeout=self._limits.write_seconds
            )
        except OSError:  # not logged: any client could fill the log with it
            self._connections.remove(self)
            raw.abort()
            return
        if encrypted is not None and not self._is_lost:
            self._transport = encrypted
            self._open()

    def _open(self) -> None:
        self._is_open = True
        self._head_since = self.idle_since = self._loop.time()
        # A response counts as read when the kernel has all of it; only then is the next request begun.
        # Not 0, at which a TLS transport with nothing to write would count as full.
        self._transport.set_write_buffer_limits(high=1)
        if self._ahead:
            self.data_received(b"")

    def _advance(self) -> None:
        """Read on, up to the end of the next request."""
        if not self._ahead or self._serving is not None or self._transport.is_closing():
            return
        if self._head_since is None:
            self._head_since = self._loop.time()
        parser = self._parser = self._parser or RequestParser(self._limits)
        try:
            self._ahead = parser.feed(self._ahead)
            if parser.complete:
                self._begin(parser)
        except RequestError as error:
            self._reject(error)

    def _begin(self, parser: RequestParser) -> None:
        peer = self._transport.get_extra_info("peername")
        certified = bool(self._transport.get_extra_info("peercert"))
        request = parser.request(peer[0] if isinstance(peer, tuple) else None, certified=certified)
        self._parser = self._head_since = self.idle_since = None
        self.has_requested = True
        self._serving = self._connections.begin(self._serve(request, parser))

    async def _serve(self, request: Request, parser: RequestParser) -> None:
        try:
            response = await self._respond(request)
            await self._send(response, parser, head_only=request.method == "HEAD")
            if response.status in _SCRAPED and self.scraped_at is None and request.is_scrape:
                self.scraped_at = self._loop.time()
        finally:
            self._serving = None
            self.idle_since = self._loop.time()
        self._advance()

    async def _send(self, response: Response, parser: RequestParser, *, head_only: bool) -> None:
        """Return when the kernel has the response, or when the client has left.

        With TLS, up to two chunks of it may still be on their way to the kernel.
        """
        if self._transport.is_closing():
            return
        closing = response.closing or not parser.keeps_alive or response.stream is not None
        head = response.encode_head("close" if closing else "keep-alive" if parser.version == "1.0" else None)
        if response.stream is not None:
            await self._send_stream(head, response.stream)
        else:
            await self._write(head, (b"",) if head_only else (response.body, *response.more))
        if closing:
            self._transport.close()

    async def _send_stream(self, head: bytes, stream: BodyStream) -> None:
        """Write what comes. A client that does not read it is cut like any other: see `check`."""
        with stream as chunks:
            self._stream = stream
            self._connections.set_streaming(self)
            await self._write(head, (b"",))
            async for chunk in chunks:
                if self._transport.is_closing():
                    return
                await self._write(b"", (chunk,))

    async def _write(self, head: bytes, bodies: Iterable[bytes]) -> None:
        """Write chunk by chunk: TLS would encrypt all of it at once, and a page would count as read too early.

        Only the first chunk is copied, to go with the head: many clients share a page.
        """
        try:
            for body in bodies:
                await self._write_chunk(head + body[:CHUNK_BYTES], body)
                head = b""
                for at in range(CHUNK_BYTES, len(body), CHUNK_BYTES):
                    await self._write_chunk(memoryview(body)[at : at + CHUNK_BYTES], body)
            if not self._transport.is_closing():
                self._connections.known_clients.add(self.client, self._loop.time())
        finally:
            self.stalled_since = None
            self._connections.unread.release(self)

    async def _write_chunk(self, chunk: bytes | memoryview, body: bytes) -> None:
        """Return when the kernel has this chunk of the body, or when the client has left."""
        if self._transport.is_closing():
            return
        self._transport.write(chunk)
        if not self._writable.is_set():
            self._connections.unread.hold(self, body)
            await self._writable.wait()

    def _reject(self, error: RequestError) -> None:
        """Not logged: any client could fill the log with it."""
        if self._serving is not None:
            self.abort()  # a response is on its way: another would end up in the midst of it
        else:
            self._close_with(text_response(error.status, error.line))

    def _close_with(self, response: Response) -> None:
        self._ahead = b""
        self._transport.write(response.encode_head("close") + response.body)
        self._transport.close()
