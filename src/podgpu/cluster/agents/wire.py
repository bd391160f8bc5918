"""One connection to an agent: a request at a time, kept open in between.

A general client spends several times as long on a request that is answered with "not modified", and of those there are
thousands.
"""

import asyncio
import ssl
from typing import cast

import httptools

from podgpu.cluster.reader import ReadFault


class Gone(Exception):
    """The other side closed the connection before it answered: it may have been idle for too long."""


class Head:
    """What an answer says before its body."""

    def __init__(self) -> None:
        self.status = 0
        self.etag = ""
        self.encoding = ""


class Wire(asyncio.Protocol):
    _transport: asyncio.Transport

    def __init__(self, most_bytes: int) -> None:
        self._most_bytes = most_bytes
        self._parser: httptools.HttpResponseParser | None = None
        self._answer: asyncio.Future[tuple[Head, bytes]] | None = None
        self._head = Head()
        self._body = bytearray()
        self._is_open = True
        self._has_begun = False

    @property
    def is_open(self) -> bool:
        return self._is_open and not self._transport.is_closing()

    async def ask(self, request: bytes) -> tuple[Head, bytes]:
        """Raises Gone, or ReadFault for an answer that makes no sense or is too large."""
        if not self.is_open:
            raise Gone
        self._parser, self._head, self._has_begun = httptools.HttpResponseParser(self), Head(), False
        self._body.clear()
        self._answer = asyncio.get_running_loop().create_future()
        self._transport.write(request)
        try:
            return await self._answer
        except BaseException:
            self.close()
            raise
        finally:
            self._answer = None

    def close(self) -> None:
        self._is_open = False
        self._transport.abort()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.Transport", transport)

    def connection_lost(self, exc: BaseException | None) -> None:
        self._is_open = False
        if isinstance(exc, ssl.SSLError):  # with TLS 1.3 a certificate is refused after the handshake
            self._fail(exc)
        self._fail(ReadFault("garbage", "the answer broke off") if self._has_begun else Gone())

    def data_received(self, data: bytes) -> None:
        if self._answer is None or self._parser is None:
            self.close()  # it speaks without being asked
            return
        self._has_begun = True
        try:
            self._parser.feed_data(data)
        except httptools.HttpParserError as error:
            self._fail(ReadFault("garbage", f"no HTTP answer ({error or type(error).__name__})"))

    def eof_received(self) -> None:
        self._is_open = False

    def on_header(self, name: bytes, value: bytes) -> None:
        key = name.lower()
        if key == b"etag":
            self._head.etag = value.decode("latin-1")
        elif key == b"content-encoding":
            self._head.encoding = value.decode("latin-1").strip().lower()

    def on_body(self, piece: bytes) -> None:
        self._body += piece
        if len(self._body) > self._most_bytes:
            self._fail(ReadFault("too_large", f"the answer has more than {self._most_bytes >> 20} MiB"))

    def on_message_complete(self) -> None:
        parser = self._parser
        if parser is None or self._answer is None or self._answer.done():
            return
        self._head.status = parser.get_status_code()
        self._is_open = self._is_open and parser.should_keep_alive()
        self._answer.set_result((self._head, bytes(self._body)))
        self._body.clear()  # a thousand idle connections would keep as many documents

    def _fail(self, error: Exception) -> None:
        if self._answer is not None and not self._answer.done():
            self._answer.set_exception(error)
