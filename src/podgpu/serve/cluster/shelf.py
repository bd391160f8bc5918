"""What was rendered of each node, kept until the node changes."""

import asyncio
import time
import zlib
from collections.abc import Callable, Iterable, Sequence
from typing import Generic, TypeVar

from podgpu.model import ClusterNode

BREATH_SECONDS = 0.01  # after so much work, others get their turn
_FASTEST = 1
_RAW = -zlib.MAX_WBITS
_GZIP_HEAD = b"\x1f\x8b\x08\x00\x00\x00\x00\x00\x04\xff"
_LAST_BLOCK = b"\x03\x00"

T = TypeVar("T")


class Pace:
    """Lets others run now and then: a thousand nodes take seconds to render."""

    def __init__(self) -> None:
        self._began = time.monotonic()

    async def breathe(self) -> None:
        if time.monotonic() - self._began > BREATH_SECONDS:
            await asyncio.sleep(0)
            self._began = time.monotonic()


class Shelf(Generic[T]):
    """A node is the same object for as long as nothing about it changes."""

    def __init__(self, make: Callable[[ClusterNode], T]) -> None:
        self._make = make
        self._kept: dict[str, tuple[ClusterNode, T]] = {}

    async def all(self, nodes: Sequence[ClusterNode]) -> list[T]:
        pace, kept = Pace(), {}
        for node in nodes:
            before = self._kept.get(node.name)
            if before is not None and before[0] is node:
                kept[node.name] = before
            else:
                kept[node.name] = node, self._make(node)
                await pace.breathe()
        self._kept = kept
        return [made for _, made in kept.values()]


class Piece:
    """A piece of a page. Compressed, it can stand anywhere in a gzip stream."""

    __slots__ = ("_packed", "plain")

    def __init__(self, plain: bytes) -> None:
        self.plain = plain
        self._packed: bytes | None = None

    @property
    def packed(self) -> bytes:
        if self._packed is None:
            packer = zlib.compressobj(_FASTEST, zlib.DEFLATED, _RAW)
            self._packed = packer.compress(self.plain) + packer.flush(zlib.Z_SYNC_FLUSH)
        return self._packed


async def gzip(pieces: Iterable[Piece]) -> tuple[bytes, ...]:
    """Make one gzip stream of the pieces: those that were packed before only add to the checksum."""
    stream, checksum, size, pace = [_GZIP_HEAD], 0, 0, Pace()
    for one in pieces:
        stream.append(one.packed)
        checksum = zlib.crc32(one.plain, checksum)
        size += len(one.plain)
        await pace.breathe()
    end = checksum.to_bytes(4, "little") + (size & 0xFFFFFFFF).to_bytes(4, "little")
    return (*stream, _LAST_BLOCK + end)
