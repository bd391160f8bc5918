"""Reads the file of a recording. Each frame is complete, so a file that ends within a frame can be read."""

import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO, NamedTuple

from podgpu.errors import UserError
from podgpu.model.frames import HEAD, MAGIC, checksum

# A document is mostly repeated names. What unpacks to more than this was made to fill the memory.
LARGEST_BYTES = 192 * 2**20
LARGEST_RATIO = 200
LEAST_LARGEST = 2**20


class _FrameHead(NamedTuple):
    at: float
    offset: int
    size: int
    checksum: int


class Recording:
    """Finds the frames once, and reads each when it is asked for. What follows a damaged frame is left out."""

    def __init__(self, path: Path) -> None:
        self._path = path
        with self._opened() as file:
            self._frames = _frames(file, path.stat().st_size)
        if not self._frames:
            raise UserError(f"{path} is not a recording, or an empty one; make one with `podgpu record`")
        self.times = [frame.at for frame in self._frames]

    def document(self, number: int) -> bytes:
        """Return the document of a frame. Raises UserError if the file is damaged or gone."""
        frame = self._frames[number]
        with self._opened() as file:
            file.seek(frame.offset)
            packed = file.read(frame.size)
        unpack = zlib.decompressobj()
        try:
            if checksum(frame.at, packed) != frame.checksum:
                raise zlib.error
            document = unpack.decompress(packed, _largest(len(packed)))
        except zlib.error:
            document = b""
        if not document or unpack.unconsumed_tail:
            raise UserError(f"moment {number + 1} of {self._path} is damaged; record again")
        return document

    @contextmanager
    def _opened(self) -> Iterator[BinaryIO]:
        try:
            with self._path.open("rb") as file:
                yield file
        except OSError as error:
            raise UserError(f"cannot read {self._path}: {error.strerror}; give another --replay.file") from None


def _largest(packed: int) -> int:
    return min(max(LARGEST_RATIO * packed, LEAST_LARGEST), LARGEST_BYTES)


def _frames(file: BinaryIO, size: int) -> list[_FrameHead]:
    found: list[_FrameHead] = []
    if file.read(len(MAGIC)) != MAGIC:
        return found
    at_end = file.tell()
    while len(head := file.read(HEAD.size)) == HEAD.size:
        length, sum_, at = HEAD.unpack(head)
        offset = at_end + HEAD.size
        at_end = offset + length
        is_in_order = not found or at >= found[-1].at  # false also for a time that is no number
        if at_end > size or not is_in_order or not abs(at) < 1e11:
            break
        found.append(_FrameHead(at, offset, length, sum_))
        file.seek(at_end)
    return found
