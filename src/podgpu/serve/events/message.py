"""Events as they are sent, plain and packed."""

import zlib
from dataclasses import dataclass

FULL = "full"
CHANGE = "change"
RETRY_MS = 2000

_FASTEST = 1
# A gzip member without name or time. It never ends, so its checksum is never written.
_GZIP_HEAD = b"\x1f\x8b\x08\x00\x00\x00\x00\x00\x00\xff"


@dataclass(frozen=True, slots=True)
class Message:
    """`packed` stands for itself in a gzip stream, so one packing serves every reader."""

    plain: bytes
    packed: bytes


def _message(text: bytes, head: bytes = b"") -> Message:
    packer = zlib.compressobj(_FASTEST, zlib.DEFLATED, -zlib.MAX_WBITS)
    # A full flush ends at a byte and refers to nothing before it.
    return Message(text, head + packer.compress(text) + packer.flush(zlib.Z_FULL_FLUSH))


def event(name: str, number: str, data: bytes) -> Message:
    """`data` is one line."""
    return _message(b"id: %s\nevent: %s\ndata: %s\n\n" % (number.encode(), name.encode(), data))


OPENING = _message(b"retry: %d\n\n" % RETRY_MS, _GZIP_HEAD)
HEARTBEAT = _message(b":\n\n")
