"""An HTTP client. It follows no redirects, keeps no cookies and uses no proxies."""

import asyncio
import io
import os
import re
import socket
import ssl
import zlib
from base64 import b64encode
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import AbstractAsyncContextManager, ExitStack, asynccontextmanager, nullcontext, suppress
from pathlib import Path
from typing import Any
from urllib.parse import SplitResult, quote, unquote, urlsplit

from msgspec import Struct

from podgpu.net.connection import Connection, ConnectionGone, ConnectionRefused, HttpFault, ResponseHead
from podgpu.net.login import Login

ERROR_BYTES = 64 << 10  # of the body of an error: the status says enough
LONGEST_RETRY_AFTER = 300.0
NEXT_ADDRESS_SECONDS = 1.0  # for each of several addresses of a name, before the next one is tried
_PORTS = {"http": 80, "https": 443}
_GZIP_CONTAINER = 16 + zlib.MAX_WBITS
# Documents and stores' answers shrink to a tenth or a twentieth, and to a hundredth if all numbers are equal. gzip can
# reach a thousand, which is a bomb.
MOST_RATIO = 300
BYTES_OF_ANY_RATIO = 8 << 20
_PACKED_AT_ONCE = 64 << 10
_UNPACKED_AT_ONCE = 1 << 20
_LINE_END = re.compile(r"[\r\n\0]")

Headers = Mapping[str, str]


class HttpAnswer(Struct, frozen=True):
    """`body` may still be compressed. The names of headers are in lower case."""

    status: int
    headers: dict[str, str]
    body: bytes

    @property
    def etag(self) -> str:
        return self.headers.get("etag", "")

    @property
    def encoding(self) -> str:
        encoding = self.headers.get("content-encoding", "").strip().lower()
        return "" if encoding == "identity" else encoding

    @property
    def retry_after(self) -> float:
        """How many seconds the server asks us to wait, within reason."""
        text = self.headers.get("retry-after", "")
        return min(float(text), LONGEST_RETRY_AFTER) if text.isascii() and text.isdigit() else 0.0

    def plain(self, limit: int) -> bytes:
        """Decompress the body, to `limit` bytes at most. Raises HttpFault."""
        if not self.encoding:
            return self.body
        if self.encoding != "gzip":
            raise HttpFault("garbage", f"the answer is compressed as {self.encoding[:20]!r}")
        plain = io.BytesIO()
        for packed, piece in _unpacked(self.body):
            plain.write(piece)
            if (size := plain.tell()) > limit:
                raise _too_large(limit)
            if size > BYTES_OF_ANY_RATIO and size > MOST_RATIO * packed:
                raise HttpFault("too_large", f"{packed >> 10} KiB of gzip become more than {MOST_RATIO} times as much")
        return plain.getvalue()


class HttpStream:
    """An answer that comes piece by piece. It has stalled after `silence` seconds without a piece."""

    def __init__(self, head: ResponseHead, connection: Connection, silence: float) -> None:
        self.status = head.status
        self._head = head
        self._connection = connection
        self._silence = silence

    async def pieces(self) -> AsyncIterator[bytes]:
        while True:
            async with _deadline(self._silence, "stalled", "nothing for"):
                piece = await self._connection.read()
            if not piece:
                return
            yield piece

    async def error(self) -> HttpAnswer:
        """Return the error that the server sent instead of a stream, as far as it comes in time."""
        body = b""
        with suppress(TimeoutError):
            async with asyncio.timeout(self._silence):
                body = await _error_body(self._connection)
        return HttpAnswer(self.status, self._head.headers, body)


class HttpClient:
    """Keeps up to `kept` idle connections to each address, and sends at most `connections` requests at a time.

    If a kept connection turns out to be closed, the request is sent again: all requests may be repeated.
    """

    def __init__(
        self,
        login: Login | None = None,
        *,
        connections: int = 0,
        kept: int = 1,
        connect_seconds: float = 30.0,
        unix_socket: Path | None = None,
    ) -> None:
        self._login = login or Login()
        self._slots: AbstractAsyncContextManager[None] = (
            asyncio.Semaphore(connections) if connections else nullcontext()
        )
        self._kept = kept
        self._connect_seconds = connect_seconds
        self._unix_socket = unix_socket
        self._idle: dict[tuple[str, str], list[Connection]] = {}
        self._busy: set[Connection] = set()

    async def request(
        self, method: str, url: str, headers: Headers | None = None, body: bytes = b"", *, seconds: float, limit: int
    ) -> HttpAnswer:
        """Raises HttpFault. `limit` is for the bytes of the body as it is sent."""
        address = _address(url)
        async with _deadline(seconds), self._slots:
            connection, head = await self._sent(method, address, headers, body)
            try:
                is_error = head.status >= 300
                content = await (_error_body(connection) if is_error else _body(connection, limit))
            finally:
                self._release(connection, address)
        return HttpAnswer(head.status, head.headers, content)

    @asynccontextmanager
    async def stream(self, url: str, headers: Headers | None = None, *, silence: float) -> AsyncIterator[HttpStream]:
        """GET an answer that may be endless. Raises HttpFault."""
        address = _address(url)
        async with self._slots:
            async with _deadline(silence):
                connection, head = await self._sent("GET", address, headers)
            try:
                yield HttpStream(head, connection, silence)
            finally:
                self._release(connection, address)

    def forget(self, url: str) -> None:
        """Close the idle connections to an address."""
        for connection in self._idle.pop(_key(urlsplit(url)), ()):
            connection.close()

    async def close(self) -> None:
        for connection in (*self._busy, *(idle for kept in self._idle.values() for idle in kept)):
            connection.close()
        self._idle.clear()
        await asyncio.sleep(0)

    async def _sent(
        self, method: str, address: SplitResult, headers: Headers | None, body: bytes = b""
    ) -> tuple[Connection, ResponseHead]:
        """Send a request. Return the head of the answer, and the connection that its body comes over."""
        request = _request(method, address, {**self._login.headers(), **(headers or {})}, body)
        context = self._login.context() if address.scheme == "https" else None
        while connection := self._take_idle(address):
            if connection.is_reusable and connection.context is context:
                try:
                    return connection, await self._answered(connection, request)
                except ConnectionGone:
                    break  # the server closes idle connections, so the others are probably closed too
            connection.close()
        connection = await self._connected(address, context)
        return connection, await self._answered(connection, request)

    async def _answered(self, connection: Connection, request: bytes) -> ResponseHead:
        self._busy.add(connection)
        try:
            return await connection.send(request)
        except BaseException:
            self._busy.discard(connection)
            connection.close()
            raise

    async def _connected(self, address: SplitResult, context: ssl.SSLContext | None) -> Connection:
        loop = asyncio.get_running_loop()
        try:
            async with asyncio.timeout(self._connect_seconds):
                if self._unix_socket:
                    _, made = await loop.create_unix_connection(Connection, str(self._unix_socket))
                    return made
                secured: dict[str, Any] = {}
                if context:
                    secured = {"ssl": context, "server_hostname": self._login.server_name or address.hostname}
                connected = await _socket(address.hostname or "", address.port or _PORTS[address.scheme])
                _, made = await loop.create_connection(lambda: Connection(context), sock=connected, **secured)
                return made
        except TimeoutError:
            raise HttpFault("timeout", f"no connection within {self._connect_seconds:g} s") from None

    def _release(self, connection: Connection, address: SplitResult) -> None:
        self._busy.discard(connection)
        idle = self._idle.get(_key(address), [])
        if connection.is_reusable and len(idle) < self._kept:
            self._idle[_key(address)] = [*idle, connection]
        else:
            connection.close()

    def _take_idle(self, address: SplitResult) -> Connection | None:
        """Take the idle connection that was used last."""
        if not (idle := self._idle.pop(_key(address), None)):
            return None
        *others, last = idle
        if others:
            self._idle[_key(address)] = others
        return last


@asynccontextmanager
async def _deadline(seconds: float, reason: str = "timeout", what: str = "no answer within") -> AsyncIterator[None]:
    """Turn what a connection raises into an HttpFault. The end of the time becomes one with that reason."""
    try:
        async with asyncio.timeout(seconds):
            yield
    except TimeoutError as error:
        if error.errno:  # the kernel gave up
            raise HttpFault("unreachable", _words(error)) from None
        raise HttpFault(reason, f"{what} {seconds:g} s") from None
    except ssl.SSLCertVerificationError as error:
        raise HttpFault("tls", f"its certificate is refused: {error.verify_message}") from None
    except ssl.SSLError as error:
        raise HttpFault("tls", str(error.reason or error)) from None
    except OSError as error:
        kind = ConnectionRefused if isinstance(error, ConnectionRefusedError) else HttpFault
        raise kind("unreachable", _words(error)) from None
    except UnicodeError:
        raise HttpFault("garbage", "the host name is not valid") from None
    except ConnectionGone:
        raise HttpFault("unreachable", "the connection was closed without an answer") from None


async def _socket(host: str, port: int) -> socket.socket:
    """Connect to the first address of a name that answers. When cancelled, asyncio's own race leaks sockets."""
    loop = asyncio.get_running_loop()
    try:  # a numeric address needs no resolver, and so no thread
        addresses = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_NUMERICHOST)
    except socket.gaierror:
        addresses = await loop.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    errors: list[OSError] = []
    for family, kind, protocol, _, address in addresses:
        is_last = len(errors) == len(addresses) - 1
        try:
            with ExitStack() as stack:
                attempt = stack.enter_context(socket.socket(family, kind, protocol))
                attempt.settimeout(0.0)
                async with asyncio.timeout(None if is_last else NEXT_ADDRESS_SECONDS):
                    await loop.sock_connect(attempt, address)
                stack.pop_all()  # it stays open
                return attempt
        except OSError as error:  # such as TimeoutError, or that of a machine without IPv6
            errors.append(error)
    raise errors[0] if errors else OSError(f"{host} has no address")


async def _body(connection: Connection, limit: int) -> bytes:
    body = bytearray()
    while piece := await connection.read():
        body += piece
        if len(body) > limit:
            raise _too_large(limit)
    return bytes(body)


async def _error_body(connection: Connection) -> bytes:
    """Return the beginning of the body, as far as it comes."""
    body = bytearray()
    with suppress(HttpFault, ConnectionGone, OSError):
        while len(body) < ERROR_BYTES and (piece := await connection.read()):
            body += piece
    return bytes(body[:ERROR_BYTES])


def _unpacked(body: bytes) -> Iterator[tuple[int, bytes]]:
    """Yield what gzip packed, in small pieces, each with the bytes of the body read so far. Raises HttpFault."""
    unpacker = zlib.decompressobj(_GZIP_CONTAINER)
    try:
        for start in range(0, len(body), _PACKED_AT_ONCE):
            left = body[start : start + _PACKED_AT_ONCE]
            end, piece = start + len(left), b""
            while left or len(piece) == _UNPACKED_AT_ONCE:
                piece = unpacker.decompress(left, _UNPACKED_AT_ONCE)
                left = unpacker.unconsumed_tail
                yield end - len(left), piece
            if unpacker.eof:
                return
    except zlib.error:
        raise HttpFault("garbage", "the answer is not compressed as it says") from None
    raise HttpFault("broken_off", "the answer breaks off")


def _address(url: str) -> SplitResult:
    try:
        address = urlsplit(url)
        _ = address.port  # urlsplit checks the port only when it is read
    except ValueError:
        raise HttpFault("garbage", "the URL is not valid") from None
    if address.scheme not in _PORTS or not address.hostname:
        raise HttpFault("garbage", "the URL is not an http:// or https:// URL")
    return address


def _request(method: str, address: SplitResult, headers: Headers, body: bytes) -> bytes:
    user, _, host = address.netloc.rpartition("@")
    fields = {"Host": host, "User-Agent": "podgpu"}
    if user:
        fields["Authorization"] = f"Basic {b64encode(unquote(user).encode()).decode()}"
    if body or method == "POST":
        fields["Content-Length"] = str(len(body))
    names = {name.lower() for name in headers}
    fields = {**{name: value for name, value in fields.items() if name.lower() not in names}, **headers}
    if any(_LINE_END.search(f"{name}{value}") for name, value in headers.items()):
        raise HttpFault("garbage", "a header of the request holds a line break")
    lines = [f"{name}: {value}" for name, value in fields.items()]
    path = f"{address.path or '/'}?{address.query}" if address.query else address.path or "/"
    target = quote(path, safe="%/?:@!$&'()*+,;=~-._[]")
    head = "\r\n".join((f"{method} {target} HTTP/1.1", *lines, "", ""))
    return head.encode(errors="surrogateescape") + body


def _key(address: SplitResult) -> tuple[str, str]:
    return address.scheme, address.netloc


def _too_large(limit: int) -> HttpFault:
    size = f"{limit >> 20} MiB" if limit >= 1 << 20 else f"{limit >> 10} KiB"
    return HttpFault("too_large", f"the answer has more than {size}")


def _words(error: OSError) -> str:
    """Say just `Connection refused`, without the address."""
    return os.strerror(error.errno) if error.errno and error.errno > 0 else str(error) or "no connection"
