"""The head of one request, checked as it arrives. Bodies are refused, so a head is all there is to a request."""

from urllib.parse import parse_qsl, unquote

from httptools import HttpParserError, HttpParserUpgrade, HttpRequestParser, parse_url

from podgpu.serve.limits import Limits
from podgpu.serve.request import Request

_VERSIONS = ("1.0", "1.1")
_SPENT = HttpRequestParser(object())  # never fed


class Refusal(Exception):
    """Why a head is not answered as it wishes. The connection is closed after it."""

    def __init__(self, status: int, line: str) -> None:
        super().__init__(line)
        self.status = status
        self.line = line


class Head:
    """`complete` says whether the head has ended, `keeps_alive` whether the client wants to ask again."""

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
        """Take what belongs to this head and return what follows it. Raises Refusal."""
        at = 0
        try:
            while at < len(data) and not self.complete:
                # By the line, since the parser does not say where in the data a head ends.
                end = data.find(b"\n", at) + 1 or len(data)
                self._measure(data[at:end])
                self._parse(data[at:end])
                at = end
        except Refusal:
            self.close()
            raise
        if self.complete:
            self.close()
        return data[at:]

    def close(self) -> None:
        """Part from the parser. They know each other, so that memory would wait for a collector that seldom comes."""
        self._parser = _SPENT

    def request(self, remote: str | None, *, certified: bool = False) -> Request:
        """Give the request of a complete head. Raises Refusal if it is none that can be answered."""
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

    def _measure(self, piece: bytes) -> None:
        self._bytes += len(piece)
        self._line_bytes += len(piece)
        if self._line_bytes > self._limits.line_bytes:
            raise _malformed()
        if self._bytes > self._limits.head_bytes:
            raise too_long()
        if piece.endswith(b"\n"):
            self._line_bytes = 0

    def _parse(self, piece: bytes) -> None:
        try:
            self._parser.feed_data(piece)
        except HttpParserUpgrade:
            pass  # an offer that may be declined by answering in HTTP/1.1
        except HttpParserError:
            raise _malformed() from None
        if self._field_count > self._limits.header_count:
            raise too_long()

    def _check(self) -> None:
        if self.version not in _VERSIONS or self._host_count > 1:
            raise _malformed()
        if self.version == "1.1" and self._host_count == 0:
            raise _malformed()
        if "transfer-encoding" in self._fields or int(self._fields.get("content-length", "0")):
            raise Refusal(413, "a request must not have a body")
        if self._fields.get("expect", "100-continue").lower() != "100-continue":
            raise Refusal(417, "leave out the header Expect")


def too_long() -> Refusal:
    return Refusal(431, "the request head is too long")


def _malformed() -> Refusal:
    return Refusal(400, "this is not a valid HTTP request")


def _split(target: bytes) -> tuple[str, list[tuple[str, str]]]:
    """Give the path and the query of a target, which may be a whole URL as a proxy gets it."""
    if b"#" in target:
        raise _malformed()
    try:
        url = parse_url(target)
    except HttpParserError:
        raise _malformed() from None
    pairs = parse_qsl((url.query or b"").decode("latin-1"), keep_blank_values=True)
    return unquote((url.path or b"/").decode("latin-1")), pairs
