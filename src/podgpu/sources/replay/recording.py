"""The file of a recording and its playback. Each frame is complete, so a file that ends within a frame can be read.

After one line that names the format, each frame has 16 bytes (its size, a checksum of the rest, and the time in
seconds since 1970) and the compressed document of a cluster. Numbers are big-endian.
"""

import struct
import time
import zlib
from bisect import bisect_right
from collections.abc import Callable
from pathlib import Path
from typing import BinaryIO, NamedTuple

from podgpu.errors import UserError

MAGIC = b"podgpu recording 1\n"
# A document is mostly repeated names. What unpacks to more than this was made to fill the memory.
LARGEST_BYTES = 192 * 2**20
LARGEST_RATIO = 200
LEAST_LARGEST = 2**20
_HEAD = struct.Struct(">IId")
_TIME = struct.Struct(">d")


class _FrameHead(NamedTuple):
    at: float
    offset: int
    size: int
    checksum: int


def frame(at: float, document: bytes) -> bytes:
    packed = zlib.compress(document, 6)
    checksum = zlib.crc32(packed, zlib.crc32(_TIME.pack(at)))
    return _HEAD.pack(len(packed), checksum, at) + packed


class Recording:
    """Finds the frames once, and reads each when it is asked for. What follows a damaged frame is left out."""

    def __init__(self, path: Path) -> None:
        self._path = path
        try:
            with path.open("rb") as file:
                self._frames = _frames(file, path.stat().st_size)
        except OSError as error:
            raise UserError(f"cannot read {path}: {error.strerror}; give another --replay.file") from None
        if not self._frames:
            raise UserError(f"{path} is not a recording, or an empty one; make one with `podgpu record`")
        self.times = [frame.at for frame in self._frames]

    def document(self, number: int) -> bytes:
        """Return the document of a frame. Raises UserError if the file is damaged."""
        frame = self._frames[number]
        with self._path.open("rb") as file:
            file.seek(frame.offset)
            packed = file.read(frame.size)
        unpack = zlib.decompressobj()
        try:
            if zlib.crc32(packed, zlib.crc32(_TIME.pack(frame.at))) != frame.checksum:
                raise zlib.error
            document = unpack.decompress(packed, _largest(len(packed)))
        except zlib.error:
            document = b""
        if not document or unpack.unconsumed_tail:
            raise UserError(f"{self._path} is damaged after {number} moments; record again")
        return document


def _largest(packed: int) -> int:
    return min(max(LARGEST_RATIO * packed, LEAST_LARGEST), LARGEST_BYTES)


def _frames(file: BinaryIO, size: int) -> list[_FrameHead]:
    found: list[_FrameHead] = []
    if file.read(len(MAGIC)) != MAGIC:
        return found
    at_end = file.tell()
    while len(head := file.read(_HEAD.size)) == _HEAD.size:
        length, checksum, at = _HEAD.unpack(head)
        offset = at_end + _HEAD.size
        at_end = offset + length
        is_in_order = not found or at >= found[-1].at  # false also for a time that is no number
        if at_end > size or not is_in_order or not abs(at) < 1e11:
            break
        found.append(_FrameHead(at, offset, length, checksum))
        file.seek(at_end)
    return found


SPEEDS = (0.1, 0.25, 0.5, 1.0, 2.0, 5.0, 10.0, 30.0, 60.0, 100.0, 300.0, 1000.0)


class Player:
    """Says which frame of a recording is due now. A pause or another speed continues from the current frame."""

    def __init__(
        self,
        recording: Recording,
        *,
        speed: float = 1.0,
        is_loop: bool = False,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.recording = recording
        self.speed = speed
        self.is_paused = False
        self._is_loop = is_loop
        self._clock = clock
        self._anchor = clock()
        self._passed = 0.0  # of the recording, at the anchor

    @property
    def times(self) -> list[float]:
        return self.recording.times

    @property
    def number(self) -> int:
        """Which frame is due."""
        times = self.recording.times
        return max(bisect_right(times, times[0] + self._position) - 1, 0)

    @property
    def is_over(self) -> bool:
        return not self._is_loop and self.number == len(self.recording.times) - 1

    @property
    def seconds_to_next(self) -> float:
        """How long until the next frame is due; infinite if it is paused or over."""
        times, number = self.recording.times, self.number
        if self.is_paused or self.is_over:
            return float("inf")
        due = times[number + 1] - times[0] if number + 1 < len(times) else self._length
        return max((due - self._position) / self.speed, 0.0)

    def document(self, number: int) -> bytes:
        return self.recording.document(number)

    def pause(self) -> None:
        """Pause, or resume."""
        self._rebase()
        self.is_paused = not self.is_paused

    def go_faster(self, steps: int) -> None:
        """Take the next higher or lower speed."""
        self._rebase()
        nearest = min(range(len(SPEEDS)), key=lambda place: abs(SPEEDS[place] - self.speed))
        self.speed = SPEEDS[min(max(nearest + steps, 0), len(SPEEDS) - 1)]

    def step(self, by: int) -> None:
        """Pause, and go so many frames forth, or back."""
        times = self.recording.times
        number = min(max(self.number + by, 0), len(times) - 1)
        self.is_paused = True
        self._passed = times[number] - times[0]
        self._anchor = self._clock()

    @property
    def _length(self) -> float:
        """The last frame stays as long as the one before it."""
        times = self.recording.times
        return times[-1] - times[0] + (times[-1] - times[-2] if len(times) > 1 else 1.0)

    @property
    def _position(self) -> float:
        since = 0.0 if self.is_paused else (self._clock() - self._anchor) * self.speed
        passed = self._passed + since
        return passed % max(self._length, 1e-3) if self._is_loop else min(passed, self._length)

    def _rebase(self) -> None:
        self._passed = self._position
        self._anchor = self._clock()
