"""A cluster's rows, made when they are asked for: once for all who wait, and one computation of a kind at a time."""

import asyncio
import gzip
import time
import weakref
from collections.abc import Callable
from dataclasses import dataclass

from podgpu.model import Cluster
from podgpu.serve.pages import Page
from podgpu.supervise import brief
from podgpu.views import rows

_FASTEST = 1


@dataclass(frozen=True, slots=True)
class _Made:
    cluster: "weakref.ref[Cluster]"  # an old cluster must not stay in memory for its rows
    begun_at: float
    plain: Page
    packed: Page


class ClusterRows:
    def __init__(self, newest: Callable[[], Cluster]) -> None:
        self._newest = newest
        self._made: dict[str, _Made] = {}
        self._making: dict[str, asyncio.Task[None]] = {}

    async def page(self, by: str, *, gzipped: bool) -> Page:
        """Return rows of the newest cluster, or at least of one that was the newest after they were asked for."""
        asked_at = time.monotonic()
        while (made := self._fitting(by, asked_at)) is None:
            if by not in self._making:
                task = self._making[by] = brief(self._make(by))
                task.add_done_callback(lambda _: self._making.pop(by))
            # Others wait for it too, so it goes on when one of them leaves.
            await asyncio.shield(self._making[by])
        return made.packed if gzipped else made.plain

    def _fitting(self, by: str, asked_at: float) -> _Made | None:
        made = self._made.get(by)
        if made is None or (made.cluster() is not self._newest() and made.begun_at < asked_at):
            return None
        return made

    async def _make(self, by: str) -> None:
        cluster, begun_at = self._newest(), time.monotonic()
        # Of a thousand nodes this takes a while, and other requests must not wait for it.
        plain, packed = await asyncio.to_thread(_pages, cluster, by)
        self._made[by] = _Made(weakref.ref(cluster), begun_at, plain, packed)


def _pages(cluster: Cluster, by: str) -> tuple[Page, Page]:
    body = rows.document(cluster, by)
    packed = gzip.compress(body, _FASTEST, mtime=0)
    return Page(body, "application/json"), Page(packed, "application/json", gzipped=True)
