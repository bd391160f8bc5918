"""gRPC calls over the kubelet's sockets, and a short reason when one fails.

The protobuf library decodes a whole message at once, and 16 MiB of empty pods become hundreds of MiB of objects. So a
large answer is read by its outermost fields, one at a time.
"""

import asyncio
import struct
import time
from asyncio import BaseTransport, Transport
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import NoReturn, TypeAlias, cast

from google.protobuf.message import DecodeError
from grpclib.client import Channel, Handler, Stream
from grpclib.const import Cardinality, Status
from grpclib.encoding.base import CodecBase
from grpclib.exceptions import GRPCError, StreamTerminatedError
from grpclib.metadata import decode_metadata
from grpclib.protocol import H2Protocol
from h2.events import PingReceived

from podgpu.model import Fault
from podgpu.supervise import brief

LARGEST_ANSWER = 16 * 1024 * 1024  # what the kubelet's own clients accept
READ_BYTES = 32 << 10  # at once: all frames in them are answered before any other task runs
PINGS = 200  # allowed at once, and as many more each second
_DETAIL_CHARACTERS = 200
SocketId = tuple[int, int, int]

_HEAD = struct.Struct(">?I")

_REASONS = {
    Status.DEADLINE_EXCEEDED: "deadline",
    Status.FAILED_PRECONDITION: "not_synced",
    Status.PERMISSION_DENIED: "permission",
    Status.RESOURCE_EXHAUSTED: "rate_limited",
    Status.UNAUTHENTICATED: "permission",
    Status.UNIMPLEMENTED: "unimplemented",
}


class AnswerRejected(Exception):
    """Why an answer is not accepted. `reason` is that of the fault."""

    def __init__(self, reason: str, detail: str) -> None:
        super().__init__(detail)
        self.reason = reason


class _Plain(CodecBase):
    """Passes bytes through, so that an answer that is too large is rejected before it is decoded."""

    __content_subtype__ = "proto"

    def encode(self, message: bytes, message_type: type[bytes]) -> bytes:
        return message

    def decode(self, data: bytes, message_type: type[bytes]) -> bytes:
        return data


class GuardedProtocol(H2Protocol):
    """Hangs up on a peer that floods the connection with pings, each of which grpclib answers, or does not read.

    Only a few bytes are sent for each call. If they pile up, the peer does not read.
    """

    _pings = 0
    _began = 0.0
    _transport: Transport

    def connection_made(self, transport: BaseTransport) -> None:
        super().connection_made(transport)
        self._transport = cast("Transport", transport)
        self._began = time.monotonic()
        self._transport.max_size = READ_BYTES  # type: ignore[attr-defined] # of the event loop's own transports
        self.processor.processors[PingReceived] = self._count

    def pause_writing(self) -> None:
        self.hang_up()

    def hang_up(self) -> None:
        """Close at once, without waiting for a peer that does not read."""
        self._transport.abort()

    def _count(self, _: PingReceived) -> None:
        self._pings += 1
        if self._pings > PINGS * (1 + time.monotonic() - self._began):
            self.hang_up()


class GuardedChannel(Channel):
    _protocol: GuardedProtocol | None

    def _protocol_factory(self) -> GuardedProtocol:
        return GuardedProtocol(Handler(), self._config, self._h2_config)

    def close(self) -> None:
        protocol = self._protocol
        super().close()
        if protocol is not None:
            protocol.hang_up()


def open_channel(socket: Path) -> Channel:
    """Return a connection that is opened by its first call."""
    return GuardedChannel(path=str(socket), codec=_Plain())


class KubeletCall(Stream[bytes, bytes]):
    """A call whose answers are limited in size. grpclib has no such limit."""

    def __init__(self, channel: Channel, method: str) -> None:
        super().__init__(
            channel,
            method,
            decode_metadata([]),
            Cardinality.UNARY_STREAM,
            bytes,
            bytes,
            codec=_Plain(),
            status_details_codec=None,
            dispatch=channel.__dispatch__,
        )

    async def recv_message(self) -> bytes | None:
        if self.initial_metadata is None:
            await self.recv_initial_metadata()
        with self._wrapper:
            head = await self._stream.recv_data(_HEAD.size)
        if not head:
            return None
        compressed, size = _HEAD.unpack(head)
        if compressed:
            self._reject("garbage", "a compressed answer to a call that asked for none")
        if size > LARGEST_ANSWER:
            self._reject("too_large", f"an answer of {size} bytes; at most {LARGEST_ANSWER} are accepted")
        with self._wrapper:
            return await self._stream.recv_data(size)

    def _reject(self, reason: str, detail: str) -> NoReturn:
        self._channel.close()  # so that nothing more of the answer comes
        raise AnswerRejected(reason, detail)


@asynccontextmanager
async def call(channel: Channel, method: str) -> AsyncIterator[KubeletCall]:
    """Send the empty request that each of the kubelet's methods used here takes."""
    answers = KubeletCall(channel, method)
    async with answers:
        await answers.send_message(b"", end=True)
        yield answers


async def answer(channel: Channel, method: str) -> bytes:
    """Return a call's only answer.

    The call is a task of its own, because grpclib wakes a waiting call by cancelling its task.
    """
    return await brief(_only_answer(channel, method))


async def _only_answer(channel: Channel, method: str) -> bytes:
    async with call(channel, method) as answers:
        found = await answers.recv_message()
    if found is None:
        raise AnswerRejected("garbage", "the call ended without an answer")
    return found


def fault(error: Exception, method: str) -> Fault:
    reason, detail = _explained(error)
    return Fault(reason=reason, call=method.rpartition("/")[2], detail=detail[:_DETAIL_CHARACTERS])


def _explained(error: Exception) -> tuple[str, str]:
    match error:
        case AnswerRejected():
            return error.reason, str(error)
        case GRPCError():
            return _REASONS.get(error.status, "unavailable"), f"{error.status.name}: {error.message or ''}"
        case TimeoutError():
            return "deadline", "no answer in time"
        case FileNotFoundError() | NotADirectoryError():
            return "no_socket", str(error)
        case PermissionError():
            return "permission", str(error)
        case OSError() | StreamTerminatedError():
            return "unavailable", str(error)
        case DecodeError():
            return "garbage", str(error)
        case _:  # anything else that a broken peer makes the libraries raise
            return "garbage", repr(error)


class KubeletConnection:
    """Opens a connection when there is none, and again when the open one no longer works.

    A kubelet that restarts puts a new socket in place. The old kubelet may still run and answer with outdated lists,
    so the socket's file is checked before each call.
    """

    def __init__(self, socket: Path) -> None:
        self.socket_id: SocketId | None = None  # of the kubelet that was called last
        self._socket = socket
        self._channel: Channel | None = None

    async def answer(self, method: str) -> bytes:
        """Return a call's only answer. A kept connection that fails is replaced at once, and the call repeated."""
        if kept := self._kept():
            try:
                return await self._ask(kept, method)
            except (GRPCError, AnswerRejected):
                raise
            except Exception:
                if _is_cancelled():
                    raise
        return await self._ask(self._opened(), method)

    def is_current(self) -> bool:
        """Whether the socket is still that of the kubelet that was called last."""
        try:
            return _socket_id(self._socket) == self.socket_id
        except OSError:
            return False

    def close(self) -> None:
        if self._channel:
            self._channel.close()
            self._channel = None

    def _kept(self) -> Channel | None:
        if self._channel and _socket_id(self._socket) != self.socket_id:
            self.close()
        return self._channel

    def _opened(self) -> Channel:
        # Taken before connecting: if the socket is replaced in between, the next call notices.
        self.socket_id = _socket_id(self._socket)
        self._channel = open_channel(self._socket)
        return self._channel

    async def _ask(self, channel: Channel, method: str) -> bytes:
        try:
            return await answer(channel, method)
        except GRPCError:
            raise  # it comes from the kubelet itself, so the connection works
        except BaseException:
            self.close()
            raise


def _socket_id(socket: Path) -> SocketId:
    """Return what changes when the file is replaced. An inode's number alone may be used again."""
    found = socket.stat()
    return found.st_dev, found.st_ino, found.st_ctime_ns


def _is_cancelled() -> bool:
    """Whether the caller was cancelled: grpclib may raise its own error in place of the cancellation."""
    task = asyncio.current_task()
    return task is not None and task.cancelling() > 0


MOST_FIELDS = 1_000_000  # of an answer
_VARINT, _FIXED64, _DELIMITED, _FIXED32 = 0, 1, 2, 5
_LONGEST_VARINT = 10

Fields: TypeAlias = dict[int, list[memoryview]]  # by their numbers


class FieldReader:
    """Reads protobuf fields. Raises AnswerRejected for more than `most`, DecodeError for bytes that are no message."""

    def __init__(self, most: int = MOST_FIELDS) -> None:
        self._left = most

    def fields(self, data: memoryview) -> Iterator[tuple[int, memoryview]]:
        """Yield number and content of each length-delimited field."""
        at, end = 0, len(data)
        while at < end:
            self._left -= 1
            if self._left < 0:
                raise AnswerRejected("too_many", "an answer with more fields than any node has")
            tag, at = _varint(data, at)
            kind = tag & 7
            if kind == _DELIMITED:
                size, at = _varint(data, at)
                if size > end - at:
                    raise DecodeError("a field that is longer than its message")
                yield tag >> 3, data[at : at + size]
                at += size
            else:
                at = _after(data, at, kind)

    def contents(self, data: memoryview, number: int) -> Iterator[memoryview]:
        return (content for found, content in self.fields(data) if found == number)

    def grouped(self, data: memoryview) -> Fields:
        found: Fields = {}
        for number, content in self.fields(data):
            found.setdefault(number, []).append(content)
        return found


def _after(data: memoryview, at: int, kind: int) -> int:
    if kind == _VARINT:
        return _varint(data, at)[1]
    if kind not in (_FIXED32, _FIXED64):
        raise DecodeError("a field of a kind that is not in use")
    at += 4 if kind == _FIXED32 else 8
    if at > len(data):
        raise DecodeError("a field that is longer than its message")
    return at


def _varint(data: memoryview, at: int) -> tuple[int, int]:
    """Return a number and where it ends. Nearly all have one byte."""
    if at < len(data) and data[at] < 0x80:
        return data[at], at + 1
    value = 0
    for place, byte in enumerate(data[at : at + _LONGEST_VARINT]):
        value |= (byte & 0x7F) << 7 * place
        if byte < 0x80:
            return value, at + place + 1
    raise DecodeError("a number without an end")
