"""Measures scrapes per second of a 1 MB page: podgpu's server, prometheus_client's, and bare asyncio.

All run on loopback, each server and the load in a process of its own, in turns.
"""

import asyncio
import multiprocessing
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from functools import partial
from multiprocessing.connection import Connection
from time import monotonic

from bench.figure import Figure
from podgpu.catalog import CATALOG
from podgpu.catalog.row import Metric, Scope
from podgpu.model import Card, Gpu, Reading, Snapshot
from podgpu.option.value import Address
from podgpu.serve.pages import NodePages
from podgpu.serve.server import NodeServer
from podgpu.views.exposition import Format

PAGE_BYTES = 1_000_000
CONNECTIONS = 16
SECONDS = 1.5
ROUNDS = 5
FASTER_THAN_PROMETHEUS_CLIENT = 50.0
SHARE_OF_BARE_ASYNCIO = 0.5

_REQUEST = b"GET /metrics HTTP/1.1\r\nHost: bench\r\nAccept: text/plain\r\nAccept-Encoding: identity\r\n\r\n"
# Forking a process that may have threads is not safe.
_PROCESSES = multiprocessing.get_context("spawn")


class _Still:
    """A node that never changes."""

    ready = True

    def __init__(self, snapshot: Snapshot) -> None:
        self.snapshot = snapshot

    async def changed(self, seen: Snapshot) -> Snapshot:
        await asyncio.Event().wait()
        return seen

    async def release(self, seconds: float) -> bool:
        return seconds > 0


def run() -> list[Figure]:
    servers = (_ours, _prometheus_client, _bare)
    with ExitStack() as stack:
        ports = [stack.enter_context(_served(serve)) for serve in servers]
        rounds = [[_loaded(port) for port in ports] for _ in range(ROUNDS)]
    # Bare asyncio varies twofold between rounds, so the best round of each server gives the strictest comparison.
    ours, theirs, bare = (max(rates) for rates in zip(*rounds, strict=True))
    faster, share = ours / theirs, ours / bare
    return [
        Figure("scrapes/s, podgpu", f"{ours:.0f}", "", ok=True),
        Figure("scrapes/s, prometheus_client", f"{theirs:.1f}", "", ok=True),
        Figure("scrapes/s, bare asyncio", f"{bare:.0f}", "", ok=True),
        Figure(
            "podgpu / prometheus_client",
            f"{faster:.0f}",
            f">= {FASTER_THAN_PROMETHEUS_CLIENT:.0f}",
            faster >= FASTER_THAN_PROMETHEUS_CLIENT,
        ),
        Figure(
            "podgpu / bare asyncio",
            f"{share:.2f}",
            f">= {SHARE_OF_BARE_ASYNCIO}",
            share >= SHARE_OF_BARE_ASYNCIO,
        ),
    ]


def _rows() -> list[Metric]:
    return [row for row in CATALOG if row.scope is Scope.GPU and not row.label_names]


def _snapshot() -> Snapshot:
    """Make as many cards as fill the page."""
    readings = tuple(Reading(row.name, 1234.5) for row in _rows())
    number = 1
    while True:
        cards = tuple(
            Card(gpu=Gpu(uuid=f"GPU-{n:08x}-0000-4000-8000-000000000000", index=n), readings=readings)
            for n in range(number)
        )
        snapshot = Snapshot(node="bench", taken_at=0.0, interval_seconds=1.0, version="0", cards=cards)
        size = len(_page(snapshot))
        if size >= PAGE_BYTES:
            return snapshot
        number = max(number + 1, number * PAGE_BYTES // size)


def _page(snapshot: Snapshot) -> bytes:
    return NodePages(10**6).metrics(snapshot, "/metrics/native", Format.TEXT, gzipped=False).body


def _ours(report: Connection) -> None:
    async def main() -> None:
        server = NodeServer(
            _Still(_snapshot()), series_limit=10**6, max_requests=40, max_connections=256, max_streams=500
        )
        await server.start([Address("127.0.0.1", 0)])
        report.send(server.ports[0])
        await asyncio.Event().wait()

    asyncio.run(main())


def _prometheus_client(report: Connection) -> None:
    from prometheus_client import CollectorRegistry, Gauge, start_http_server

    snapshot, registry = _snapshot(), CollectorRegistry()
    for row in _rows():
        gauge = Gauge(row.family, row.help, ("node", "gpu", "uuid"), registry=registry)
        for card in snapshot.cards:
            gauge.labels(snapshot.node, str(card.gpu.index), card.gpu.uuid).set(1234.5)
    server, thread = start_http_server(0, "127.0.0.1", registry)
    report.send(server.server_port)
    thread.join()


def _bare(report: Connection) -> None:
    page = _page(_snapshot())
    head = f"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: {len(page)}\r\n\r\n"
    whole = head.encode() + page

    class Bare(asyncio.Protocol):
        def connection_made(self, transport: asyncio.BaseTransport) -> None:
            assert isinstance(transport, asyncio.Transport)
            self.transport = transport

        def data_received(self, data: bytes) -> None:
            if data.endswith(b"\r\n\r\n"):
                self.transport.write(whole)

    async def main() -> None:
        server = await asyncio.get_running_loop().create_server(Bare, "127.0.0.1", 0)
        report.send(server.sockets[0].getsockname()[1])
        await asyncio.Event().wait()

    asyncio.run(main())


@contextmanager
def _served(serve: Callable[[Connection], None]) -> Iterator[int]:
    """Run the server in a process of its own, and return its port."""
    ours, theirs = _PROCESSES.Pipe()
    process = _PROCESSES.Process(target=serve, args=(theirs,), daemon=True)
    process.start()
    theirs.close()
    try:
        yield int(ours.recv())
    finally:
        process.kill()
        process.join()


def _loaded(port: int) -> float:
    """Return the answers per second that clients in another process got."""
    ours, theirs = _PROCESSES.Pipe()
    process = _PROCESSES.Process(target=_load, args=(port, theirs), daemon=True)
    process.start()
    theirs.close()
    rate = float(ours.recv())
    process.join()
    return rate


def _load(port: int, report: Connection) -> None:
    async def main() -> int:
        return sum(await asyncio.gather(*(_client(port, begin + SECONDS) for _ in range(CONNECTIONS))))

    begin = monotonic()
    count = asyncio.run(main())
    # Requests still under way at the end are awaited, so that a slow server loses none.
    report.send(count / (monotonic() - begin))


async def _client(port: int, until: float) -> int:
    """Send the next request as soon as the answer has come. Connect again if the server has closed."""
    count = 0
    while monotonic() < until:
        asking = _Asking(until)
        await asyncio.get_running_loop().create_connection(partial(_same, asking), "127.0.0.1", port)
        await asking.closed
        count += asking.count
    return count


def _same(asking: "_Asking") -> "_Asking":
    return asking


class _Asking(asyncio.BufferedProtocol):
    """Reads into the same buffer every time, so that the load costs less than the servers."""

    transport: asyncio.Transport

    def __init__(self, until: float) -> None:
        self.count = 0
        self._until = until
        self.closed: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._buffer = bytearray(1 << 18)
        self._head = b""
        self._left = 0

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self.transport = transport
        transport.write(_REQUEST)

    def get_buffer(self, sizehint: int) -> bytearray:
        return self._buffer

    def buffer_updated(self, nbytes: int) -> None:
        if self._left:
            self._left -= nbytes
        else:
            self._begin(bytes(self._buffer[:nbytes]))
        if self._left == 0 and not self._head:
            self.count += 1
            if monotonic() < self._until:
                self.transport.write(_REQUEST)
            else:
                self.transport.close()

    def connection_lost(self, exc: Exception | None) -> None:
        """A server may close after an answer, but not within one: the count would mean nothing."""
        if self.closed.done():
            return
        if self.count and not self._left and not self._head:
            self.closed.set_result(None)
        else:
            self.closed.set_exception(RuntimeError(f"the answer broke off: {exc!r}"))

    def _begin(self, data: bytes) -> None:
        """Read the head, which may come in pieces, and the part of the body that follows it."""
        self._head += data
        head, end, body = self._head.partition(b"\r\n\r\n")
        if not end:
            return
        fields = (line.partition(b":") for line in head.lower().split(b"\r\n"))
        lengths = [int(value) for name, _, value in fields if name == b"content-length"]
        if not lengths or b" 200 " not in head.partition(b"\r\n")[0]:
            self.closed.set_exception(RuntimeError(f"not an answer to count: {head[:200]!r}"))
            self.transport.abort()
            return
        self._head, self._left = b"", lengths[0] - len(body)


if __name__ == "__main__":
    for figure in run():
        print(f"{figure.name:32} {figure.value:>8}  {figure.target:8} {'ok' if figure.ok else 'BELOW'}")
