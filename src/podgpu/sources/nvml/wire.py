"""The messages between the agent and its sampler: a length, then MessagePack.

The agent sends `Read` and gets a `Report`, or sends `Stop` and the sampler exits.
"""

from typing import BinaryIO

import msgspec
from msgspec import Struct

LENGTH_BYTES = 4
LARGEST_FRAME = 64 * 1024 * 1024


class Read(Struct, frozen=True, tag="read"):
    """Read all GPUs and answer within `seconds`, even if some have not answered.

    With `windows`, read the busy time of each of the driver's windows too. Until the next request, take ten glimpses a
    second of the cards in `watched`, to cut their windows in halves.
    """

    seconds: float
    windows: bool = False
    watched: tuple[str, ...] = ()


class Stop(Struct, frozen=True, tag="stop"):
    """Close the library and exit."""


Request = Read | Stop
DECODER: msgspec.msgpack.Decoder[Request] = msgspec.msgpack.Decoder(Request)


def frame(message: Struct) -> bytes:
    body = msgspec.msgpack.encode(message)
    return len(body).to_bytes(LENGTH_BYTES, "little") + body


def receive(stream: BinaryIO) -> Request | None:
    """Return the next request, or None if the agent is gone."""
    head = stream.read(LENGTH_BYTES)
    if len(head) < LENGTH_BYTES:
        return None
    body = stream.read(int.from_bytes(head, "little"))
    return DECODER.decode(body)
