"""A gzip stream of parts that were compressed one by one.

Each part ends at a whole byte and refers to nothing before it, so it can stand anywhere in a stream.
"""

import zlib
from collections.abc import Sequence
from functools import cached_property

_FASTEST = 1
_RAW = -zlib.MAX_WBITS
_HEAD = b"\x1f\x8b\x08\x00\x00\x00\x00\x00\x04\xff"
_LAST_BLOCK = b"\x03\x00"


class BodyPart:
    """A part of a body, compressed when that is first asked for."""

    def __init__(self, plain: bytes) -> None:
        self.plain = plain

    @cached_property
    def deflated(self) -> bytes:
        compressor = zlib.compressobj(_FASTEST, zlib.DEFLATED, _RAW)
        return compressor.compress(self.plain) + compressor.flush(zlib.Z_SYNC_FLUSH)


def gzip_stream(parts: Sequence[BodyPart]) -> list[bytes]:
    checksum, size = 0, 0
    for part in parts:
        checksum = zlib.crc32(part.plain, checksum)
        size += len(part.plain)
    end = checksum.to_bytes(4, "little") + (size & 0xFFFFFFFF).to_bytes(4, "little")
    return [_HEAD, *(part.deflated for part in parts), _LAST_BLOCK + end]
