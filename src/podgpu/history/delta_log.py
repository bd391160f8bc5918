"""A JSON document over time: now and then the whole of it, in between what changed, all of it compressed.

The text is split at its commas, so a piece is a key with its value. A change has the numbers of the pieces that
differ, and what they are now. From one reading of a card to the next, one piece in ten differs.
"""

import zlib
from bisect import bisect_right
from collections import deque
from collections.abc import Iterable, Iterator
from itertools import compress, repeat
from operator import itemgetter, ne

_COMMA = b","
_ALL = b"\x01"
_RAW = -zlib.MAX_WBITS  # deflate without header and checksum
# For changes, a better level would take a third more time and save 3 % of the memory.
_FASTEST, _WHOLE_LEVEL = 1, 6
_WHOLE = 1
_FAR = 0xFF  # a gap that continues in the next byte; 0 ends the gaps
_LEAST_REBASED, _REBASED_PART = 4, 8  # so many changes, and one in so many of all, must go for a new whole text

Pieces = list[bytes]


class DeltaLog:
    """Keeps a text with its changes. Nothing that is kept changes, so a copy can be read while more is added.

    One in `whole_every` changes is the whole text, and reading begins there. If `is_one_of_many`, the newest text is
    compressed too. That takes time, but uncompressed texts of a thousand nodes take more memory than all the rest.
    """

    def __init__(self, whole_every: int, *, is_one_of_many: bool = False) -> None:
        self._is_one_of_many = is_one_of_many
        self._whole_every = whole_every
        # Of each change: its time, what changed or the whole text, and which of both. None: there is no text any more.
        self._times: list[float] = []
        self._packed: list[bytes | None] = []
        self._wholes = bytearray()
        self._packed_bytes = 0
        self._kept_newest: bytes | None = None

    @property
    def size(self) -> int:
        """Bytes of what is kept and of the newest text."""
        return self._packed_bytes + len(self._kept_newest or b"")

    @property
    def is_empty(self) -> bool:
        return not any(self._packed)

    def put(self, at: float, text: bytes | None) -> None:
        """Add the text of a moment that is after all others. None: there is no text any more."""
        before = self._newest
        if text == before:
            return
        self._kept_newest = zlib.compress(text, _FASTEST) if text and self._is_one_of_many else text
        since_whole = len(self._wholes) - 1 - self._wholes.rfind(_WHOLE)
        change = None
        if before is not None and text is not None and since_whole < self._whole_every:
            change = _change(before.split(_COMMA), text.split(_COMMA))
        data = text if change is None else change
        packed = None if data is None else _compressed(data, is_whole=change is None)
        self._times.append(at)
        self._packed.append(packed)
        self._wholes.append(change is None)
        self._packed_bytes += len(packed or b"")

    def forget(self, before: float) -> None:
        """Drop what is needed only before then."""
        last = bisect_right(self._times, before) - 1
        whole = self._whole_before(last)
        if last - whole >= max(_LEAST_REBASED, len(self._times) // _REBASED_PART):
            text = self.at(before)
            self._packed_bytes -= len(self._packed[last] or b"")
            self._packed[last] = None if text is None else _compressed(text, is_whole=True)
            self._packed_bytes += len(self._packed[last] or b"")
            self._wholes[last] = True
            whole = last
        if whole > 0:
            self._packed_bytes -= sum(len(packed or b"") for packed in self._packed[:whole])
            del self._times[:whole], self._packed[:whole], self._wholes[:whole]

    def _whole_before(self, number: int) -> int:
        return max(0, self._wholes.rfind(_WHOLE, 0, number + 1))

    def copy(self) -> "DeltaLog":
        """Return a copy that another thread may read."""
        other = DeltaLog(self._whole_every, is_one_of_many=self._is_one_of_many)
        other._times, other._packed, other._wholes = self._times[:], self._packed[:], self._wholes[:]
        other._kept_newest = self._kept_newest
        return other

    def at(self, moment: float) -> bytes | None:
        """Return the text of that moment; None if there was none."""
        number = bisect_right(self._times, moment)
        last = deque(self._read(self._whole_before(number - 1), number), maxlen=1)
        return _joined(last[0][1]) if last else None

    def at_each(self, moments: Iterable[float]) -> Iterator[bytes | None]:
        """Yield the text of each of these moments, which are in order. Each change is read once."""
        read, text, number, is_changed = self._read(0, len(self._times)), None, 0, False
        pieces: Pieces | None = None
        for moment in moments:
            while number < len(self._times) and self._times[number] <= moment:
                _, pieces = next(read)
                number, is_changed = number + 1, True
            if is_changed:
                text, is_changed = _joined(pieces), False
            yield text

    def mentions(self, word: bytes) -> bool:
        """Whether the newest text has this word."""
        return word in (self._newest or b"")

    @property
    def _newest(self) -> bytes | None:
        kept = self._kept_newest
        return zlib.decompress(kept) if kept and self._is_one_of_many else kept

    def texts(self) -> Iterator[tuple[float, bytes | None]]:
        """Yield the text after each change, with its time."""
        return ((at, _joined(pieces)) for at, pieces in self._read(0, len(self._times)))

    def _read(self, start: int, end: int) -> Iterator[tuple[float, Pieces | None]]:
        """Yield the pieces after each change: the same list, changed in place."""
        pieces: Pieces = []
        for number in range(start, end):
            packed = self._packed[number]
            if packed is None:
                yield self._times[number], None
                continue
            data = zlib.decompress(packed, _RAW)
            if self._wholes[number]:
                pieces = data.split(_COMMA)
            else:
                _apply(data, pieces)
            yield self._times[number], pieces


def _joined(pieces: Pieces | None) -> bytes | None:
    return None if pieces is None else _COMMA.join(pieces)


def _compressed(data: bytes, *, is_whole: bool) -> bytes:
    return zlib.compress(data, _WHOLE_LEVEL if is_whole else _FASTEST, _RAW)


def _change(before: Pieces, after: Pieces) -> bytes | None:
    """Encode what differs: gaps between the numbers of the pieces, a 0, and the pieces. None if their number differs.

    A piece that has its old key is its value alone; any other is the whole piece, after a byte that no JSON has.
    """
    if len(before) != len(after):
        return None
    # Thousands of pieces are compared for each reading, so no loop in Python does it.
    changed = list(compress(range(len(after)), map(ne, before, after)))
    gaps = bytearray()
    last = -1
    for number in changed:
        gap = number - last
        while gap >= _FAR - 1:
            gaps.append(_FAR)
            gap -= _FAR - 1
        gaps.append(gap + 1)
        last = number
    pick = itemgetter(*changed, 0)  # at least two, so that it returns a tuple
    old = map(bytes.rpartition, pick(before), repeat(b":"))
    new = map(bytes.rpartition, pick(after), repeat(b":"))
    values = [
        value if key == old_key and colon == old_colon else _ALL + key + colon + value
        for (old_key, old_colon, _), (key, colon, value) in zip(old, new, strict=True)
    ]
    return bytes(gaps) + b"\0" + _COMMA.join(values[:-1])


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
