"""A kubelet as far as its sockets go: a real gRPC server on unix sockets that gives scripted answers.

async with FakeKubelet(root) as kubelet:
    kubelet.replies["/v1.PodResourcesLister/List"] = Reply(recorded)
"""

import asyncio
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, Self

from grpclib.const import Cardinality, Handler, Status
from grpclib.encoding.base import CodecBase
from grpclib.exceptions import GRPCError
from grpclib.server import Server, Stream

POD_RESOURCES = "pod-resources/kubelet.sock"
PODS_API = "pods-api/pods-api.sock"
METHODS = (
    "/v1.PodResourcesLister/List",
    "/v1.PodResourcesLister/GetAllocatableResources",
    "/v1alpha1.PodResourcesLister/List",
    "/v1alpha1.Pods/ListPods",
    "/v1alpha1.Pods/WatchPods",
)


class PlainCodec(CodecBase):
    __content_subtype__ = "proto"

    def encode(self, message: bytes, message_type: Any) -> bytes:
        return message

    def decode(self, data: bytes, message_type: Any) -> bytes:
        return data


class Reply:
    """Messages in order, then a status. One that `hangs` never comes to its status; `push` adds messages to it."""

    def __init__(self, *messages: bytes, status: Status = Status.OK, delay: float = 0.0, hangs: bool = False) -> None:
        self.messages = messages
        self.status = status
        self.delay = delay
        self.hangs = hangs
        self._later: asyncio.Queue[bytes | None] = asyncio.Queue()

    def push(self, message: bytes) -> None:
        self._later.put_nowait(message)

    def end(self) -> None:
        """Let the call that hangs come to its status."""
        self._later.put_nowait(None)

    async def send(self, stream: Stream[bytes, bytes]) -> None:
        await asyncio.sleep(self.delay)
        for message in self.messages:
            await stream.send_message(message)
        while self.hangs and (late := await self._later.get()) is not None:
            await stream.send_message(late)
        if self.status is not Status.OK:
            raise GRPCError(self.status, "as the test told it")


@dataclass
class FakeKubelet:
    """A method without a reply is UNIMPLEMENTED. `calls` are those made so far, `idle` tells that none goes on."""

    root: Path
    sockets: tuple[str, ...] = (POD_RESOURCES, PODS_API)
    replies: dict[str, Reply] = field(default_factory=dict)
    calls: list[str] = field(default_factory=list)
    idle: asyncio.Event = field(default_factory=asyncio.Event)
    _pending: int = 0
    _servers: list[tuple[Path, Server]] = field(default_factory=list)
    _transports: set[asyncio.Transport] = field(default_factory=set)

    async def __aenter__(self) -> Self:
        await self.start()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.stop()

    async def start(self) -> None:
        for name in self.sockets:
            path = self.root / name
            path.parent.mkdir(exist_ok=True)
            server = Server([self], codec=PlainCodec())
            await server.start(path=str(path))
            self._servers.append((path, server))

    async def stop(self) -> None:
        """Break every connection and remove the sockets."""
        for path, server in self._servers:
            server.close()
            path.unlink(missing_ok=True)
        self.break_connections()
        for _, server in self._servers:
            await server.wait_closed()
        self._servers.clear()
        self._transports.clear()

    @property
    def connections(self) -> int:
        """How many connections have carried a call since the start."""
        return len(self._transports)

    def break_connections(self) -> None:
        for transport in self._transports:
            transport.abort()

    def __mapping__(self) -> dict[str, Handler]:
        return {name: Handler(partial(self._serve, name), Cardinality.UNARY_STREAM, bytes, bytes) for name in METHODS}

    async def _serve(self, name: str, stream: Stream[bytes, bytes]) -> None:
        self.calls.append(name)
        self._pending += 1
        self.idle.clear()
        self._transports.add(stream._stream._transport)
        try:
            await stream.recv_message()
            await self._answer(name, stream)
        finally:
            self._pending -= 1
            if not self._pending:
                self.idle.set()

    async def _answer(self, name: str, stream: Stream[bytes, bytes]) -> None:
        reply = self.replies.get(name)
        if reply is None:
            raise GRPCError(Status.UNIMPLEMENTED, "unknown method")
        await reply.send(stream)


@contextmanager
def kubelet_root() -> Iterator[Path]:
    """Make a folder with a short name: the path of a unix socket has at most 107 bytes."""
    with tempfile.TemporaryDirectory(prefix="kubelet-") as folder:
        yield Path(folder)
