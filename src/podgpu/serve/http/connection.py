"""One client's connection: reads its requests one after the other, and sends the responses."""

import asyncio
import socket
import ssl
from collections.abc import Awaitable, Callable, Iterable
from http import HTTPStatus
from itertools import chain
from typing import cast

from podgpu.serve.http.connections import Connections, Phase, TrackedConnection
from podgpu.serve.http.request import Request, RequestError, parse_request, too_long
from podgpu.serve.http.response import BodyStream, Response, text_response

CHUNK_BYTES = 64 * 1024
TURN_BYTES = 256 * 1024  # written to a client that reads fast, before others get their turn
_SCRAPED = (HTTPStatus.OK, HTTPStatus.NOT_MODIFIED)
_RESPONDING = (Phase.BUSY, Phase.STALLED)

Respond = Callable[[Request], Awaitable[Response]]


class ServerConnection(TrackedConnection):
    _transport: asyncio.Transport
    _abort: Callable[[], object]

    def __init__(self, respond: Respond, connections: Connections, client: str = "") -> None:
        self.client = client
        self._respond = respond
        self._connections = connections
        self._loop = asyncio.get_running_loop()
        self._remote = ""
        self._ahead = b""
        self._stream: BodyStream | None = None
        self._writable = asyncio.Event()
        self._writable.set()

    def connect(self, sock: socket.socket, context: ssl.SSLContext | None) -> None:
        """Take over the socket. With a context, a TLS handshake comes first, with the deadline of a request's head."""
        self._enter(Phase.SILENT)
        task = self._connections.tasks.begin(self._connect(sock, context))
        self._abort = task.cancel

        def close_if_cancelled(task: asyncio.Task[None]) -> None:
            if task.cancelled():  # maybe before it began
                sock.close()

        task.add_done_callback(close_if_cancelled)

    async def _connect(self, sock: socket.socket, context: ssl.SSLContext | None) -> None:
        seconds = self._connections.limits.write_seconds if context else None
        try:
            await self._loop.connect_accepted_socket(lambda: self, sock, ssl=context, ssl_shutdown_timeout=seconds)
        except OSError:  # not logged: any client could fill the log
            self._connections.remove(self)
            sock.close()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.Transport", transport)
        self._abort = self._transport.abort
        peer = transport.get_extra_info("peername")
        self._remote = peer[0] if peer else ""
        # A response counts as read when the kernel has all of it; only then is the next request begun.
        # Not 0, at which a TLS transport with nothing to write would count as full.
        self._transport.set_write_buffer_limits(high=1)
        self._enter(Phase.SILENT)

    def connection_lost(self, exc: BaseException | None) -> None:
        self._connections.remove(self)
        self.resume_writing()
        if self._stream is not None:
            self._stream.close()

    def data_received(self, data: bytes) -> None:
        if self._transport.is_closing():
            return
        self._ahead += data
        self._advance()
        # Requests sent ahead of their responses count as one head.
        if len(self._ahead) > self._connections.limits.head_bytes:
            self._reject(too_long())

    def pause_writing(self) -> None:
        self._writable.clear()
        if self.phase is not Phase.STALLED:
            self._enter(Phase.STALLED)

    def resume_writing(self) -> None:
        self._writable.set()

    def abort(self) -> None:
        self._connections.remove(self)
        self._abort()

    def _enter(self, phase: Phase) -> None:
        self.phase, self.since = phase, self._loop.time()

    def _advance(self) -> None:
        """Begin the next request, if it is complete."""
        if not self._ahead or self.phase in _RESPONDING or self._transport.is_closing():
            return
        if self.phase is Phase.IDLE:
            self._enter(Phase.HEAD)
        certified = bool(self._transport.get_extra_info("peercert"))
        try:
            parsed = parse_request(self._ahead, self._connections.limits, self._remote, certified=certified)
        except RequestError as error:
            self._reject(error)
            return
        if parsed is not None:
            request, self._ahead = parsed
            self._enter(Phase.BUSY)
            self._connections.tasks.begin(self._serve(request))

    async def _serve(self, request: Request) -> None:
        try:
            response = await self._respond(request)
            if not self._transport.is_closing():
                await self._send(response, request)
            if response.status in _SCRAPED and request.is_scrape:
                self.scraped_at = min(self.scraped_at, self._loop.time())
        except BaseException:
            self.abort()  # the client would wait for the rest of the response
            raise
        self._enter(Phase.IDLE)
        self._advance()

    async def _send(self, response: Response, request: Request) -> None:
        """Return when the kernel has the response (with TLS, all but two chunks), or when the client has left."""
        stream = response.stream
        closing = response.closing or not request.keeps_alive or stream is not None
        # HTTP/1.0 needs to be told that the connection is kept.
        kept = "keep-alive" if "connection" in request.headers else None
        head = response.encode_head("close" if closing else kept)
        if stream is None:
            await self._write(head, (b"",) if request.method == "HEAD" else chain((response.body,), response.more))
        else:
            with stream as chunks:
                self._stream = stream
                self._connections.set_streaming(self)
                await self._write(head, (b"",))
                async for chunk in chunks:
                    await self._write(b"", (chunk,))
        if closing:
            self._transport.close()

    async def _write(self, head: bytes, bodies: Iterable[bytes]) -> None:
        """Write in chunks: TLS would encrypt a whole page at once, which would count as read too early.

        Only the first chunk is copied, to go with the head: clients share a page.
        """
        written = 0
        try:
            for body in bodies:
                for at in range(0, len(body) or 1, CHUNK_BYTES):
                    if self._transport.is_closing():
                        return
                    chunk = memoryview(body)[at : at + CHUNK_BYTES]
                    self._transport.write(b"".join((head, chunk)) if head else chunk)
                    head = b""
                    if not self._writable.is_set():
                        self._connections.hold(self, body)
                        await self._writable.wait()
                        written = 0
                    elif (written := written + len(chunk)) >= TURN_BYTES:
                        await asyncio.sleep(0)
                        written = 0
            if not self._transport.is_closing():
                self._connections.known_clients.add(self.client, self._loop.time())
        finally:
            self._enter(Phase.BUSY)
            self._connections.release(self)

    def _reject(self, error: RequestError) -> None:
        """Answer what is no request. It is not logged: any client could fill the log."""
        if self.phase in _RESPONDING:
            self.abort()  # another response would end up in the middle of the one that is being sent
        else:
            self._ahead = b""
            self._transport.write(text_response(error.status, error.line).encode_last())
            self._transport.close()
