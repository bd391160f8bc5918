"""A connection to a server: one request at a time, kept open in between."""

import asyncio
import ssl
from typing import cast

import httptools
from msgspec import Struct

from podgpu.errors import ReasonedError

MOST_HEAD_BYTES = 64 << 10
BUFFER_BYTES = 256 << 10  # of a body: a server that sends faster than we read has to wait

REASONS = {
    "timeout": "no answer in time",
    "stalled": "an open stream fell silent",
    "unreachable": "no connection, or it was closed without an answer",
    "tls": "the two sides do not agree on TLS, or the server's certificate is not trusted",
    "garbage": "the answer is not HTTP, or not what it claims to be",
    "broken_off": "the answer is incomplete",
    "too_large": "the answer is larger than the limit",
    "credential": "the file with the token or the password cannot be used",
    "certificates": "our own certificate files cannot be used",
}


class HttpFault(ReasonedError):
    """Why there is no answer. `reason` is in REASONS."""


class ConnectionRefused(HttpFault):
    """Nothing listens at the address."""


class ConnectionGone(Exception):
    """The server closed the connection before it answered. A kept connection may have been idle for too long."""


class ResponseHead(Struct, frozen=True):
    """The names of headers are in lower case."""

    status: int
    headers: dict[str, str]


class Connection(asyncio.Protocol):
    """`context` is that of its TLS: renewed certificates need a new connection."""

    _transport: asyncio.Transport
    _parser: httptools.HttpResponseParser

    def __init__(self, context: ssl.SSLContext | None = None) -> None:
        self.context = context
        self._is_open = True
        self._is_asked = False  # between a request and the end of its answer
        self._waiter: asyncio.Future[None] | None = None
        self._error: Exception | None = None
        self._head: ResponseHead | None = None
        self._headers: dict[str, str] = {}
        self._body = bytearray()
        self._received = 0
        self._ends_with_connection = False

    @property
    def is_reusable(self) -> bool:
        if not self._is_open or self._is_asked or self._transport.is_closing():
            return False
        return not self._transport.get_write_buffer_size()  # an answer may come before all was sent

    async def send(self, request: bytes) -> ResponseHead:
        """Send a request and return the head of the answer. Raises ConnectionGone or HttpFault."""
        if not self.is_reusable:
            raise ConnectionGone
        self._expect()
        self._transport.write(request)
        while self._head is None:
            await self._more()
        return self._head

    async def read(self) -> bytes:
        """Return the next piece of the body; nothing at its end. Raises HttpFault."""
        while self._is_asked and not self._body:
            await self._more()
        piece = bytes(self._body)
        self._body = bytearray()  # not cleared: a thousand idle connections would keep their largest buffers
        self._transport.resume_reading()
        return piece

    def close(self) -> None:
        self._is_open = False
        self._fail(HttpFault("unreachable", "the connection was closed"))
        self._transport.abort()

    def _expect(self) -> None:
        self._parser = httptools.HttpResponseParser(self)
        self._head, self._headers, self._received = None, {}, 0
        self._is_asked = True

    async def _more(self) -> None:
        if self._error:
            raise self._error
        self._waiter = asyncio.get_running_loop().create_future()
        try:
            await self._waiter
        finally:
            self._waiter = None

    def _wake(self) -> None:
        if self._waiter and not self._waiter.done():
            self._waiter.set_result(None)

    def _fail(self, error: Exception) -> None:
        self._error = self._error or error
        self._wake()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.Transport", transport)

    def connection_lost(self, exc: BaseException | None) -> None:
        self._is_open = False
        if self._head and self._ends_with_connection and exc is None:
            self._is_asked = False
            self._wake()
        elif isinstance(exc, ssl.SSLError):  # in TLS 1.3 a certificate is refused after the handshake
            self._fail(exc)
        else:
            self._fail(HttpFault("broken_off", "the answer broke off") if self._received else ConnectionGone())

    def eof_received(self) -> None:
        self._is_open = False

    def data_received(self, data: bytes) -> None:
        if not self._is_asked:
            self.close()  # an answer to no request would be taken for the answer to the next one
            return
        self._received += len(data)
        try:
            self._parser.feed_data(data)
        except (httptools.HttpParserError, httptools.HttpParserUpgrade) as error:
            self._fail(HttpFault("garbage", f"no HTTP answer ({error or type(error).__name__})"))
        if self._head is None and self._received > MOST_HEAD_BYTES:
            self._fail(HttpFault("garbage", f"the headers have more than {MOST_HEAD_BYTES >> 10} KiB"))
        self._wake()

    def on_message_begin(self) -> None:
        if not self._is_asked:
            self._is_open = False  # a second answer

    def on_header(self, name: bytes, value: bytes) -> None:
        if self._head is None:
            self._headers[name.decode("ascii", "replace").lower()] = value.decode(errors="surrogateescape")

    def on_headers_complete(self) -> None:
        status = self._parser.get_status_code()
        if status < 200:  # the real answer follows
            self._headers = {}
        elif self._head is None:
            self._head = ResponseHead(status, self._headers)
            self._ends_with_connection = not self._headers.keys() & {"content-length", "transfer-encoding"}

    def on_body(self, piece: bytes) -> None:
        if self._is_asked:
            self._body += piece
            if len(self._body) > BUFFER_BYTES:
                self._transport.pause_reading()

    def on_message_complete(self) -> None:
        if self._head is not None and self._is_asked:
            self._is_asked = False
            self._is_open = self._is_open and self._parser.should_keep_alive()
