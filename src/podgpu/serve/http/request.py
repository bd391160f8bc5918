"""Requests, parsed and checked, and their limits. Bodies are rejected, so a head is all there is to a request."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from urllib.parse import parse_qsl, unquote

from httptools import HttpParserError, HttpParserUpgrade, HttpRequestParser, parse_url


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """Deadlines are checked every `sweep_seconds`, so each may be late by that much.

    `idle_seconds` is longer than the usual scrape intervals of up to a minute: a scraper keeps its connection.
    For `settle_seconds`, a connection that has sent no request yet, or does not read, is not evicted for another.
    `unread_bytes` bounds the responses that clients do not read; a page that many are sent counts once.
    """

    head_seconds: float = 5.0
    head_bytes: int = 16 * 1024
    line_bytes: int = 8 * 1024
    header_count: int = 64
    idle_seconds: float = 75.0
    write_seconds: float = 10.0
    unread_bytes: int = 64 << 20
    settle_seconds: float = 1.0
    stop_seconds: float = 2.0
    sweep_seconds: float = 1.0


_HOSTS = {"1.0": (0, 1), "1.1": (1,)}  # how many Host headers a request of each version may have
_END = re.compile(rb"\n\r?\n")


@dataclass(frozen=True, slots=True)
class Request:
    """`path` and `query` are decoded, and the first value of a repeated query name counts; `every` has them all.

    Header names are in lower case, and repeated headers are joined by commas. `remote` is the client's IP address, if
    it is known. `certified` says that the client has presented a certificate that a known authority signed, and
    `keeps_alive` that it may send another request. `user` is who has logged in, according to a trusted proxy.
    """

    method: str
    path: str
    query: Mapping[str, str]
    headers: Mapping[str, str]
    remote: str
    certified: bool = False
    pairs: tuple[tuple[str, str], ...] = ()
    keeps_alive: bool = True
    user: str = ""

    @property
    def is_scrape(self) -> bool:
        return self.path == "/metrics" or self.path.startswith("/metrics/")

    def every(self, name: str) -> list[str]:
        return [value for key, value in self.pairs if key == name]


@dataclass(eq=False)
class RequestError(Exception):
    """Why a request is rejected before it reaches a handler. The connection is closed after it."""

    status: int
    line: str


def parse_request(data: bytes, limits: Limits, remote: str, *, certified: bool = False) -> tuple[Request, bytes] | None:
    """Return the first request and what follows it, or None while its head has no end. Raises RequestError."""
    data = data.lstrip(b"\r\n")
    end = _END.search(data)
    size = end.end() if end else len(data)
    head = _RequestHead(data[:size], limits)
    if end is None:
        return None
    headers: dict[str, str] = {}
    for name, value in head.fields:
        headers[name] = f"{headers[name]}, {value}" if name in headers else value
    if sum(name == "host" for name, _ in head.fields) not in _HOSTS.get(head.version, ()):
        raise _malformed()
    if "transfer-encoding" in headers or int(headers.get("content-length", "0")):
        raise RequestError(413, "a request must not have a body")
    if headers.get("expect", "100-continue").lower() != "100-continue":
        raise RequestError(417, "leave out the header Expect")
    path, pairs = _split(head.target)
    query, keeps = dict(reversed(pairs)), head.keeps_alive
    request = Request(head.method, path, query, headers, remote, certified, tuple(pairs), keeps)
    return request, data[size:]


class _RequestHead:
    """What the parser finds in a head, or in the beginning of one, which has no version yet."""

    def __init__(self, data: bytes, limits: Limits) -> None:
        self.version = self.method = ""
        self.keeps_alive = False
        self.target = b""
        self.fields: list[tuple[str, str]] = []
        if max(map(len, data.split(b"\n"))) >= limits.line_bytes:
            raise _malformed()
        self._parser = HttpRequestParser(self)
        try:
            self._parser.feed_data(data)
        except HttpParserUpgrade:
            pass  # an offer, which a response in HTTP/1.1 declines
        except HttpParserError:
            raise _malformed() from None
        finally:
            del self._parser  # it refers back to this object, and the garbage collector runs rarely
        if len(data) > limits.head_bytes or len(self.fields) > limits.header_count:
            raise too_long()

    def on_url(self, part: bytes) -> None:
        self.target += part

    def on_header(self, name: bytes, value: bytes) -> None:
        self.fields.append((name.decode("latin-1").lower(), value.decode("latin-1").strip(" \t")))

    def on_headers_complete(self) -> None:
        self.method = self._parser.get_method().decode()
        self.version = self._parser.get_http_version()
        # The parser forgets this at the end of the request.
        self.keeps_alive = self._parser.should_keep_alive()


def too_long() -> RequestError:
    return RequestError(431, "the request head is too long")


def _malformed() -> RequestError:
    return RequestError(400, "this is not a valid HTTP request")


def _split(target: bytes) -> tuple[str, list[tuple[str, str]]]:
    """Return the path and the query of a target, which may be a whole URL, as a proxy gets it."""
    if b"#" in target:
        raise _malformed()
    try:
        url = parse_url(target)
    except HttpParserError:
        raise _malformed() from None
    pairs = parse_qsl((url.query or b"").decode("latin-1"), keep_blank_values=True)
    return unquote((url.path or b"/").decode("latin-1")), pairs
