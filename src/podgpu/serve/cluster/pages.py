"""The pages of a cluster. Those that are asked for are kept ready: a change of a node renders that node."""

import asyncio
import secrets
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import NamedTuple
from weakref import ReferenceType, ref

from podgpu.model import Cluster
from podgpu.serve.cluster.feed import ClusterFeed
from podgpu.serve.cluster.views import MetricsView, View
from podgpu.views.exposition import Format
from podgpu.views.series_filter import FamilyQuery

STALE_INTERVALS = 3  # what is older is not served
WANTED_SECONDS = 300.0  # for so long after a request a page is kept ready


class _Form(NamedTuple):
    form: Format
    gzipped: bool


class _Made(NamedTuple):
    """Of which cluster a page was last made, when, and how long that took."""

    cluster: ReferenceType[Cluster]
    at: float
    seconds: float


@dataclass(frozen=True, slots=True)
class ClusterPage:
    pieces: Sequence[bytes]
    content_type: str
    etag: str
    gzipped: bool


class Stale(Exception):
    """What is there is too old to be shown. The text says why."""


class ClusterPages:
    def __init__(self, feed: ClusterFeed, views: Mapping[str, View]) -> None:
        self._feed = feed
        self._views = views
        self._wanted: dict[str, dict[_Form, float]] = {}
        self._ready: dict[str, _Made] = {}
        self._joined: dict[tuple[str, _Form], tuple[int, ClusterPage]] = {}
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
        """Render what has changed, for the pages that were asked for of late."""
        self._forget()
        failures: list[Exception] = []
        async with self._rendering:
            for path, forms in list(self._wanted.items()):
                try:
                    await self._update(path, packing=any(form.gzipped for form in forms))
                except Exception as error:  # the other pages do not wait for this one
                    failures.append(error)
        if failures:
            raise failures[0]

    async def page(self, path: str, form: Format, *, gzipped: bool) -> ClusterPage:
        """Join the page from what is ready; only the first request for it has to wait. Raises Stale."""
        shape, view = _Form(form, gzipped), self._views[path]
        await self._make_ready(path, shape)
        version, page = self._joined.get((path, shape), (-1, None))
        if page is None or version != view.version:
            version = view.version
            page = await self._page(view, shape, version)
            self._joined[path, shape] = version, page
        return page

    async def some(
        self, path: str, view: MetricsView, asked: FamilyQuery, form: Format, *, gzipped: bool
    ) -> ClusterPage:
        """Join a part of the page for one request alone. Raises Stale."""
        shape = _Form(form, gzipped)
        await self._make_ready(path, shape)
        body = await view.some(asked, form, gzipped=gzipped)
        return self._named(body, view, shape, secrets.randbits(32))

    async def once(self, view: View, form: Format, *, gzipped: bool) -> ClusterPage:
        """Make a page for one request alone. Raises Stale."""
        self._check_feed()
        await view.update(self._feed.cluster, packing=False)
        return await self._page(view, _Form(form, gzipped), secrets.randbits(32))

    async def _page(self, view: View, shape: _Form, version: int) -> ClusterPage:
        body = await view.body(shape.form, gzipped=shape.gzipped)
        return self._named(body, view, shape, version)

    def _named(self, body: Sequence[bytes], view: View, shape: _Form, version: int) -> ClusterPage:
        etag = f'"{self._mark}-{version}{"-gzip" if shape.gzipped else ""}"'
        return ClusterPage(body, view.content_type(shape.form), etag, gzipped=shape.gzipped)

    async def _make_ready(self, path: str, shape: _Form) -> None:
        self._wanted.setdefault(path, {})[shape] = time.monotonic()
        self._check_feed()
        if path not in self._ready:
            async with self._rendering:
                await self._update(path, packing=shape.gzipped)
        made = self._ready[path]
        age = time.monotonic() - made.at
        if age > STALE_INTERVALS * max(self._feed.interval, made.seconds):
            raise Stale(f"this page could not be made for {age:.0f} s; look at the log of podgpu cluster")

    def _check_feed(self) -> None:
        behind = self._feed.seconds_behind
        if self._feed.ready and behind > STALE_INTERVALS * self._feed.interval:
            raise Stale(f"the nodes were not looked at for {behind:.0f} s; look at the log of podgpu cluster")

    async def _update(self, path: str, *, packing: bool) -> None:
        began, cluster, made = time.monotonic(), self._feed.cluster, self._ready.get(path)
        if made is None or made.cluster() is not cluster:
            # What was joined would keep the old parts in memory.
            for key in [key for key in self._joined if key[0] == path]:
                del self._joined[key]
            await self._views[path].update(cluster, packing=packing)
            made = _Made(ref(cluster), began, time.monotonic() - began)
        self._ready[path] = made._replace(at=time.monotonic())

    def _forget(self) -> None:
        """Keep no page ready that nobody has asked for in a while."""
        since = time.monotonic() - WANTED_SECONDS
        for path, forms in list(self._wanted.items()):
            for shape in [shape for shape, at in forms.items() if at < since]:
                del forms[shape]
            if not forms:
                del self._wanted[path]
                self._ready.pop(path, None)
                self._views[path].forget()
