"""A text and how it changed: now and then the whole of it, in between what changed, all of it compressed.

The text is a JSON document. It is cut at its commas, so a piece is a key with its value, and a change is the numbers
of the pieces that differ with what they are now. Between two readings of a card, one piece in ten does.
"""

import zlib
from bisect import bisect_right
from collections import deque
from collections.abc import Iterator
from itertools import compress, pairwise
from operator import ne
from typing import NamedTuple

_COMMA = b","
_ALL = b"\x01"
_RAW = -zlib.MAX_WBITS  # deflate without a head and a checksum
_LEVEL, _FASTEST = 6, 1
_FAR = 0xFF  # a gap that goes on in the next byte; 0 ends the gaps
_LEAST_REBASED, _REBASED_PART = 4, 8  # frames, and the part of all of them, that are worth a new whole one

Pieces = list[bytes]


class _Frame(NamedTuple):
    """`packed` is the whole text, or its change from the frame before. None: from then on there is no text."""

    at: float
    packed: bytes | None
    is_whole: bool


class TextRing:
    """Keeps what a text was. Frames are never changed, so a copy can be read while others are added.

    Every so many frames, one is whole: from there on, they must be read in order. `is_one_of_many`: the newest text is
    compressed too. That takes time, but of a thousand nodes it would be more than all the rest.
    """

    def __init__(self, whole_every: int, *, is_one_of_many: bool = False) -> None:
        self._is_one_of_many = is_one_of_many
        self._whole_every = whole_every
        self._frames: list[_Frame] = []
        self._packed_bytes = 0
        self._kept_newest: bytes | None = None
        self._since_whole = 0

    @property
    def size(self) -> int:
        """Bytes of the frames and of the newest text."""
        return self._packed_bytes + len(self._kept_newest or b"")

    @property
    def is_empty(self) -> bool:
        return all(frame.packed is None for frame in self._frames)

    def put(self, at: float, text: bytes | None) -> None:
        """Take the text of a moment after all others. None: there is none any more."""
        before = self._newest
        if text == before:
            return
        self._kept_newest = zlib.compress(text, _FASTEST) if text and self._is_one_of_many else text
        change = None
        if before is not None and text is not None and self._since_whole < self._whole_every:
            change = _change(before.split(_COMMA), text.split(_COMMA))
        if text is None:
            self._add(_Frame(at, None, is_whole=True))
        elif change is None:
            self._add(_Frame(at, _packed(text), is_whole=True))
            self._since_whole = 0
        else:
            self._add(_Frame(at, _packed(change), is_whole=False))
            self._since_whole += 1

    def forget(self, before: float) -> None:
        """Drop what no moment from then on needs."""
        last = bisect_right(self._frames, before, key=_time) - 1
        whole = self._whole_before(last)
        if last - whole >= max(_LEAST_REBASED, len(self._frames) // _REBASED_PART):
            text = self.at(before)
            self._packed_bytes -= _size(self._frames[last])
            whole, frame = last, _Frame(self._frames[last].at, text and _packed(text), is_whole=True)
            self._frames[last] = frame
            self._packed_bytes += _size(frame)
        if whole > 0:
            self._packed_bytes -= sum(map(_size, self._frames[:whole]))
            del self._frames[:whole]

    def _whole_before(self, number: int) -> int:
        while number > 0 and not self._frames[number].is_whole:
            number -= 1
        return max(0, number)

    def copy(self) -> "TextRing":
        """Return one to read from, in another thread too."""
        other = TextRing(self._whole_every)
        other._frames = list(self._frames)
        return other

    def at(self, moment: float) -> bytes | None:
        """Return the text of that moment; None if there was none."""
        number = bisect_right(self._frames, moment, key=_time)
        last = deque(_read(self._frames[self._whole_before(number - 1) : number]), maxlen=1)
        return _joined(last[0][1]) if last else None

    def mentions(self, word: bytes) -> bool:
        """Whether it is in the newest text."""
        return word in (self._newest or b"")

    @property
    def _newest(self) -> bytes | None:
        kept = self._kept_newest
        return zlib.decompress(kept) if kept and self._is_one_of_many else kept

    def texts(self) -> Iterator[tuple[float, bytes | None]]:
        """Yield the text after each change, with its time."""
        return ((at, _joined(pieces)) for at, pieces in _read(self._frames))

    def _add(self, frame: _Frame) -> None:
        self._frames.append(frame)
        self._packed_bytes += _size(frame)


def _time(frame: _Frame) -> float:
    return frame.at


def _size(frame: _Frame) -> int:
    return len(frame.packed or b"")


def _joined(pieces: Pieces | None) -> bytes | None:
    return None if pieces is None else _COMMA.join(pieces)


def _read(frames: list[_Frame]) -> Iterator[tuple[float, Pieces | None]]:
    """Yield the pieces after each change: the same list, changed in place."""
    pieces: Pieces = []
    for at, packed, is_whole in frames:
        if packed is None:
            yield at, None
            continue
        if is_whole:
            pieces = zlib.decompress(packed, _RAW).split(_COMMA)
        else:
            _apply(zlib.decompress(packed, _RAW), pieces)
        yield at, pieces


def _packed(data: bytes) -> bytes:
    return zlib.compress(data, _LEVEL, _RAW)


def _change(before: Pieces, after: Pieces) -> bytes | None:
    """Write down what differs: gaps between the numbers of the pieces, 0, and the pieces. None: the shape differs."""
    if len(before) != len(after):
        return None
    # Thousands of pieces are compared for each reading, so no line of Python is run for each.
    changed = list(compress(range(len(after)), map(ne, before, after)))
    gaps = bytearray()
    for last, number in pairwise((-1, *changed)):
        far, near = divmod(number - last, _FAR - 1)
        gaps += b"\xff" * far
        gaps.append(near + 1)
    return bytes(gaps) + b"\0" + _COMMA.join([_value(before[number], after[number]) for number in changed])


def _value(old: bytes, new: bytes) -> bytes:
    """Return what follows the key, if that is the same; else the whole piece, after a sign that no JSON has."""
    key, colon, value = new.rpartition(b":")
    return value if old.rpartition(b":")[:2] == (key, colon) else _ALL + new


def _piece(old: bytes, value: bytes) -> bytes:
    if value.startswith(_ALL):
        return value[1:]
    key, colon, _ = old.rpartition(b":")
    return key + colon + value


def _apply(change: bytes, pieces: Pieces) -> None:
    gaps, _, changed = change.partition(b"\0")
    number = -1
    values = iter(changed.split(_COMMA))
    for gap in gaps:
        if gap == _FAR:
            number += _FAR - 1
        else:
            number += gap - 1
            pieces[number] = _piece(pieces[number], next(values))
