"""The kinds of page that a cluster has, each made of the nodes' parts."""

import asyncio
from collections.abc import Callable, Sequence
from gzip import compress
from typing import Protocol

from podgpu.model import Cluster, ClusterNode
from podgpu.serve.cluster.shelf import Pace, Shelf
from podgpu.serve.events.piece import Piece, gzip_stream
from podgpu.views.cluster import metrics
from podgpu.views.cluster.metrics import RenderedFamilies
from podgpu.views.exposition import Format
from podgpu.views.series_filter import FamilyQuery

_FASTEST = 1


class View(Protocol):
    """A page. It is made node by node, and can be read at any time in between."""

    @property
    def version(self) -> int:
        """Grows with every change."""

    def content_type(self, form: Format) -> str: ...

    async def update(self, cluster: Cluster, *, packing: bool) -> None:
        """Render what has changed; with `packing`, make it ready to be sent compressed."""

    async def body(self, form: Format, *, gzipped: bool) -> Sequence[bytes]:
        """Join what is there."""

    def forget(self) -> None:
        """Keep nothing: nobody asks for it any more."""


class ListView:
    """A document with an entry for each node. `frame` returns what stands before the entries, and after them."""

    def __init__(
        self,
        entry: Callable[[ClusterNode], bytes],
        frame: Callable[[Cluster], tuple[bytes, bytes]],
        *,
        separator: bytes,
        content_type: str,
        empty: bytes | None = None,
    ) -> None:
        """`empty` is the whole document where there is no entry, if that is not just the frame."""
        self._frame = frame
        self._separator = separator
        self._content_type = content_type
        self._empty = empty
        self._shelf = Shelf(lambda node: _piece(entry(node), separator))
        self._around = (b"", b"")
        self._frames = 0

    @property
    def version(self) -> int:
        return self._shelf.version + self._frames

    def content_type(self, _form: Format) -> str:
        return self._content_type

    async def update(self, cluster: Cluster, *, packing: bool) -> None:
        await self._shelf.update(cluster.nodes)
        if packing:
            await self._pack()
        around = self._frame(cluster)
        if around != self._around:
            self._around = around
            self._frames += 1

    async def body(self, _form: Format, *, gzipped: bool) -> Sequence[bytes]:
        if gzipped:
            await self._pack()
        pieces = self._pieces()
        return gzip_stream(pieces) if gzipped else [one.plain for one in pieces]

    def forget(self) -> None:
        self._shelf.clear()

    async def _pack(self) -> None:
        pace = Pace()
        for one in self._shelf.made:
            _ = one.packed
            await pace.breathe()

    def _pieces(self) -> list[Piece]:
        entries = [one for one in self._shelf.made if one.plain]
        if not entries and self._empty is not None:
            return [Piece(self._empty)]
        if entries:  # the first has nothing before it
            entries[0] = Piece(entries[0].plain.removeprefix(self._separator))
        before, after = self._around
        return [Piece(before), *entries, Piece(after)]


class MetricsView:
    """A page of metrics. `whole` gives what is about the cluster itself."""

    def __init__(
        self, of_node: Callable[[ClusterNode], RenderedFamilies], whole: Callable[[Cluster], RenderedFamilies]
    ) -> None:
        self._shelf = Shelf(of_node)
        self._make_whole = whole
        self._whole = RenderedFamilies()
        self._wholes = 0

    @property
    def version(self) -> int:
        return self._shelf.version + self._wholes

    def content_type(self, form: Format) -> str:
        return form.value

    async def update(self, cluster: Cluster, *, packing: bool) -> None:
        await self._shelf.update(cluster.nodes)
        self._whole = self._make_whole(cluster)
        self._wholes += 1

    async def body(self, form: Format, *, gzipped: bool) -> Sequence[bytes]:
        return await self.some(None, form, gzipped=gzipped)

    async def some(self, asked: FamilyQuery | None, form: Format, *, gzipped: bool) -> Sequence[bytes]:
        """Join what a client asks for."""
        plain = metrics.join([self._whole, *self._shelf.made], form, asked)
        return [await asyncio.to_thread(_gzip, plain)] if gzipped else [plain]

    def forget(self) -> None:
        self._shelf.clear()


def _piece(entry: bytes, separator: bytes) -> Piece:
    return Piece(separator + entry if entry else b"")


def _gzip(plain: bytes) -> bytes:
    return compress(plain, _FASTEST, mtime=0)
