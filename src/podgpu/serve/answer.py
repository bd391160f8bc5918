"""Answers, the headers that each of them carries, and how they are written."""

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
RETRY_SECONDS = "1"


class Stream(AbstractContextManager[AsyncIterator[bytes]], Protocol):
    """A body without an end. Inside its `with` there are pieces, until it is closed."""

    def close(self) -> None: ...


@dataclass(frozen=True, slots=True)
class Response:
    """`more` is what follows the body: large pages are sent from their pieces, without a copy."""

    status: int
    body: bytes
    content_type: str = TEXT
    headers: Mapping[str, str] = field(default_factory=dict)
    more: Sequence[bytes] = ()
    stream: Stream | None = None  # follows all that, up to the end of the connection

    @property
    def fields(self) -> dict[str, str]:
        """List the headers that say what the answer is, without those that say how it is sent."""
        return {**HEADERS, "Content-Type": self.content_type, **self.headers}


def text(status: int, line: str, headers: Mapping[str, str] | None = None) -> Response:
    return Response(status, f"{line}\n".encode(), TEXT, headers or {})


def busy(line: str) -> Response:
    return text(503, line, {"Retry-After": RETRY_SECONDS})


def encode(response: Response, *, connection: str | None, head_only: bool = False) -> bytes:
    """Spell out an answer in one piece, without `more`: a head by itself would wake the client twice.

    `connection` is the header of that name.
    """
    framing = {"Date": time.strftime("%a, %d %b %Y %H:%M:%S GMT", time.gmtime())}
    if response.status != HTTPStatus.NOT_MODIFIED and response.stream is None:
        framing["Content-Length"] = str(len(response.body) + sum(map(len, response.more)))
    if connection is not None:
        framing["Connection"] = connection
    fields = "".join(f"{name}: {value}\r\n" for name, value in (response.fields | framing).items())
    status = HTTPStatus(response.status)
    head = f"HTTP/1.1 {status.value} {status.phrase}\r\n{fields}\r\n".encode("latin-1")
    return head if head_only else head + response.body
