"""Responses, and the headers that each of them carries."""

import time
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from http import HTTPStatus
from typing import Protocol

HEADERS = {
    # Live numbers: a cached page would be a wrong one.
    "Cache-Control": "no-store",
    "Content-Security-Policy": "default-src 'none'; frame-ancestors 'none'",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Server": "podgpu",
}
TEXT = "text/plain; charset=utf-8"


class BodyStream(AbstractContextManager[AsyncIterator[bytes]], Protocol):
    """A body without an end. Its `with` yields chunks until it is closed."""

    def close(self) -> None: ...


@dataclass(frozen=True, slots=True)
class Response:
    """`more` follows the body: large pages are sent from their parts, without a copy."""

    status: int
    body: bytes
    content_type: str = TEXT
    headers: Mapping[str, str] = field(default_factory=dict)
    more: Sequence[bytes] = ()
    length: int | None = None  # of all that, if parts of it are made only as they are sent
    stream: BodyStream | None = None  # follows all that, up to the end of the connection
    closing: bool = False  # the server closes the connection afterwards, whatever the client wants

    @property
    def fields(self) -> dict[str, str]:
        """The headers that describe the content, without those that describe the transfer."""
        return {**HEADERS, "Content-Type": self.content_type, **self.headers}

    def encode_head(self, connection: str | None) -> bytes:
        """Encode the status line and the headers. `connection` is the header of that name."""
        framing = {"Date": time.strftime("%a, %d %b %Y %H:%M:%S GMT", time.gmtime())}
        if self.status != HTTPStatus.NOT_MODIFIED and self.stream is None:
            length = len(self.body) + sum(map(len, self.more)) if self.length is None else self.length
            framing["Content-Length"] = str(length)
        if connection is not None:
            framing["Connection"] = connection
        lines = "".join(f"{name}: {value}\r\n" for name, value in (self.fields | framing).items())
        status = HTTPStatus(self.status)
        return f"HTTP/1.1 {status.value} {status.phrase}\r\n{lines}\r\n".encode("latin-1")

    def encode_last(self) -> bytes:
        """Encode all of it, for a connection that is closed after it."""
        return self.encode_head("close") + self.body


def text_response(status: int, line: str, headers: Mapping[str, str] | None = None) -> Response:
    return Response(status, f"{line}\n".encode(), TEXT, headers or {})


def busy_response(line: str) -> Response:
    return text_response(503, line, {"Retry-After": "1"})
