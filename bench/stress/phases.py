"""`make stress`: serves a node of 250 pods while others abuse the server, and counts the probes and scrapes that fail.

The server, the attackers and the two good clients each have a process of their own. The first attackers come from the
address of the good clients, the last ones from others. Words on the command line choose attacks, and `--server` another
server for the same pages.
"""

import argparse
import asyncio
import multiprocessing
import os
import signal
import socket
import threading
import time
from base64 import b64encode
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from itertools import count
from multiprocessing.connection import Connection
from pathlib import Path
from typing import NamedTuple, Protocol

from bench.footprint import family, memory
from bench.stress import past, served, tenants
from bench.stress.peers import SERVERS
from podgpu.cli._process import collect_seldom
from podgpu.option.value import Address
from podgpu.serve.server import HttpServer

SECONDS = float(os.environ.get("PODGPU_STRESS_SECONDS", "30"))
SLOW, SILENT_PER_SECOND, UNREAD, DOCUMENTS = 2000, 300, 60, 32
POLITE, PATIENT, ADDRESSES = 258, 60, 12
PROBE_SECONDS, SCRAPE_SECONDS = 0.25, 1.0
PATIENCE = 1.0  # that of a kubelet's probe
P99_SECONDS = 0.2
GROWTH_MIB = 64.0
CLUSTER_MIB, AGENT_MIB = 512.0, 256.0  # of the chart's pods

_GET = "GET {} HTTP/1.1\r\nHost: stress\r\n{}\r\n"
_PROCESSES = multiprocessing.get_context("spawn")
Attack = Callable[[int], Awaitable[None]]
Wire = tuple[asyncio.StreamReader, asyncio.StreamWriter]


class ServerProcess(NamedTuple):
    """Where a server listens, and which process it is."""

    port: int
    pid: int


class Startable(Protocol):
    ports: tuple[int, ...]

    async def start(self, addresses: Sequence[Address], /) -> None: ...


def _serve(made: Callable[[], Startable | HttpServer], report: Connection) -> None:
    async def main() -> None:
        collect_seldom()  # as the agent does
        server = made()
        await server.start([Address("127.0.0.1", 0)])
        report.send(ServerProcess(server.ports[0], getattr(server, "pid", os.getpid())))
        await asyncio.Event().wait()

    asyncio.run(main())


async def slow_clients(port: int) -> None:
    """Each sends its request by the byte, and comes back when it is cut."""
    loop = asyncio.get_running_loop()

    async def client() -> None:
        while True:
            with suppress(OSError), socket.socket() as wire:
                wire.settimeout(0)
                await loop.sock_connect(wire, ("127.0.0.1", port))
                while True:
                    await loop.sock_sendall(wire, b"G")
                    await asyncio.sleep(1)
            await asyncio.sleep(0.01)

    await asyncio.gather(*(client() for _ in range(SLOW)))


async def silent_clients(port: int) -> None:
    loop = asyncio.get_running_loop()
    wires: list[socket.socket] = []
    began = time.monotonic()
    while True:
        while len(wires) < (time.monotonic() - began) * SILENT_PER_SECOND:
            wires.append(wire := socket.socket())
            wire.settimeout(0)
            with suppress(OSError):
                await loop.sock_connect(wire, ("127.0.0.1", port))
            if len(wires) > SILENT_PER_SECOND * 10:
                wires[len(wires) - SILENT_PER_SECOND * 10].close()
        await asyncio.sleep(0.01)


async def unread_answers(port: int) -> None:
    """Each sends requests ahead, and reads nothing."""
    loop = asyncio.get_running_loop()

    async def client() -> None:
        while True:
            with suppress(OSError), socket.socket() as wire:
                wire.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
                wire.settimeout(0)
                await loop.sock_connect(wire, ("127.0.0.1", port))
                await loop.sock_sendall(wire, _GET.format("/api/v1/snapshot", "").encode() * 50)
                while True:
                    await asyncio.sleep(0.5)
                    await loop.sock_sendall(wire, b"\r\n")

    await asyncio.gather(*(client() for _ in range(UNREAD)))


async def documents(port: int) -> None:
    """Each asks for one document after the other, half of them for a part of it."""

    async def client(number: int) -> None:
        path = "/usage" if number % 2 else f"/container/metrics?missing=null&pod=pod-{number}"
        while True:
            with suppress(OSError, asyncio.IncompleteReadError):
                reader, writer = await asyncio.open_connection("127.0.0.1", port)
                for paths in (path, "/container/metrics") * 50:
                    writer.write(_GET.format(paths, "Accept-Encoding: gzip\r\n").encode())
                    head = (await reader.readuntil(b"\r\n\r\n")).decode().lower()
                    await reader.readexactly(int(head.partition("content-length: ")[2].partition("\r")[0]))
                    await asyncio.sleep(0.1)
                writer.close()

    await asyncio.gather(*map(client, range(DOCUMENTS)))


async def everything(port: int) -> None:
    await asyncio.gather(slow_clients(port), silent_clients(port), unread_answers(port), documents(port))


async def polite_clients(port: int) -> None:
    """Each keeps its connection and asks twice a second: none ever seems idle. They come from two addresses."""

    async def client(number: int) -> None:
        while True:
            with suppress(OSError, asyncio.IncompleteReadError):
                async with _connected(port, f"127.0.0.{2 + number % 2}") as wire:
                    while True:
                        await _answered(wire, "/-/healthy")
                        await asyncio.sleep(0.5)
            await asyncio.sleep(0.05)

    await asyncio.gather(*map(client, range(POLITE)))


async def patient_readers(port: int) -> None:
    """Each asks for what others must answer first, and they do not."""

    async def client(number: int) -> None:
        path = f"history?pod=ml/pod-{number}" if number % 2 else f"snapshot?node=gpu-{number % 4}"
        while True:
            with suppress(OSError, asyncio.IncompleteReadError):
                async with _connected(port, "127.0.0.1") as wire:
                    await _answered(wire, f"/api/v1/{path}")
            await asyncio.sleep(0.1)

    await asyncio.gather(*map(client, range(PATIENT)))


def guesses(login: Callable[[str], str]) -> Attack:
    """Let strangers at a dozen addresses try one login after the other."""

    async def attack(port: int) -> None:
        async def stranger(number: int) -> None:
            for turn in count():
                with suppress(OSError, asyncio.IncompleteReadError):
                    async with _connected(port, f"127.0.1.{1 + number % ADDRESSES}") as wire:
                        await _answered(wire, "/metrics", login(f"{number}-{turn}"))
                await asyncio.sleep(0.05)

        await asyncio.gather(*map(stranger, range(4 * ADDRESSES)))

    return attack


@asynccontextmanager
async def _connected(port: int, source: str) -> AsyncIterator[Wire]:
    wire = await asyncio.open_connection("127.0.0.1", port, local_addr=(source, 0))
    try:
        yield wire
    finally:
        wire[1].transport.abort()


async def _answered(wire: Wire, path: str, fields: str = "") -> None:
    reader, writer = wire
    writer.write(_GET.format(path, fields).encode())
    head = (await reader.readuntil(b"\r\n\r\n")).decode().lower()
    await reader.readexactly(int(head.partition("content-length: ")[2].partition("\r")[0]))


def _by_password(word: str) -> str:
    return f"Authorization: Basic {b64encode(f'{served.USER}:{word}'.encode()).decode()}\r\n"


def _by_token(word: str) -> str:
    return f"Authorization: Bearer {word}\r\n"


class Phase(NamedTuple):
    """An attack on a server, and what the scraper shows it. `most_mib` is the chart's limit, where that is near."""

    attack: Attack | None
    server: Callable[[], Startable | HttpServer] = served.node
    login: str = ""
    most_mib: float | None = None


PHASES = {
    "none": Phase(None),
    f"{SILENT_PER_SECOND} silent connections a second": Phase(silent_clients),
    f"{SLOW:,} slow clients": Phase(slow_clients),
    f"{UNREAD} clients that read nothing": Phase(unread_answers),
    f"{DOCUMENTS} clients of documents": Phase(documents),
    "all of them": Phase(everything),
    f"{POLITE} polite clients of two addresses": Phase(polite_clients),
    f"{PATIENT} readers of a store and of agents that hang": Phase(patient_readers, served.cluster),
    f"wrong passwords from {ADDRESSES} addresses": Phase(
        guesses(_by_password), served.guarded, _by_password(served.PASSWORD)
    ),
    f"strangers' tokens from {ADDRESSES} addresses": Phase(guesses(_by_token), served.guarded, _by_token(served.TOKEN)),
    f"none, on a cluster of {past.NODES:,} nodes": Phase(None, past.ClusterWithPast, most_mib=CLUSTER_MIB),
    f"{past.READERS} readers of the past of {past.NODES:,} nodes": Phase(
        past.readers_of_the_past, past.ClusterWithPast, most_mib=CLUSTER_MIB
    ),
    **{name: Phase(None, server, most_mib=AGENT_MIB) for name, server in tenants.TENANTS.items()},
}


def _attack(name: str, port: int) -> None:
    attack = PHASES[name].attack
    if attack is not None:
        asyncio.run(attack(port))  # type: ignore[arg-type]


@dataclass
class Tally:
    """How long each answer took, and how many did not come.

    `work` is how long the server itself computed while the slowest was waited for. On a busy machine it waits for a
    core most of the time, which no server can help.
    """

    path: str
    every: float
    server: int
    login: str = ""
    seconds: list[float] = field(default_factory=list)
    failed: int = 0
    work: float = 0.0

    def run(self, port: int, until: float) -> None:
        due = time.monotonic()
        while due < until:
            time.sleep(max(0.0, due - time.monotonic()))
            began, worked = time.monotonic(), _worked_seconds(self.server)
            try:
                self._ask(port)
                self.seconds.append(time.monotonic() - began)
                if self.seconds[-1] == max(self.seconds):
                    self.work = _worked_seconds(self.server) - worked
            except (OSError, ValueError):
                self.failed += 1
            due = max(due + self.every, time.monotonic())

    def _ask(self, port: int) -> None:
        with socket.create_connection(("127.0.0.1", port), timeout=PATIENCE) as wire:
            wire.sendall(_GET.format(self.path, f"Connection: close\r\n{self.login}").encode())
            with wire.makefile("rb") as file:
                if b" 200 " not in file.readline():
                    raise ValueError
                file.read()

    @property
    def p99(self) -> float:
        return sorted(self.seconds)[int(len(self.seconds) * 0.99)] if self.seconds else PATIENCE


def _worked_seconds(pid: int) -> float:
    """Return the CPU time of the server's first thread, which answers."""
    return int(Path(f"/proc/{pid}/schedstat").read_text().split()[0]) / 1e9


def _memory_mib(pids: Sequence[int]) -> float:
    """The proportional set size."""
    return memory(pids) / (1 << 20)


def _played(name: str, peer: str | None) -> tuple[Tally, Tally, float, float]:
    """Run one attack against a server of its own: podgpu's, or the peer's."""
    ours, theirs = _PROCESSES.Pipe()
    phase = PHASES[name]
    made = phase.server if peer is None else SERVERS[peer]
    server = _PROCESSES.Process(target=_serve, args=(made, theirs), daemon=True)
    server.start()
    port, pid = ours.recv()
    scrapes = Tally("/metrics", SCRAPE_SECONDS, pid, phase.login)
    Tally("/metrics", SCRAPE_SECONDS, pid, phase.login).run(port, time.monotonic() + 0.1)
    probes = Tally("/-/healthy", PROBE_SECONDS, pid)
    # An agent's children read for it. Those of a cluster's server play its nodes.
    measured = [pid] if pid == server.pid else family(pid)
    before = peak = _memory_mib(measured)
    attackers = _PROCESSES.Process(target=_attack, args=(name, port), daemon=True)
    attackers.start()
    until = time.monotonic() + SECONDS
    threads = [threading.Thread(target=load.run, args=(port, until)) for load in (probes, scrapes)]
    for thread in threads:
        thread.start()
    while any(thread.is_alive() for thread in threads):
        time.sleep(0.1)
        peak = max(peak, _memory_mib(measured))
    if pid != server.pid:
        os.kill(pid, signal.SIGTERM)
    for process in (attackers, server):
        process.kill()
        process.join()
    return probes, scrapes, before, peak


def main() -> int:
    passed = True
    of_each = "failed | p99 | slowest, work in it"
    print(f"| attack | probes {of_each} | scrapes {of_each} | memory |\n|---|---|---|---|---|---|---|---|")
    parser = argparse.ArgumentParser()
    parser.add_argument("words", nargs="*", help="attacks whose names contain one of them")
    parser.add_argument("--server", choices=SERVERS, help="in place of podgpu's own")
    chosen = parser.parse_args()
    for name, phase in PHASES.items():
        if chosen.words and not any(word in name for word in chosen.words):
            continue
        if chosen.server and phase.server is not served.node:
            continue
        probes, scrapes, before, peak = _played(name, chosen.server)
        cells = [name]
        for load in (probes, scrapes):
            cells += [f"{load.failed} of {len(load.seconds) + load.failed}", f"{load.p99 * 1e3:.0f} ms"]
            cells += [f"{max(load.seconds, default=PATIENCE) * 1e3:.0f} ms, {load.work * 1e3:.0f} ms"]
            passed &= not load.failed and load.p99 <= P99_SECONDS
        passed &= peak - before <= GROWTH_MIB if phase.most_mib is None else peak <= phase.most_mib
        print(f"| {' | '.join(cells)} | {before:.0f} → {peak:.0f} MiB |", flush=True)
    return 0 if passed else 1
