"""The files of the web page, each compressed once."""

import gzip
from collections.abc import Mapping
from functools import cached_property
from hashlib import sha256
from importlib.resources import files
from pathlib import PurePath

from podgpu.serve.http.request import Request
from podgpu.serve.http.response import Response
from podgpu.serve.pages import RenderedPage
from podgpu.serve.request_handler import Route
from podgpu.serve.routes import page_response, wants_gzip
from podgpu.views.page import words_script

PREFIX = "/page/"

_TYPES = {
    ".js": "text/javascript; charset=utf-8",
    ".css": "text/css; charset=utf-8",
    ".svg": "image/svg+xml",
}
_HEADERS = {
    # A browser may keep it, but asks each time whether it is still the same: another version of podgpu has others.
    "Cache-Control": "no-cache",
    "Vary": "Accept-Encoding",
    # A worker obeys the policy of its own file, and the only worker reads the events.
    "Content-Security-Policy": "default-src 'none'; script-src 'self'; connect-src 'self'",
}
_BEST = 9


class Asset:
    def __init__(self, name: str, content: bytes) -> None:
        self._content = content
        self._content_type = _TYPES[PurePath(name).suffix]

    @cached_property
    def plain(self) -> RenderedPage:
        return RenderedPage(self._content, self._content_type, mark=sha256(self._content).hexdigest()[:16])

    @cached_property
    def gzipped(self) -> RenderedPage:
        body = gzip.compress(self._content, _BEST, mtime=0)
        return RenderedPage(body, self._content_type, gzipped=True, mark=f"{self.plain.mark}-gzip")

    def __call__(self, request: Request) -> Response:
        return page_response(self.gzipped if wants_gzip(request) else self.plain, request, _HEADERS)


def assets() -> Mapping[str, Asset]:
    """Read all of them, by path."""
    folder = files("podgpu") / "web"
    contents = {file.name: file.read_bytes() for file in folder.iterdir() if PurePath(file.name).suffix in _TYPES}
    contents["words.js"] = words_script()
    return {PREFIX + name: Asset(name, content) for name, content in sorted(contents.items())}


def routes() -> Mapping[str, Route]:
    return {path: Route(asset) for path, asset in assets().items()}
