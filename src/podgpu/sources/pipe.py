"""What goes through the pipe between the agent and a source's child process: a length, then MessagePack.

Both processes import this, so it imports little.
"""

from typing import BinaryIO, Protocol

import msgspec
from msgspec import Struct

LENGTH_BYTES = 4
LARGEST_FRAME = 64 * 1024 * 1024


class Stream(Protocol):
    async def readexactly(self, n: int) -> bytes: ...


def frame(message: Struct) -> bytes:
    body = msgspec.msgpack.encode(message)
    return len(body).to_bytes(LENGTH_BYTES, "little") + body


def next_request(stream: BinaryIO) -> bytes | None:
    """Return the next message to the child process, or None if the agent is gone."""
    head = _exactly(stream, LENGTH_BYTES)
    return _exactly(stream, int.from_bytes(head, "little")) if head else None


async def next_answer(stream: Stream) -> bytes:
    """Return the next message to the agent. Raises EOFError if the child process is gone."""
    size = int.from_bytes(await stream.readexactly(LENGTH_BYTES), "little")
    if size > LARGEST_FRAME:
        msg = f"a message of {size} bytes"
        raise EOFError(msg)
    return await stream.readexactly(size)


def _exactly(stream: BinaryIO, size: int) -> bytes | None:
    found = b""
    while len(found) < size:
        piece = stream.read(size - len(found))
        if not piece:
            return None
        found += piece
    return found
