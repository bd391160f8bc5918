"""What each path of a node's server answers."""

import time
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from typing import Protocol

import msgspec

from podgpu.errors import UserError
from podgpu.model import Snapshot, of_one
from podgpu.serve.guard.guard import Hosts, peer_address
from podgpu.serve.http.request import Request
from podgpu.serve.http.response import TEXT, Response, busy_response, text_response
from podgpu.serve.pages import HTML, NodePages, RenderedPage, asked, compressed, form_of
from podgpu.serve.request_handler import Load, Route
from podgpu.views.dialects import PREFIX, UnreadableError
from podgpu.views.exposition import gzip_accepted
from podgpu.views.facts import FactsQuery, facts_document
from podgpu.views.json import ROW_KINDS
from podgpu.views.page import POLICY, html
from podgpu.views.rows_file import ROW_FORMS, RowsQuery

JSON = "application/json"
RELEASE_SECONDS = 300
MAX_RELEASE_SECONDS = 3600

# The paths of an address for probes and scrapes.
PROBED = ("/healthz", "/-/healthy", "/-/ready", "/metrics")


class NodeFeed(Protocol):
    """What the server needs of the agent."""

    @property
    def ready(self) -> bool:
        """Whether the first attempt to read the node is over, whatever it found."""

    @property
    def snapshot(self) -> Snapshot:
        """The newest one published: the same object until there is a newer one."""

    async def changed(self, seen: Snapshot) -> Snapshot:
        """Wait until a snapshot newer than `seen` is published, and return it."""

    async def release(self, seconds: float) -> bool:
        """Release the driver for that long. True when the sampler has exited."""


class NodeRoutes:
    def __init__(self, feed: NodeFeed, pages: NodePages, load: Load, hosts: Hosts | None = None) -> None:
        self._feed = feed
        self._pages = pages
        self._load = load
        self._hosts = hosts or Hosts()

    def table(self, dialect: str) -> Mapping[str, Route]:
        """List the paths of an address whose `/metrics` speaks the dialect."""
        return {
            **self.pages(dialect),
            "/": Route(self._status),
            "/health": Route(_health_of_dcgm, vital=True, open=True),
            **probes(self._load, lambda: self._feed.ready, "the node has not been read yet"),
            "/-/release": Route(self._release, ("POST",), vital=True),
        }

    def pages(self, dialect: str) -> Mapping[str, Route]:
        """List the pages about the node, which any application can serve."""
        registry = self._pages.registry
        dialects = {path: Route(partial(self._metrics, path)) for path in registry.pages}
        # A document answers no HEAD, and says so in these words, as the systems do whose documents they are.
        dialects |= {
            path: Route(partial(self._document, path), ("GET",), refused="method not allowed")
            for path in registry.documents
        }
        return {
            **dialects,
            "/metrics": dialects[PREFIX + dialect],
            "/api/v1/snapshot": Route(self._snapshot),
            "/api/v1/rows": Route(self._rows),
            "/api/v1/facts": Route(self._facts),
        }

    def _metrics(self, path: str, request: Request) -> Response:
        began = time.monotonic()
        response = self._metrics_page(path, request)
        if request.method == "GET":
            self._pages.count(path, len(response.body), time.monotonic() - began)
        return response

    def _metrics_page(self, path: str, request: Request) -> Response:
        snapshot, form = self._feed.snapshot, form_of(path, request.headers.get("accept"))
        if (wanted := asked(request)) is not None:
            return fresh_response(self._pages.some(snapshot, path, wanted, form), form.value, request)
        return page_response(self._pages.metrics(snapshot, path, form, gzipped=wants_gzip(request)), request)

    def _document(self, path: str, request: Request) -> Response:
        snapshot, gzipped = self._feed.snapshot, wants_gzip(request)
        try:
            page = self._pages.document(snapshot, path, request.query, gzipped=gzipped)
        except UnreadableError:
            return text_response(500, "internal server error")
        return page_response(page, request)

    def _status(self, request: Request) -> Response:
        snapshot = self._feed.snapshot
        age = max(0, int(time.time() - snapshot.taken_at))
        if gpu := request.query.get("gpu"):
            return under_policy(fresh_response(html(snapshot, age, gpu), HTML, request))
        return under_policy(page_response(self._pages.html(snapshot, age, gzipped=wants_gzip(request)), request))

    def _snapshot(self, request: Request) -> Response:
        form = request.query.get("form", "full")
        if form not in ("full", "slim"):
            raise UserError("form must be full or slim")
        page = self._pages.json(self._feed.snapshot, slim=form == "slim", gzipped=wants_gzip(request))
        return page_response(page, request)

    def _rows(self, request: Request) -> Response:
        page = self._pages.rows(self._feed.snapshot, rows_query(request), gzipped=wants_gzip(request))
        return page_response(page, request)

    def _facts(self, request: Request) -> Response:
        return fresh_response(facts_document(of_one(self._feed.snapshot), facts_query(request)), JSON, request)

    async def _release(self, request: Request) -> Response:
        if not (_from_this_machine(request) and self._hosts.may_change(request.headers)):
            return text_response(403, "only a program on this node may release the driver; use 127.0.0.1")
        seconds = whole_number("seconds", request.query.get("seconds", str(RELEASE_SECONDS)), MAX_RELEASE_SECONDS)
        released = await self._feed.release(seconds)
        outcome = msgspec.json.encode({"released": released, "seconds": seconds}) + b"\n"
        return Response(200 if released else 503, outcome, "application/json")


def probes(load: Load, is_ready: Callable[[], bool], not_ready: str) -> Mapping[str, Route]:
    def ready(_request: Request) -> Response:
        if load.stopping:
            return busy_response("stopping")
        return text_response(200, "ready") if is_ready() else busy_response(not_ready)

    return {
        # The answer of zxporter.
        "/healthz": Route(lambda _: text_response(200, "OK"), vital=True, open=True),
        "/-/healthy": Route(lambda _: text_response(200, "healthy"), vital=True, open=True),
        "/-/ready": Route(ready, vital=True, open=True),
    }


def page_response(page: RenderedPage, request: Request, headers: Mapping[str, str] | None = None) -> Response:
    """Send the page, unless the client has these very bytes."""
    headers = {"ETag": page.etag, **(headers or {})}
    if page.gzipped:
        headers["Content-Encoding"] = "gzip"
    held = request.headers.get("if-none-match", "")
    if any(tag.strip().removeprefix("W/") in (page.etag, "*") for tag in held.split(",")):
        return Response(304, b"", page.content_type, headers)
    return Response(200, page.body, page.content_type, headers, page.more)


def fresh_response(
    body: bytes, content_type: str, request: Request, headers: Mapping[str, str] | None = None
) -> Response:
    """Send what was made for this request alone."""
    plain = RenderedPage(body, content_type)
    return page_response(compressed(plain) if wants_gzip(request) else plain, request, headers)


def rows_query(request: Request) -> RowsQuery:
    """Return which rows are asked for, and in which form. Raises UserError if there are no such rows."""
    by, form = request.query.get("by", "pods"), request.query.get("format", ROW_FORMS[0])
    if by not in ROW_KINDS:
        raise UserError(f"write /api/v1/rows?by= with one of: {', '.join(ROW_KINDS)}")
    if form not in ROW_FORMS:
        raise UserError(f"{form!r} is no format of rows; write format= with one of: {', '.join(ROW_FORMS)}")
    return RowsQuery(by, form)


def facts_query(request: Request) -> FactsQuery:
    """Return whose facts are asked for. Raises UserError unless it is one pod, one GPU or one node."""
    names = {name: request.query[name] for name in ("pod", "gpu", "node") if request.query.get(name)}
    if len(names) != 1:
        raise UserError("write /api/v1/facts with one of: ?pod=NAMESPACE/POD, ?gpu=UUID, ?node=NAME")
    return FactsQuery(**names)


def wants_gzip(request: Request) -> bool:
    return gzip_accepted(request.headers.get("accept-encoding"))


def under_policy(response: Response) -> Response:
    """Let the page load its own files, and nothing else."""
    return replace(response, headers={**response.headers, "Content-Security-Policy": POLICY})


def whole_number(name: str, text: str, most: int) -> int:
    """Return a number from 1 to `most`. Raises UserError with the name of the parameter."""
    is_number = text.isascii() and text.isdigit() and len(text) <= len(str(most))
    if not is_number or not 1 <= int(text) <= most:
        raise UserError(f"{name} must be a whole number from 1 to {most}")
    return int(text)


def _health_of_dcgm(_request: Request) -> Response:
    """Answer as dcgm-exporter does: a manifest may still have its probes."""
    return Response(200, b"OK", TEXT, {"X-Registry-Available": "true"})


def _from_this_machine(request: Request) -> bool:
    if "x-forwarded-for" in request.headers:  # a proxy here passed it on
        return False
    peer = peer_address(request.remote)
    return peer is not None and peer.is_loopback
