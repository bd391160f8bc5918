"""Events as they are sent."""

from collections.abc import Sequence

from podgpu.serve.events.piece import Piece

FULL = "full"
CHANGE = "change"
RETRY_MS = 2000

# The head of a gzip member without name or time. It never ends, so its checksum is never written.
_GZIP_HEAD = b"\x1f\x8b\x08\x00\x00\x00\x00\x00\x00\xff"


class Message:
    """Made of pieces that can stand anywhere in a gzip stream, and joined once for all readers of a form."""

    __slots__ = ("_head", "_packed", "_pieces", "_plain")

    def __init__(self, pieces: Sequence[Piece], packed_head: bytes = b"") -> None:
        self._pieces = pieces
        self._head = packed_head
        self._plain: bytes | None = None
        self._packed: bytes | None = None

    @property
    def size(self) -> int:
        return sum(len(piece.plain) for piece in self._pieces)

    @property
    def plain(self) -> bytes:
        if self._plain is None:
            self._plain = b"".join(piece.plain for piece in self._pieces)
        return self._plain

    @property
    def packed(self) -> bytes:
        if self._packed is None:
            self._packed = self._head + b"".join(piece.packed for piece in self._pieces)
        return self._packed


def events(name: str, number: str, parts: Sequence[Sequence[Piece]]) -> Message:
    """Each part is one line, and an event. The last one carries the number: who misses it starts over."""
    pieces: list[Piece] = []
    for place, part in enumerate(parts, 1):
        mark = f"id: {number}\n" if place == len(parts) else ""
        pieces += (Piece(f"{mark}event: {name}\ndata: ".encode()), *part, Piece(b"\n\n"))
    return Message(pieces)


OPENING = Message((Piece(b"retry: %d\n\n" % RETRY_MS),), _GZIP_HEAD)
HEARTBEAT = Message((Piece(b":\n\n"),))
