"""Requests, parsed and checked as they arrive. Bodies are rejected, so a head is all there is to a request."""

from collections.abc import Mapping
from dataclasses import dataclass
from urllib.parse import parse_qsl, unquote

from httptools import HttpParserError, HttpParserUpgrade, HttpRequestParser, parse_url

from podgpu.serve.http.limits import Limits

_VERSIONS = ("1.0", "1.1")
_SPENT = HttpRequestParser(object())  # never fed


@dataclass(frozen=True, slots=True)
class Request:
    """`path` and `query` are decoded, and the first value of a repeated query name counts; `every` has them all.

    Header names are in lower case, and repeated headers are joined by commas. `remote` is the client's IP address.
    `certified` is whether the client has presented a certificate that a known authority signed.
    """

    method: str
    path: str
    query: Mapping[str, str]
    headers: Mapping[str, str]
    remote: str | None
    certified: bool = False
    pairs: tuple[tuple[str, str], ...] = ()

    @property
    def is_scrape(self) -> bool:
        """Whether it is for a page of metrics."""
        return self.path == "/metrics" or self.path.startswith("/metrics/")

    def every(self, name: str) -> list[str]:
        return [value for key, value in self.pairs if key == name]


class RequestError(Exception):
    """Why a request is rejected before it reaches a handler. The connection is closed after it."""

    def __init__(self, status: int, line: str) -> None:
        super().__init__(line)
        self.status = status
        self.line = line


class RequestParser:
    """`complete` is whether the head has ended, `keeps_alive` whether the client wants to send another request."""

    def __init__(self, limits: Limits) -> None:
        self.complete = False
        self.keeps_alive = False
        self.version = ""
        self._limits = limits
        self._parser = HttpRequestParser(self)
        self._method = ""
        self._bytes = 0
        self._line_bytes = 0
        self._field_count = 0
        self._host_count = 0
        self._target = b""
        self._fields: dict[str, str] = {}

    def feed(self, data: bytes) -> bytes:
        """Take what belongs to this head and return what follows it. Raises RequestError."""
        at = 0
        try:
            while at < len(data) and not self.complete:
                # By the line, since the parser does not say where in the data a head ends.
                end = data.find(b"\n", at) + 1 or len(data)
                self._feed_line(data[at:end])
                at = end
        except RequestError:
            self.close()
            raise
        if self.complete:
            self.close()
        return data[at:]

    def close(self) -> None:
        """Break the cycle with the parser: the garbage collector, which would free it, runs rarely."""
        self._parser = _SPENT

    def request(self, remote: str | None, *, certified: bool = False) -> Request:
        """Return the request of a complete head. Raises RequestError if it cannot be answered."""
        self._check()
        path, pairs = _split(self._target)
        return Request(
            self._method, path, dict(reversed(pairs)), self._fields, remote, certified, tuple(pairs)
        )

    def on_url(self, part: bytes) -> None:
        self._target += part

    def on_header(self, name: bytes, value: bytes) -> None:
        key, text = name.decode("latin-1").lower(), value.decode("latin-1").strip(" \t")
        self._field_count += 1
        self._host_count += key == "host"
        self._fields[key] = f"{self._fields[key]}, {text}" if key in self._fields else text

    def on_headers_complete(self) -> None:
        self.complete = True
        self._method = self._parser.get_method().decode()
        self.version = self._parser.get_http_version()
        # The parser forgets this with the end of the request.
        self.keeps_alive = self._parser.should_keep_alive()

    def _feed_line(self, line: bytes) -> None:
        """Feed a line, or a piece of one."""
        self._bytes += len(line)
        self._line_bytes += len(line)
        if self._line_bytes > self._limits.line_bytes:
            raise _malformed()
        if self._bytes > self._limits.head_bytes:
            raise too_long()
        if line.endswith(b"\n"):
            self._line_bytes = 0
        try:
            self._parser.feed_data(line)
        except HttpParserUpgrade:
            pass  # an offer that may be declined by answering in HTTP/1.1
        except HttpParserError:
            raise _malformed() from None
        if self._field_count > self._limits.header_count:
            raise too_long()

    def _check(self) -> None:
        least_hosts = 1 if self.version == "1.1" else 0
        if self.version not in _VERSIONS or not least_hosts <= self._host_count <= 1:
            raise _malformed()
        if "transfer-encoding" in self._fields or int(self._fields.get("content-length", "0")):
            raise RequestError(413, "a request must not have a body")
        if self._fields.get("expect", "100-continue").lower() != "100-continue":
            raise RequestError(417, "leave out the header Expect")


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
