"""A process that reads a fleet and measures itself: `python -m bench.reader 1000 [tls]`. It writes figures as JSON.

With `tls` the agents are read by TLS, with a token.
"""

import asyncio
import json
import sys
import time
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from weakref import ref

from bench.heart import Heart
from podgpu.cli._process import (
    FEWER_GC_OBJECTS,
    allow_connections,
    collect_seldom,
    shrink_tls_buffers,
)
from podgpu.cluster.agent_reader import AgentReader, DirectClient, open_login
from podgpu.cluster.discovery import StaticDiscovery
from podgpu.cluster.login_options import LoginOptions
from podgpu.cluster.loop import ClusterLoop
from podgpu.config import Config
from podgpu.insight import InsightSettings
from podgpu.net.login import Login
from podgpu.option.value import Address
from podgpu.serve.cluster.server import ClusterServer
from podgpu.serve.cluster.views import register_cluster_pages
from tests.serve.guard.certificates import Authority

PATHS = ("/api/v1/cluster", "/metrics")
ROUNDS = 3
MIB = 1024 * 1024


async def main(size: int, *, secured: bool) -> dict[str, float]:
    collect_seldom(FEWER_GC_OBJECTS)
    shrink_tls_buffers()
    allow_connections()
    with TemporaryDirectory() as folder:
        pair, login = _credentials(Path(folder)) if secured else ((), open_login(LoginOptions()))
        return await _measured(size, pair, login)


def _credentials(folder: Path) -> tuple[tuple[str, ...], Login]:
    """The agents' certificate and key, and how to log in to them."""
    authority = Authority(folder, "authority")
    pair = authority.sign("fleet")
    (folder / "token").write_text("token")
    options = LoginOptions(ca_file=authority.cert, server_name="localhost", token_file=folder / "token")
    return (str(pair.cert), str(pair.key)), open_login(options)


async def _measured(size: int, pair: tuple[str, ...], login: Login) -> dict[str, float]:
    async with fleet(size, *pair) as (urls, change):
        client, turn = DirectClient(timeout=30.0, login=login), asyncio.Lock()
        loop = ClusterLoop(
            StaticDiscovery(urls),
            lambda place: AgentReader(client, place.urls[0], turn=turn),
            interval=15.0,
            settings=InsightSettings(idle_after=1800.0),
        )
        server = ClusterServer(
            loop,
            register_cluster_pages(Config().of, 20_000),
            max_requests=40,
            max_connections=256,
            max_streams=500,
        )
        await server.start([Address("127.0.0.1", 0)])
        heart = Heart()
        began = time.process_time()
        figures = {"first": await _first(loop, server)}
        figures["first, work"] = time.process_time() - began
        for name, number in (("few", size // 100), ("all", size)):
            rounds = [await _refresh(loop, server, change, number) for _ in range(ROUNDS)]
            figures |= {
                name: min(wall for wall, _ in rounds),
                f"{name}, work": min(work for _, work in rounds),
            }
        figures |= await _documents(server)
        figures |= {"blocked": heart.longest, "work": heart.work}
        figures["memory"] = _memory()
        heart.stop()
        await server.stop()
        await loop.close()
        await client.close()
        return figures


async def _first(loop: ClusterLoop, server: ClusterServer) -> float:
    """From nothing to both documents, plain and compressed."""
    began = time.monotonic()
    await loop.round()
    assert all(node.state == "fresh" for node in loop.cluster.nodes)
    for path in PATHS:
        for gzipped in (False, True):
            await _get(server.ports[0], path, gzipped=gzipped)
    return time.monotonic() - began


async def _refresh(loop: ClusterLoop, server: ClusterServer, change: "Change", number: int) -> tuple[float, float]:
    """From the first request to an agent until both documents are ready again, plain and compressed.

    Return the time that passed, and the CPU time of this process.
    """
    await change(number)
    # Weakly: to free a thousand nodes at once would be work that the reader itself spreads.
    before = [ref(node) for node in loop.cluster.nodes]
    began, worked = time.monotonic(), time.process_time()
    await loop.round()
    await server.prepare()
    seconds, work = time.monotonic() - began, time.process_time() - worked
    assert sum(old() is not node for old, node in zip(before, loop.cluster.nodes, strict=True)) == number
    return seconds, work


async def _documents(server: ClusterServer) -> Mapping[str, float]:
    found: dict[str, float] = {}
    for path in PATHS:
        for gzipped in (False, True):
            times = []
            for _ in range(ROUNDS):
                began = time.monotonic()
                size = await _get(server.ports[0], path, gzipped=gzipped)
                times.append(time.monotonic() - began)
            name = f"{path}{' gzip' if gzipped else ''}"
            found |= {name: min(times), f"{name} bytes": size}
    return found


async def _get(port: int, path: str, *, gzipped: bool) -> int:
    """Read a page in another thread, as another process would, and return its size."""
    return await asyncio.to_thread(_read, port, path, gzipped)


def _read(port: int, path: str, gzipped: bool) -> int:  # noqa: FBT001
    import socket

    with socket.create_connection(("127.0.0.1", port)) as connection:
        coding = "gzip" if gzipped else "identity"
        connection.sendall(
            f"GET {path} HTTP/1.1\r\nHost: b\r\nConnection: close\r\nAccept-Encoding: {coding}\r\n\r\n".encode()
        )
        size = 0
        buffer = bytearray(1 << 20)
        while got := connection.recv_into(buffer):
            size += got
        return size


class Change:
    def __init__(self, fleet: asyncio.subprocess.Process) -> None:
        self._fleet = fleet

    async def __call__(self, number: int) -> None:
        assert self._fleet.stdin and self._fleet.stdout
        self._fleet.stdin.write(b"%d\n" % number)
        await self._fleet.stdout.readline()


@asynccontextmanager
async def fleet(size: int, *pair: str) -> AsyncIterator[tuple[list[str], Change]]:
    fleet = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "bench.fleet", str(size), *pair),
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        limit=1 << 20,
    )
    try:
        assert fleet.stdout
        yield json.loads(await fleet.stdout.readline()), Change(fleet)
    finally:
        fleet.terminate()
        await fleet.wait()


def _memory() -> float:
    """The proportional set size in MiB."""
    lines = Path("/proc/self/smaps_rollup").read_text().splitlines()
    return sum(int(line.split()[1]) * 1024 for line in lines if line.startswith("Pss:")) / MIB


if __name__ == "__main__":
    print(json.dumps(asyncio.run(main(int(sys.argv[1]), secured="tls" in sys.argv[2:]))))
