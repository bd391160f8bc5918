"""The messages between the agent and the child process: a length, then MessagePack."""

from typing import BinaryIO

import msgspec
from msgspec import Struct

from podgpu.model import SwitchLog

LENGTH_BYTES = 4
LARGEST_FRAME = 64 * 1024 * 1024


class Watch(Struct, frozen=True, tag="watch"):
    """Watch exactly these cards: their UUIDs, each with the minor number of its node. Answer with an `Answer`."""

    cards: dict[str, int]


class Stop(Struct, frozen=True, tag="stop"):
    """Let go of all cards and exit."""


class CardAnswer(Struct, frozen=True, kw_only=True):
    """A card's log since the previous answer, None if there is none; then `reason` says why, or it has just begun."""

    log: SwitchLog | None = None
    reason: str = ""
    call: str = ""
    detail: str = ""
    counts: dict[str, int] = {}


class Answer(Struct, frozen=True):
    cards: dict[str, CardAnswer] = {}


Request = Watch | Stop
decode_request = msgspec.msgpack.Decoder(Request).decode
decode_answer = msgspec.msgpack.Decoder(Answer).decode


def frame(message: Struct) -> bytes:
    body = msgspec.msgpack.encode(message)
    return len(body).to_bytes(LENGTH_BYTES, "little") + body


def receive(stream: BinaryIO) -> Request | None:
    """Return the next request, or None if the agent is gone."""
    head = stream.read(LENGTH_BYTES)
    if len(head) < LENGTH_BYTES:
        return None
    request: Request = decode_request(stream.read(int.from_bytes(head, "little")))
    return request
