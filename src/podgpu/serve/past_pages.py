"""Pages of the past: each is made once for all who ask for it, part by part and one at a time, and is kept compressed.

A page of a thousand nodes takes seconds and is large, and each reader may ask for another moment. So few wait in line,
and what is kept and what is being sent have a limit together. Whoever comes on top is asked to come again.
"""

import asyncio
import zlib
from collections.abc import Awaitable, Callable, Hashable, Iterable, Iterator, Sequence
from inspect import isawaitable
from typing import overload
from weakref import WeakSet

from podgpu.serve.pages import deflated, gzip_around, inflated
from podgpu.supervise import SingleFlight

MOST_WAITING = 4  # different pages
MOST_BYTES = 24 << 20  # of pages, compressed; and one page more
PIECE_BYTES = 256 << 10  # of a page, compressed at a time


class LineIsFullError(Exception):
    """Too many others wait. The text says so to the client."""


class PackedPage:
    """A page in compressed pieces, each of which can be unpacked by itself."""

    def __init__(self, parts: Iterable[bytes]) -> None:
        self._pieces: list[bytes] = []
        self.size = 0  # unpacked
        self.checksum = 0
        for piece in _pieces(parts):
            self._pieces.append(deflated(piece))
            self.size += len(piece)
            self.checksum = zlib.crc32(piece, self.checksum)
        self.packed_bytes = sum(map(len, self._pieces))

    def gzipped(self) -> Sequence[bytes]:
        return gzip_around(self._pieces, self.checksum, self.size)

    def plain(self) -> Sequence[bytes]:
        """Return pieces that are unpacked one by one, as they are sent."""
        return _UnpackedPieces(self)

    def __len__(self) -> int:
        return len(self._pieces)

    def unpacked(self, number: int) -> bytes:
        return inflated(self._pieces[number])


class _UnpackedPieces(Sequence[bytes]):
    def __init__(self, page: PackedPage) -> None:
        self._page = page

    def __len__(self) -> int:
        return len(self._page)

    @overload
    def __getitem__(self, number: int) -> bytes: ...
    @overload
    def __getitem__(self, number: slice) -> Sequence[bytes]: ...
    def __getitem__(self, number: int | slice) -> bytes | Sequence[bytes]:
        if isinstance(number, slice):
            return [self._page.unpacked(each) for each in range(*number.indices(len(self)))]
        return self._page.unpacked(number)


def _pieces(parts: Iterable[bytes]) -> Iterator[bytes]:
    for part in parts:
        for at in range(0, len(part), PIECE_BYTES):
            yield part[at : at + PIECE_BYTES]


Maker = Callable[[], PackedPage]
# Called when it is the page's turn. Returns what makes the page, to be run in a thread; None if there is no such page.
Beginning = Callable[[], Maker | Awaitable[Maker | None] | None]


class PastPages:
    """`most_bytes` is the limit for the pages that are kept, and for those that clients are still reading."""

    def __init__(self, most_bytes: int = MOST_BYTES) -> None:
        self._most_bytes = most_bytes
        self._kept: dict[Hashable, PackedPage] = {}
        self._alive: WeakSet[PackedPage] = WeakSet()
        self._making: SingleFlight[PackedPage | None] = SingleFlight()
        self._turn = asyncio.Lock()

    @property
    def packed_bytes(self) -> int:
        """Of all pages that are in memory."""
        return sum(page.packed_bytes for page in self._alive)

    async def page(self, key: Hashable, begin: Beginning) -> PackedPage | None:
        """Return the page; None if there is no such page any more. Raises LineIsFullError."""
        if page := self._kept.pop(key, None):
            self._kept[key] = page  # used last
            return page
        if key not in self._making.keys and len(self._making.keys) >= MOST_WAITING:
            raise LineIsFullError("other moments of the past are being read; try again in a while")
        return await self._making.result(key, lambda: self._make(key, begin))

    def close(self) -> None:
        self._making.close()

    async def _make(self, key: Hashable, begin: Beginning) -> PackedPage | None:
        async with self._turn:
            self._make_room()
            begun = begin()
            make = await begun if isawaitable(begun) else begun
            if make is None:
                return None
            page = await asyncio.to_thread(make)
            self._alive.add(page)
            self._kept[key] = page
            return page

    def _make_room(self) -> None:
        while self._kept and self.packed_bytes >= self._most_bytes:
            del self._kept[next(iter(self._kept))]
        if self.packed_bytes >= self._most_bytes:
            raise LineIsFullError("others have not yet read their moments of the past; try again in a minute")
