"""A node made by hand, and a client that speaks HTTP by the byte."""

import asyncio
import socket
from collections.abc import AsyncIterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

from podgpu.catalog.row import Kind, Worth
from podgpu.model import Card, Gpu, PartStatus, Reading, Snapshot
from podgpu.option.value import Address
from podgpu.serve.http.request import Limits
from podgpu.serve.pages import NATIVE_ALONE, DocumentView, MetricsView, PageRegistry
from podgpu.serve.server import HttpServer, NodeServer
from podgpu.views.dialects import PREFIX
from podgpu.views.series import Family, Labels
from tests.patience import PATIENCE

PATIENT = Limits(head_seconds=2 * PATIENCE, idle_seconds=20 * PATIENCE, write_seconds=2 * PATIENCE)


def make_snapshot(node: str = "worker-1") -> Snapshot:
    gpu = Gpu(uuid="GPU-1", index=0, model="NVIDIA H200")
    card = Card(gpu=gpu, readings=(Reading("power_watts", 72.5),))
    return Snapshot(
        node=node,
        taken_at=1_700_000_000.0,
        interval_seconds=1.0,
        version="1.2.3",
        cards=(card,),
        parts=(PartStatus(name="nvml", up=True, age_seconds=0.1),),
    )


class StubNode:
    def __init__(self) -> None:
        self.current = make_snapshot()
        self.ready = True
        self.released: list[float] = []
        self.finished = 0
        self.gone = True
        self.asked = asyncio.Event()
        self.let_go = asyncio.Event()
        self.let_go.set()

    @property
    def snapshot(self) -> Snapshot:
        return self.current

    async def changed(self, seen: Snapshot) -> Snapshot:
        await asyncio.Event().wait()
        return seen

    async def release(self, seconds: float) -> bool:
        self.released.append(seconds)
        self.asked.set()
        await self.let_go.wait()
        self.finished += 1
        return self.gone


@dataclass
class CountingDialect:
    """One family of `series` series, with a number of so many digits. Counts how often it was asked for."""

    series: int = 1
    digits: int = 1
    calls: int = 0
    dropped: list[Mapping[str, int]] = field(default_factory=list)

    def __call__(self, snapshot: Snapshot, dropped: Mapping[str, int]) -> list[Family]:
        self.calls += 1
        self.dropped.append(dropped)
        family = Family("counted", Kind.GAUGE, "Counts.", Worth.USEFUL)
        for number in range(self.series):
            family.put(float(number), Labels(("node", "n"), (snapshot.node, f"{number:0{self.digits}}")))
        return [family]


def big_page() -> CountingDialect:
    """About 10 MB: more than the kernel buffers for a client that does not read."""
    return CountingDialect(45_000, digits=250)


def broken(_snapshot: Snapshot, _dropped: Mapping[str, int]) -> list[Family]:
    raise RuntimeError("this view is broken")


@asynccontextmanager
async def serving(
    node: StubNode,
    *addresses: Address,
    dialects: Mapping[str, MetricsView] | None = None,
    documents: Mapping[str, DocumentView] | None = None,
    registry: PageRegistry | None = None,
    limits: Limits | None = None,
    probe_address: Address | None = None,
    **caps: Any,
) -> AsyncIterator[NodeServer]:
    caps = {"series_limit": 10**6, "max_requests": 40, "max_connections": 300, "max_streams": 50, **caps}
    pages = {PREFIX + name: view for name, view in (dialects or {}).items()}
    registry = registry or PageRegistry({**NATIVE_ALONE.pages, **pages}, documents or {})
    server = NodeServer(node, registry=registry, limits=limits or PATIENT, **caps)
    await server.start(addresses or [Address("127.0.0.1", 0)], probe_address)
    try:
        yield server
    finally:
        await server.stop()


@dataclass(frozen=True)
class Answer:
    status: int
    headers: dict[str, str]
    body: bytes

    @property
    def text(self) -> str:
        return self.body.decode()


class Client:
    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader = reader
        self.writer = writer

    def send(self, data: bytes) -> None:
        self.writer.write(data)

    def ask(self, path: str, method: str = "GET", **headers: str) -> None:
        fields = {"Host": "localhost", **{name.replace("_", "-"): value for name, value in headers.items()}}
        lines = "".join(f"{name}: {value}\r\n" for name, value in fields.items())
        self.send(f"{method} {path} HTTP/1.1\r\n{lines}\r\n".encode())

    async def answer(self, *, head_only: bool = False) -> Answer:
        async with asyncio.timeout(PATIENCE):
            head = (await self.reader.readuntil(b"\r\n\r\n")).decode()
            first, *lines = head.strip().split("\r\n")
            headers = {name.lower(): value for name, value in (line.split(": ", 1) for line in lines)}
            body = b"" if head_only else await self.reader.readexactly(int(headers["content-length"]))
            return Answer(int(first.split()[1]), headers, body)

    async def get(self, path: str, method: str = "GET", **headers: str) -> Answer:
        self.ask(path, method, **headers)
        return await self.answer(head_only=method == "HEAD")

    async def rest(self) -> bytes:
        """Everything up to the end of the connection, however it ends."""
        got = b""
        async with asyncio.timeout(PATIENCE):
            try:
                while data := await self.reader.read(1 << 16):
                    got += data
            except ConnectionResetError:
                pass
        return got


@asynccontextmanager
async def connected(server: HttpServer, port: int | None = None, **options: Any) -> AsyncIterator[Client]:
    async with asyncio.timeout(PATIENCE):
        reader, writer = await asyncio.open_connection("127.0.0.1", port or server.ports[0], **options)
    try:
        yield Client(reader, writer)
    finally:
        writer.transport.abort()


async def fetch(server: NodeServer, path: str, method: str = "GET", **headers: str) -> Answer:
    async with connected(server) as client:
        return await client.get(path, method, **headers)


async def freed(server: NodeServer, path: str) -> bool:
    """Whether the path is served within a while."""
    for _ in range(500):
        if (await fetch(server, path)).status == 200:
            return True
        await asyncio.sleep(0.02)
    return False


def narrow() -> socket.socket:
    """Make a socket that takes little without being read."""
    sock = socket.socket()
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    sock.setblocking(False)
    return sock


async def slow_reader(stack: AsyncExitStack, port: int, path: str = "/metrics/big") -> socket.socket:
    sock = stack.enter_context(narrow())
    loop = asyncio.get_running_loop()
    await loop.sock_connect(sock, ("127.0.0.1", port))
    await loop.sock_sendall(sock, f"GET {path} HTTP/1.1\r\nHost: test\r\n\r\n".encode())
    await loop.sock_recv(sock, 1)  # the answer is on its way
    return sock


async def drained(sock: socket.socket) -> int:
    """How many bytes there are to read until the end, however it ends."""
    return await taken(sock, 1 << 60)


async def taken(sock: socket.socket, most: int) -> int:
    """Read that many bytes, or up to the end, and return how many there were."""
    loop, size = asyncio.get_running_loop(), 0
    try:
        while size < most and (data := await asyncio.wait_for(loop.sock_recv(sock, 1 << 16), PATIENCE)):
            size += len(data)
    except ConnectionResetError:
        pass
    return size
