"""A gzip stream of parts that were compressed one by one.

Each part ends at a whole byte and refers to nothing before it, so it can stand anywhere in a stream. The checksum of
the whole is computed from those of the parts, by arithmetic with polynomials over GF(2): a checksum is the remainder
of a division by `_DIVISOR`, and text that follows shifts it.
"""

import zlib
from collections.abc import Iterable

_FASTEST = 1
_RAW = -zlib.MAX_WBITS
_HEAD = b"\x1f\x8b\x08\x00\x00\x00\x00\x00\x04\xff"
_LAST_BLOCK = b"\x03\x00"
_DIVISOR = 0xEDB88320  # lowest power first, as in zlib
_ONE, _X = 1 << 31, 1 << 30


class BodyPart:
    """A part of a body, compressed when that is first asked for."""

    __slots__ = ("_deflated", "_shift", "checksum", "plain")

    def __init__(self, plain: bytes) -> None:
        self.plain = plain
        self.checksum = 0
        self._deflated: bytes | None = None
        self._shift = _ONE

    @property
    def deflated(self) -> bytes:
        if self._deflated is None:
            compressor = zlib.compressobj(_FASTEST, zlib.DEFLATED, _RAW)
            self._deflated = compressor.compress(self.plain) + compressor.flush(zlib.Z_SYNC_FLUSH)
            self.checksum, self._shift = zlib.crc32(self.plain), _shift(len(self.plain))
        return self._deflated

    def after(self, checksum: int) -> int:
        """Return the checksum of text that ended with `checksum`, followed by this part. Comes after `deflated`."""
        return _times(self._shift, checksum) ^ self.checksum


def gzip_stream(parts: Iterable[BodyPart]) -> list[bytes]:
    stream, checksum, size = [_HEAD], 0, 0
    for part in parts:
        stream.append(part.deflated)
        checksum = part.after(checksum)
        size += len(part.plain)
    end = checksum.to_bytes(4, "little") + (size & 0xFFFFFFFF).to_bytes(4, "little")
    return [*stream, _LAST_BLOCK + end]


def _times(left: int, right: int) -> int:
    """Multiply two remainders. The first is not 0."""
    product, bit = 0, _ONE
    while True:
        if left & bit:
            product ^= right
            if not left & (bit - 1):
                return product
        bit >>= 1
        right = (right >> 1) ^ _DIVISOR if right & 1 else right >> 1


def _powers() -> list[int]:
    """Return x to the powers 8, 16, 32 and so on: what 1, 2, 4, … bytes shift by."""
    found = [_X]
    for _ in range(3 + 40):
        found.append(_times(found[-1], found[-1]))
    return found[3:]


_POWERS = _powers()


def _shift(size: int) -> int:
    """Return what so many bytes multiply a checksum by."""
    product = _ONE
    for bit in range(size.bit_length()):
        if size >> bit & 1:
            product = _times(_POWERS[bit], product)
    return product
