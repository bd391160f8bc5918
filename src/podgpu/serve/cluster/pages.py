"""The pages of a cluster. Those that are asked for are made anew whenever the cluster changes."""

import asyncio
import secrets
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from podgpu.model import Cluster
from podgpu.serve.cluster.feed import ClusterFeed
from podgpu.serve.cluster.views import Made, View
from podgpu.views.exposition import Format

WANTED_SECONDS = 300.0  # for so long after a request a page is kept ready


class _Form(NamedTuple):
    form: Format
    gzipped: bool


@dataclass(frozen=True, slots=True)
class ClusterPage:
    pieces: Sequence[bytes]
    content_type: str
    etag: str
    gzipped: bool


@dataclass(slots=True)
class _Ready:
    """A page of one cluster, in those forms that were asked for."""

    cluster: Cluster
    made: Made
    number: int
    bodies: dict[_Form, Sequence[bytes]] = field(default_factory=dict)


class ClusterPages:
    def __init__(self, feed: ClusterFeed, views: Mapping[str, View]) -> None:
        self._feed = feed
        self._views = views
        self._ready: dict[str, _Ready] = {}
        self._wanted: dict[tuple[str, _Form], float] = {}
        self._making = asyncio.Lock()
        self._made_so_far = 0
        self._mark = secrets.token_hex(4)  # another process has other ETags

    async def run(self) -> None:
        """Keep the wanted pages ready until cancelled."""
        seen = self._feed.cluster
        while True:
            await self.prepare()
            seen = await self._feed.changed(seen)

    async def prepare(self) -> None:
        """Make the wanted pages of the newest cluster, and forget the others."""
        now = time.monotonic()
        self._wanted = {key: at for key, at in self._wanted.items() if now - at < WANTED_SECONDS}
        forms: dict[str, list[_Form]] = {}
        for path, form in self._wanted:
            forms.setdefault(path, []).append(form)
        async with self._making:
            self._ready = {path: one for path, one in self._ready.items() if path in forms}
            for path, asked in forms.items():
                await self._renew(path, asked)

    async def page(self, path: str, form: Format, *, gzipped: bool) -> ClusterPage:
        """Return the page as it was last made; only the first request for it has to wait."""
        shape = _Form(form, gzipped)
        self._wanted[path, shape] = time.monotonic()
        if path not in self._ready or shape not in self._ready[path].bodies:
            async with self._making:
                await self._renew(path, [shape])
        ready = self._ready[path]
        etag = f'"{self._mark}-{ready.number}{"-gzip" if gzipped else ""}"'
        return ClusterPage(ready.bodies[shape], self._views[path].content_type(form), etag, gzipped=gzipped)

    async def once(self, view: View, form: Format, *, gzipped: bool) -> ClusterPage:
        """Make a page for one request alone."""
        self._made_so_far += 1
        number = self._made_so_far
        made = await view.make(self._feed.cluster)
        body = await made.body(form, gzipped=gzipped)
        return ClusterPage(body, view.content_type(form), f'"{self._mark}-{number}"', gzipped=gzipped)

    async def _renew(self, path: str, shapes: Sequence[_Form]) -> None:
        cluster, ready = self._feed.cluster, self._ready.get(path)
        if ready is None or ready.cluster is not cluster:
            self._made_so_far += 1
            ready = _Ready(cluster, await self._views[path].make(cluster), self._made_so_far)
        for shape in shapes:
            if shape not in ready.bodies:
                ready.bodies[shape] = await ready.made.body(shape.form, gzipped=shape.gzipped)
        self._ready[path] = ready
