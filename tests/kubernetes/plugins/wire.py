"""As much of protobuf and gRPC as the kubelet's plugin interfaces need: messages of strings and messages."""

from collections.abc import Awaitable, Callable, Iterator, Mapping
from pathlib import Path

from grpclib.const import Cardinality, Handler
from grpclib.server import Server, Stream

from tests.fakekubelet.kubelet import PlainCodec

Answer = Callable[[bytes], Awaitable[bytes]]


def field(number: int, data: bytes) -> bytes:
    """Write a field of bytes, or of a message."""
    assert len(data) < 1 << 14
    size = [len(data)] if len(data) < 0x80 else [len(data) & 0x7F | 0x80, len(data) >> 7]
    return bytes([number << 3 | 2, *size]) + data


def fields(message: bytes) -> Iterator[tuple[int, bytes]]:
    """Read a message that has no fields but those of `field`."""
    at = 0
    while at < len(message):
        number, size, at = message[at] >> 3, message[at + 1], at + 2
        if size & 0x80:
            size, at = size & 0x7F | message[at] << 7, at + 1
        yield number, message[at : at + size]
        at += size


def once(answer: Answer) -> Handler:
    """Handle calls with one question and one answer."""

    async def handle(stream: Stream[bytes, bytes]) -> None:
        await stream.send_message(await answer(await stream.recv_message() or b""))

    return Handler(handle, Cardinality.UNARY_UNARY, bytes, bytes)


class _Service:
    def __init__(self, handlers: Mapping[str, Handler]) -> None:
        self._handlers = dict(handlers)

    def __mapping__(self) -> dict[str, Handler]:
        return self._handlers


async def serve(socket: Path, handlers: Mapping[str, Handler]) -> None:
    _make_room(socket)
    await Server([_Service(handlers)], codec=PlainCodec()).start(path=str(socket))


def _make_room(socket: Path) -> None:
    socket.parent.mkdir(parents=True, exist_ok=True)
    socket.unlink(missing_ok=True)
