"""Many agents in one process: each has an address of its own on loopback, and may misbehave in its own way."""

import asyncio
import gzip
import re
import ssl
from collections.abc import Callable, Iterable
from functools import partial
from typing import Self, cast

from tests.patience import PATIENCE

PER_BLOCK = 250
SLOW_SECONDS = 10 * PATIENCE  # longer than anybody waits
_MARK = re.compile(rb"if-none-match: *([^\r\n]*)", re.IGNORECASE)

# Returns the document of a node in a version.
Document = Callable[[int, int], bytes]


class Fleet:
    """`tricks` says which agents do not just answer: `hang`, `slow`, `close`, or a whole answer as bytes."""

    def __init__(
        self,
        size: int,
        document: Document,
        tricks: dict[int, str | bytes] | None = None,
        tls: ssl.SSLContext | None = None,
    ) -> None:
        self.size = size
        self.tricks = tricks or {}
        self.requests = 0
        self.bodies = 0
        self.connections = 0
        self.wires: set[asyncio.Transport] = set()
        self._document = document
        self._tls = tls
        self._versions = [0] * size
        self._packed: dict[int, bytes] = {}
        self._server: asyncio.Server | None = None
        self._port = 0

    @property
    def urls(self) -> list[str]:
        scheme = "https" if self._tls else "http"
        return [f"{scheme}://{_address(number)}:{self._port}" for number in range(self.size)]

    async def __aenter__(self) -> Self:
        loop = asyncio.get_running_loop()
        self._server = await loop.create_server(partial(_Agent, self), "0.0.0.0", 0, backlog=1024, ssl=self._tls)
        self._port = self._server.sockets[0].getsockname()[1]
        return self

    async def __aexit__(self, *_: object) -> None:
        assert self._server
        self._server.close()
        self.hang_up()

    def hang_up(self) -> None:
        """End every connection."""
        for wire in list(self.wires):
            wire.abort()

    def change(self, numbers: Iterable[int]) -> None:
        """Give these agents a new document, packed before anybody asks for it."""
        for number in numbers:
            self._versions[number] += 1
            self._packed.pop(number, None)
            self._body(number)

    def prepare(self) -> None:
        for number in range(self.size):
            self._body(number)

    def answer(self, number: int, known: bytes) -> bytes | None:
        """Return the bytes of an answer, or None to be silent."""
        self.requests += 1
        trick = self.tricks.get(number)
        if trick is not None:
            return None if isinstance(trick, str) else trick
        etag = b'"v%d"' % self._versions[number]
        if known == etag:
            return b"HTTP/1.1 304 Not Modified\r\nETag: %b\r\n\r\n" % etag
        self.bodies += 1
        body = self._body(number)
        head = b"HTTP/1.1 200 OK\r\nETag: %b\r\nContent-Encoding: gzip\r\nContent-Length: %d\r\n\r\n"
        return head % (etag, len(body)) + body

    def _body(self, number: int) -> bytes:
        if number not in self._packed:
            self._packed[number] = gzip.compress(self._document(number, self._versions[number]), 1)
        return self._packed[number]


class _Agent(asyncio.Protocol):
    def __init__(self, fleet: Fleet) -> None:
        self._fleet = fleet
        self._ahead = b""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.Transport", transport)
        self._fleet.wires.add(self._transport)
        self._fleet.connections += 1
        self._number = _number(transport.get_extra_info("sockname")[0])
        if self._fleet.tricks.get(self._number) == "close":
            self._transport.close()

    def connection_lost(self, exc: BaseException | None) -> None:
        self._fleet.wires.discard(self._transport)

    def data_received(self, data: bytes) -> None:
        self._ahead += data
        if b"\r\n\r\n" in self._ahead:
            found = _MARK.search(self._ahead)
            self._ahead = b""
            answer = self._fleet.answer(self._number, found[1] if found else b"")
            if self._fleet.tricks.get(self._number) == "slow":
                asyncio.get_running_loop().call_later(SLOW_SECONDS, self._transport.close)
            if answer is not None:
                self._transport.write(answer)


def plain(body: bytes, status: str = "200 OK") -> bytes:
    """Make an answer that is not compressed."""
    return f"HTTP/1.1 {status}\r\nContent-Length: {len(body)}\r\n\r\n".encode() + body


def _address(number: int) -> str:
    return f"127.1.{number // PER_BLOCK}.{number % PER_BLOCK + 1}"


def _number(address: str) -> int:
    _, _, block, last = address.split(".")
    return int(block) * PER_BLOCK + int(last) - 1
