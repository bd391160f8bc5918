"""Files of the package that the page is made of, each packed once."""

import gzip
from collections.abc import Mapping
from functools import cached_property
from hashlib import sha256
from importlib.resources import files
from pathlib import PurePath

from podgpu.serve.answer import Response
from podgpu.serve.request import Request
from podgpu.serve.routes import Route, is_known, wants_gzip
from podgpu.views.page import words_script

PREFIX = "/page/"

_TYPES = {
    ".js": "text/javascript; charset=utf-8",
    ".css": "text/css; charset=utf-8",
    ".svg": "image/svg+xml",
}
# A worker goes by the policy of its own file, and the one there is reads the events.
_WORKER_POLICY = {"Content-Security-Policy": "default-src 'none'; script-src 'self'; connect-src 'self'"}
_BEST = 9


class Asset:
    def __init__(self, name: str, content: bytes) -> None:
        self.plain = content
        self.content_type = _TYPES[PurePath(name).suffix]

    @cached_property
    def packed(self) -> bytes:
        return gzip.compress(self.plain, _BEST, mtime=0)

    @cached_property
    def _mark(self) -> str:
        return sha256(self.plain).hexdigest()[:16]

    def __call__(self, request: Request) -> Response:
        """A browser may keep it, but asks each time whether it is still the same: another version has others."""
        gzipped = wants_gzip(request)
        etag = f'"{self._mark}{"-gzip" if gzipped else ""}"'
        headers = {"ETag": etag, "Cache-Control": "no-cache", "Vary": "Accept-Encoding", **_WORKER_POLICY}
        if gzipped:
            headers["Content-Encoding"] = "gzip"
        if is_known(etag, request.headers.get("if-none-match", "")):
            return Response(304, b"", self.content_type, headers)
        return Response(200, self.packed if gzipped else self.plain, self.content_type, headers)


def assets() -> Mapping[str, Asset]:
    """Read all of them, by path."""
    folder = files("podgpu") / "web"
    found = {one.name: one.read_bytes() for one in folder.iterdir() if PurePath(one.name).suffix in _TYPES}
    found["words.js"] = words_script()
    return {PREFIX + name: Asset(name, content) for name, content in sorted(found.items())}


def routes() -> Mapping[str, Route]:
    return {path: Route(asset) for path, asset in assets().items()}
