"""The kinds of page that a cluster has, each made of the nodes' parts."""

import asyncio
import zlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

from podgpu.model import Cluster, ClusterNode
from podgpu.serve.cluster.shelf import Piece, Shelf, gzip
from podgpu.views.cluster import part
from podgpu.views.cluster.part import Part
from podgpu.views.exposition import Format

_GZIP_CONTAINER = 16 + zlib.MAX_WBITS
_FASTEST = 1


class Made(Protocol):
    """A page of one cluster, ready but for its form."""

    async def body(self, form: Format, *, gzipped: bool) -> Sequence[bytes]: ...


class View(Protocol):
    def content_type(self, form: Format) -> str: ...

    async def make(self, cluster: Cluster) -> Made: ...


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

    def content_type(self, _form: Format) -> str:
        return self._content_type

    async def entries(self, cluster: Cluster) -> list[Piece]:
        """Return each node's entry, with the separator before it."""
        return await self._shelf.all(cluster.nodes)

    async def make(self, cluster: Cluster) -> "MadeList":
        entries = [one for one in await self.entries(cluster) if one.plain]
        if not entries and self._empty is not None:
            return MadeList([Piece(self._empty)])
        if entries:  # the first has nothing before it
            entries[0] = Piece(entries[0].plain.removeprefix(self._separator))
        before, after = self._frame(cluster)
        return MadeList([Piece(before), *entries, Piece(after)])


@dataclass(frozen=True, slots=True)
class MadeList:
    pieces: Sequence[Piece]

    async def body(self, _form: Format, *, gzipped: bool) -> Sequence[bytes]:
        return await gzip(self.pieces) if gzipped else [one.plain for one in self.pieces]


class MetricsView:
    """A page of metrics. `whole` gives what is about the cluster itself."""

    def __init__(self, of_node: Callable[[ClusterNode], Part], whole: Callable[[Cluster], Part]) -> None:
        self._shelf = Shelf(of_node)
        self._whole = whole

    def content_type(self, form: Format) -> str:
        return form.value

    async def make(self, cluster: Cluster) -> "MadeMetrics":
        return MadeMetrics([self._whole(cluster), *await self._shelf.all(cluster.nodes)])


@dataclass(frozen=True, slots=True)
class MadeMetrics:
    parts: Sequence[Part]

    async def body(self, form: Format, *, gzipped: bool) -> Sequence[bytes]:
        plain = part.join(self.parts, form)
        return [await asyncio.to_thread(_gzip, plain)] if gzipped else [plain]


def _piece(entry: bytes, separator: bytes) -> Piece:
    return Piece(separator + entry if entry else b"")


def _gzip(plain: bytes) -> bytes:
    packer = zlib.compressobj(_FASTEST, zlib.DEFLATED, _GZIP_CONTAINER)
    return packer.compress(plain) + packer.flush()
