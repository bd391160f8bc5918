"""The frames of a recording. docs/terminal.md describes the file.

After one line that names the format, each frame has 16 bytes (its size, a checksum of the rest, and the time in
seconds since 1970) and the compressed document of a cluster. Numbers are big-endian.
"""

import struct
import zlib
from collections.abc import Iterable

MAGIC = b"podgpu recording 1\n"
HEAD = struct.Struct(">IId")
_TIME = struct.Struct(">d")
_LEVEL = 6


def frame(at: float, document: Iterable[bytes]) -> bytes:
    """Write a frame. The document comes in parts: that of a thousand nodes is large."""
    compressor = zlib.compressobj(_LEVEL)
    packed = b"".join((*map(compressor.compress, document), compressor.flush()))
    return HEAD.pack(len(packed), checksum(at, packed), at) + packed


def checksum(at: float, packed: bytes) -> int:
    return zlib.crc32(packed, zlib.crc32(_TIME.pack(at)))
