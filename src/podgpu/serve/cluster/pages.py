"""The pages of a cluster. Pages that are in demand are kept ready: when a node changes, that node is rendered."""

import asyncio
import secrets
import time
import weakref
from collections.abc import Callable, Coroutine, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

from podgpu.model import Cluster, Snapshot, Statement
from podgpu.model.fit import FitStatement
from podgpu.serve.cluster.views import ClusterMetricsView, ClusterView
from podgpu.serve.pages import RenderedPage, compressed
from podgpu.supervise import SingleFlight
from podgpu.views.exposition import Format
from podgpu.views.rows_file import RowsQuery, rows_written
from podgpu.views.series import FamilyQuery

STALE_INTERVALS = 3  # what is older is not served
WANTED_SECONDS = 300.0  # how long a page is kept ready after a request


class ClusterFeed(Protocol):
    ready: bool  # whether the first round is over, whatever it found
    interval: float  # seconds between two readings of a node

    @property
    def cluster(self) -> Cluster:
        """The newest one published: the same object until there is a newer one."""

    @property
    def seconds_behind(self) -> float:
        """Seconds since the states of the nodes were last updated."""

    async def full(self, name: str) -> Snapshot:
        """Fetch a node's snapshot with everything in it. Raises UserError."""

    async def changed(self, seen: Cluster) -> Cluster:
        """Wait until a cluster newer than `seen` is published, and return it."""


class UsageHistory(Protocol):
    async def of(self, namespace: str, pod: str, seconds: int) -> Mapping[str, Sequence[tuple[float, float]]]:
        """Fetch a pod's use in the last `seconds`: pairs of time and value by quantity. Raises UserError."""


# Makes the bill that a query asks for, as of a time, and returns it with the request that would make it again. Raises
# UserError if the query is wrong, and ReasonedError if the store has no answer.
BillMaker = Callable[[Mapping[str, str], float], Coroutine[Any, Any, tuple[Statement, Mapping[str, Any]]]]
# Advises by the last two weeks before a time. Raises UserError, and ReasonedError if the store has no answer.
FitMaker = Callable[[float], Coroutine[Any, Any, FitStatement]]


class _Encoding(NamedTuple):
    form: Format
    gzipped: bool


class _LastRender(NamedTuple):
    """The cluster that a page was last made of, when, and how long that took."""

    cluster: weakref.ReferenceType[Cluster]
    at: float
    seconds: float


class StalePage(Exception):
    """The page is too old to be shown. The text says why."""


class ClusterPages:
    def __init__(self, feed: ClusterFeed, views: Mapping[str, ClusterView[Any]]) -> None:
        self._feed = feed
        self._views = views
        self._wanted: dict[str, dict[_Encoding, float]] = {}
        self._ready: dict[str, _LastRender] = {}
        self._joined: dict[tuple[str, _Encoding], tuple[int, RenderedPage]] = {}
        self._rendering = asyncio.Lock()
        self._mark = secrets.token_hex(4)  # another process has other ETags

    async def run(self) -> None:
        """Keep the wanted pages ready until cancelled."""
        while True:
            seen = self._feed.cluster
            await self.prepare()
            with suppress(TimeoutError):
                async with asyncio.timeout(self._feed.interval):
                    await self._feed.changed(seen)

    async def prepare(self) -> None:
        """Render what has changed, for the pages that were requested recently."""
        self._forget()
        failures: list[Exception] = []
        async with self._rendering:
            for path, forms in list(self._wanted.items()):
                try:
                    await self._update(path, packing=any(form.gzipped for form in forms))
                except Exception as error:  # the other pages are rendered all the same
                    failures.append(error)
        if failures:
            raise failures[0]

    async def page(self, path: str, form: Format, *, gzipped: bool) -> RenderedPage:
        """Return the page, joined from what is ready. Only the first request for it waits. Raises StalePage."""
        encoding, view = _Encoding(form, gzipped), self._views[path]
        await self._make_ready(path, encoding)
        version, page = self._joined.get((path, encoding), (-1, None))
        if page is None or version != view.version:
            version = view.version
            body = await view.body(form, gzipped=gzipped)
            mark = f"{self._mark}-{version}{'-gzip' if gzipped else ''}"
            page = RenderedPage(b"", view.content_type or form.value, gzipped, body, mark)
            self._joined[path, encoding] = version, page
        return page

    async def some(
        self, path: str, view: ClusterMetricsView, asked: FamilyQuery, form: Format, *, gzipped: bool
    ) -> RenderedPage:
        """Join a part of the page for one request alone. Raises StalePage."""
        await self._make_ready(path, _Encoding(form, gzipped))
        return RenderedPage(b"".join(await view.some(asked, form, gzipped=gzipped)), form.value, gzipped)

    async def once(self, view: ClusterView[Any], form: Format, *, gzipped: bool) -> RenderedPage:
        """Make a page for one request alone. Raises StalePage."""
        self._check_feed()
        await view.update(self._feed.cluster, packing=False)
        body = b"".join(await view.body(form, gzipped=gzipped))
        return RenderedPage(body, view.content_type or form.value, gzipped)

    async def _make_ready(self, path: str, encoding: _Encoding) -> None:
        self._wanted.setdefault(path, {})[encoding] = time.monotonic()
        self._check_feed()
        if path not in self._ready:
            async with self._rendering:
                await self._update(path, packing=encoding.gzipped)
        last = self._ready[path]
        age = time.monotonic() - last.at
        if age > STALE_INTERVALS * max(self._feed.interval, last.seconds):
            raise StalePage(f"this page could not be rendered for {age:.0f} s; check the log of podgpu cluster")

    def _check_feed(self) -> None:
        behind = self._feed.seconds_behind
        if self._feed.ready and behind > STALE_INTERVALS * self._feed.interval:
            raise StalePage(f"the nodes were not read for {behind:.0f} s; check the log of podgpu cluster")

    async def _update(self, path: str, *, packing: bool) -> None:
        began, cluster, last = time.monotonic(), self._feed.cluster, self._ready.get(path)
        if last is None or last.cluster() is not cluster:
            # Joined pages would keep the old parts in memory.
            for key in [key for key in self._joined if key[0] == path]:
                del self._joined[key]
            await self._views[path].update(cluster, packing=packing)
            last = _LastRender(weakref.ref(cluster), began, time.monotonic() - began)
        self._ready[path] = last._replace(at=time.monotonic())

    def _forget(self) -> None:
        """Free the pages that were not asked for in a while."""
        since = time.monotonic() - WANTED_SECONDS
        for path, forms in list(self._wanted.items()):
            for encoding in [encoding for encoding, at in forms.items() if at < since]:
                del forms[encoding]
            if not forms:
                del self._wanted[path]
                self._ready.pop(path, None)
                self._views[path].forget()


@dataclass(frozen=True, slots=True)
class _RenderedRows:
    cluster: weakref.ReferenceType[Cluster]  # an old cluster must not stay in memory for its rows
    begun_at: float
    plain: RenderedPage
    gzipped: RenderedPage


class ClusterRows:
    """A cluster's rows, made on request: once for all requests that wait."""

    def __init__(self, newest: Callable[[], Cluster]) -> None:
        self._newest = newest
        self._rendered: dict[RowsQuery, _RenderedRows] = {}
        self._rendering: SingleFlight[None] = SingleFlight()

    async def page(self, query: RowsQuery, *, gzipped: bool) -> RenderedPage:
        """Return rows of the newest cluster, or of one that was the newest after this call."""
        asked_at = time.monotonic()
        while (rows := self._rendered.get(query)) is None or (
            rows.cluster() is not self._newest() and rows.begun_at < asked_at
        ):
            await self._rendering.result(query, lambda: self._render(query))
        return rows.gzipped if gzipped else rows.plain

    async def _render(self, query: RowsQuery) -> None:
        cluster, begun_at = self._newest(), time.monotonic()

        def render() -> _RenderedRows:
            plain = RenderedPage(rows_written(cluster, query), query.content_type)
            return _RenderedRows(weakref.ref(cluster), begun_at, plain, compressed(plain))

        # With a thousand nodes this takes a while, and other requests must not wait for it.
        self._rendered[query] = await asyncio.to_thread(render)
