"""What each path answers."""

import time
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, replace
from ipaddress import IPv6Address, ip_address

import msgspec

from podgpu.errors import UserError
from podgpu.serve import answer
from podgpu.serve.answer import Response
from podgpu.serve.guard.hosts import Hosts
from podgpu.serve.load import Load
from podgpu.serve.menu import asked, form_of
from podgpu.serve.node import Node
from podgpu.serve.pages import Page, Pages
from podgpu.serve.request import Request
from podgpu.views.dialects import PREFIX, UnreadableError
from podgpu.views.negotiate import gzip_accepted
from podgpu.views.page import POLICY
from podgpu.views.rows import KINDS

RELEASE_SECONDS = 300
MAX_RELEASE_SECONDS = 3600

_READ = ("GET", "HEAD")
# What an address for probes and scrapes answers.
PROBED = ("/healthz", "/-/healthy", "/-/ready", "/metrics")

Handler = Callable[[Request], Response | Awaitable[Response]]


@dataclass(frozen=True, slots=True)
class Route:
    """A `vital` route is answered however many pages are being served: probes must not fail under load.

    An `open` route is answered to everybody: the kubelet's probes carry no credentials. `refused` is what a wrong
    method is told, instead of the right ones. A route that `waits` asks others before it answers, and has places of
    its own.
    """

    handler: Handler
    methods: tuple[str, ...] = _READ
    vital: bool = False
    open: bool = False
    refused: str = ""
    waits: bool = False

    def refusal(self, method: str) -> Response | None:
        if method in self.methods:
            return None
        said = self.refused or f"use {' or '.join(self.methods)}"
        return answer.text(405, said, {"Allow": ", ".join(self.methods)})

    async def run(self, request: Request) -> Response:
        response = self.handler(request)
        return response if isinstance(response, Response) else await response


class Routes:
    def __init__(self, node: Node, pages: Pages, load: Load, hosts: Hosts | None = None) -> None:
        self._node = node
        self._pages = pages
        self._load = load
        self._hosts = hosts or Hosts()

    @property
    def dialects(self) -> list[str]:
        return self._pages.menu.dialects

    def table(self, dialect: str) -> Mapping[str, Route]:
        """List the paths of an address whose `/metrics` speaks the dialect."""
        return {
            **self.pages(dialect),
            "/": Route(self._status),
            "/health": Route(self._health_of_dcgm, vital=True, open=True),
            "/healthz": Route(self._alive, vital=True, open=True),
            "/-/healthy": Route(self._healthy, vital=True, open=True),
            "/-/ready": Route(self._ready, vital=True, open=True),
            "/-/release": Route(self._release, ("POST",), vital=True),
        }

    def pages(self, dialect: str) -> Mapping[str, Route]:
        """List the pages about the node, which any application could serve."""
        menu = self._pages.menu
        dialects = {path: Route(self._metrics(path)) for path in menu.pages}
        # A document has no HEAD: those that had one before podgpu had none either, and said so in these words.
        dialects |= {
            path: Route(self._document(path), ("GET",), refused="method not allowed")
            for path in menu.documents
        }
        return {
            **dialects,
            "/metrics": dialects[PREFIX + dialect],
            "/api/v1/snapshot": Route(self._snapshot),
            "/api/v1/rows": Route(self._rows),
        }

    def _metrics(self, path: str) -> Handler:
        def metrics(request: Request) -> Response:
            form, gzipped = form_of(path, request.headers.get("accept")), wants_gzip(request)
            try:
                wanted = asked(request)
            except UserError as error:
                return answer.text(400, str(error))
            if wanted is None:
                page = self._pages.metrics(self._node.snapshot, path, form, gzipped=gzipped)
            else:
                page = self._pages.some(self._node.snapshot, path, wanted, form, gzipped=gzipped)
            return answered(page, request)

        return metrics

    def _document(self, path: str) -> Handler:
        def document(request: Request) -> Response:
            snapshot, gzipped = self._node.snapshot, wants_gzip(request)
            try:
                return answered(self._pages.document(snapshot, path, request.query, gzipped=gzipped), request)
            except UnreadableError:
                return answer.text(500, "internal server error")

        return document

    def _status(self, request: Request) -> Response:
        snapshot = self._node.snapshot
        age = max(0, int(time.time() - snapshot.taken_at))
        return under_policy(answered(self._pages.html(snapshot, age, gzipped=wants_gzip(request)), request))

    def _snapshot(self, request: Request) -> Response:
        form = request.query.get("form", "full")
        if form not in ("full", "slim"):
            return answer.text(400, "form must be full or slim")
        snapshot, gzipped = self._node.snapshot, wants_gzip(request)
        return answered(self._pages.json(snapshot, slim=form == "slim", gzipped=gzipped), request)

    def _rows(self, request: Request) -> Response:
        by = rows_kind(request)
        if isinstance(by, Response):
            return by
        return answered(self._pages.rows(self._node.snapshot, by, gzipped=wants_gzip(request)), request)

    def _health_of_dcgm(self, _request: Request) -> Response:
        """Answer as dcgm-exporter does, whose probes a manifest may still name."""
        return Response(200, b"OK", answer.TEXT, {"X-Registry-Available": "true"})

    def _alive(self, _request: Request) -> Response:
        """What zxporter says."""
        return answer.text(200, "OK")

    def _healthy(self, _request: Request) -> Response:
        return answer.text(200, "healthy")

    def _ready(self, _request: Request) -> Response:
        if self._load.stopping:
            return answer.busy("stopping")
        return (
            answer.text(200, "ready") if self._node.ready else answer.busy("the node has not been read yet")
        )

    async def _release(self, request: Request) -> Response:
        if not (_from_this_machine(request) and self._hosts.may_change(request.headers)):
            return answer.text(403, "only a program on this node may release the driver; use 127.0.0.1")
        seconds = _release_seconds(request.query.get("seconds", str(RELEASE_SECONDS)))
        if seconds is None:
            return answer.text(400, f"seconds must be a whole number from 1 to {MAX_RELEASE_SECONDS}")
        released = await self._node.release(seconds)
        outcome = msgspec.json.encode({"released": released, "seconds": seconds}) + b"\n"
        return Response(200 if released else 503, outcome, "application/json")


def answered(page: Page, request: Request) -> Response:
    """Send the page, unless the client has these very bytes."""
    headers = {"ETag": page.etag}
    if page.gzipped:
        headers["Content-Encoding"] = "gzip"
    if is_known(page.etag, request.headers.get("if-none-match", "")):
        return Response(304, b"", page.content_type, headers)
    return Response(200, page.body, page.content_type, headers)


def rows_kind(request: Request) -> str | Response:
    """Which rows are asked for; or what to answer if there are no such rows."""
    by = request.query.get("by", "pods")
    wanted = f"write /api/v1/rows?by= with one of: {', '.join(KINDS)}"
    return by if by in KINDS else answer.text(400, wanted)


def is_known(etag: str, held: str) -> bool:
    return any(tag.strip().removeprefix("W/") in (etag, "*") for tag in held.split(","))


def wants_gzip(request: Request) -> bool:
    return gzip_accepted(request.headers.get("accept-encoding"))


def under_policy(response: Response) -> Response:
    """Let the page load its own files, and nothing else."""
    return replace(response, headers={**response.headers, "Content-Security-Policy": POLICY})


def _from_this_machine(request: Request) -> bool:
    if request.remote is None:
        return False
    peer = ip_address(request.remote.partition("%")[0])
    if isinstance(peer, IPv6Address) and peer.ipv4_mapped is not None:
        return peer.ipv4_mapped.is_loopback
    return peer.is_loopback


def _release_seconds(text: str) -> int | None:
    if not (text.isascii() and text.isdigit() and len(text) <= len(str(MAX_RELEASE_SECONDS))):
        return None
    return int(text) if 1 <= int(text) <= MAX_RELEASE_SECONDS else None
