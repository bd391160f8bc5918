"""`make stress`: serves a node of 250 pods while others abuse the server, and counts the probes and scrapes that fail.

The server, the attackers and the two good clients each have a process of their own. All come from the same address.
"""

import asyncio
import multiprocessing
import os
import socket
import sys
import threading
import time
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass, field
from multiprocessing.connection import Connection
from pathlib import Path

from podgpu.assembly import collector
from podgpu.catalog import CATALOG
from podgpu.catalog.row import Scope
from podgpu.config import Config
from podgpu.model import Booking, Claim, ContainerRef, Device, Gpu, Reading, Snapshot, Tenant
from podgpu.option.address import Address
from podgpu.serve.menu import menu
from podgpu.serve.server import Server
from tests.tree import card

SECONDS = float(os.environ.get("PODGPU_STRESS_SECONDS", "30"))
GPUS, PODS = 8, 250
SLOW, SILENT_PER_SECOND, UNREAD, DOCUMENTS = 2000, 300, 60, 32
PROBE_SECONDS, SCRAPE_SECONDS = 0.25, 1.0
PATIENCE = 1.0  # that of a kubelet's probe
P99_SECONDS = 0.2
GROWTH_MIB = 64.0

_GET = "GET {} HTTP/1.1\r\nHost: stress\r\n{}\r\n"
_PROCESSES = multiprocessing.get_context("spawn")
Attack = Callable[[int], Awaitable[None]]


class Changing:
    """A node with a new snapshot every second."""

    ready = True

    def __init__(self) -> None:
        self._current = _snapshot(time.time())

    @property
    def snapshot(self) -> Snapshot:
        if (now := time.time()) - self._current.taken_at >= 1:
            self._current = _snapshot(now)
        return self._current

    async def changed(self, seen: Snapshot) -> Snapshot:
        await asyncio.Event().wait()
        return seen

    async def release(self, seconds: float) -> bool:
        return seconds > 0


def _snapshot(at: float) -> Snapshot:
    rows = [row for row in CATALOG if row.scope is Scope.GPU and not row.label_names]
    cards = []
    for number in range(GPUS):
        gpu = Gpu(uuid=f"GPU-{number:08x}-0000-4000-8000-000000000000", index=number, model="NVIDIA H200")
        refs = [ContainerRef("team", f"pod-{n}", "main", f"uid-{n}") for n in range(number, PODS, GPUS)]
        booking = Booking(method="measured", memory_bytes=1 << 30, sm_ratio=0.01, allocated_ratio=0.03)
        tenants = [
            Tenant(container=ref, booking=booking, claims=(Claim(gpu=gpu.uuid, container=ref),))
            for ref in refs
        ]
        readings = tuple(Reading(row.name, at % 1000) for row in rows)
        cards.append(card(Device(gpu=gpu, readings=readings), tenants=tenants))
    return Snapshot(node="stress", taken_at=at, interval_seconds=1.0, version="0", cards=tuple(cards))


def _serve(report: Connection) -> None:
    async def main() -> None:
        collector.relax()  # as the agent does
        server = Server(
            Changing(),
            series_limit=20_000,
            max_requests=40,
            max_connections=256,
            max_streams=500,
            menu=menu(Config().of),
        )
        await server.start([Address("127.0.0.1", 0)])
        report.send(server.ports[0])
        await asyncio.Event().wait()

    asyncio.run(main())


async def slow_clients(port: int) -> None:
    """Each sends its request by the byte, and comes back when it is cut."""
    loop = asyncio.get_running_loop()

    async def one() -> None:
        while True:
            with suppress(OSError), socket.socket() as wire:
                wire.settimeout(0)
                await loop.sock_connect(wire, ("127.0.0.1", port))
                while True:
                    await loop.sock_sendall(wire, b"G")
                    await asyncio.sleep(1)
            await asyncio.sleep(0.01)

    await asyncio.gather(*(one() for _ in range(SLOW)))


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

    async def one() -> None:
        while True:
            with suppress(OSError), socket.socket() as wire:
                wire.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
                wire.settimeout(0)
                await loop.sock_connect(wire, ("127.0.0.1", port))
                await loop.sock_sendall(wire, _GET.format("/api/v1/snapshot", "").encode() * 50)
                while True:
                    await asyncio.sleep(0.5)
                    await loop.sock_sendall(wire, b"\r\n")

    await asyncio.gather(*(one() for _ in range(UNREAD)))


async def documents(port: int) -> None:
    """Each asks for one document after the other, half of them for a part of it."""

    async def one(number: int) -> None:
        path = "/usage" if number % 2 else f"/container/metrics?missing=null&pod=pod-{number}"
        while True:
            with suppress(OSError, asyncio.IncompleteReadError):
                reader, writer = await asyncio.open_connection("127.0.0.1", port)
                for paths in (path, "/container/metrics") * 50:
                    writer.write(_GET.format(paths, "Accept-Encoding: gzip\r\n").encode())
                    head = (await reader.readuntil(b"\r\n\r\n")).decode()
                    await reader.readexactly(int(head.partition("Content-Length: ")[2].partition("\r")[0]))
                    await asyncio.sleep(0.1)
                writer.close()

    await asyncio.gather(*map(one, range(DOCUMENTS)))


async def everything(port: int) -> None:
    await asyncio.gather(slow_clients(port), silent_clients(port), unread_answers(port), documents(port))


ATTACKS: dict[str, Attack | None] = {
    "nobody else": None,
    f"{SILENT_PER_SECOND} silent connections a second": silent_clients,
    f"{SLOW:,} slow clients": slow_clients,
    f"{UNREAD} clients that read nothing": unread_answers,
    f"{DOCUMENTS} clients of documents": documents,
    "all of them": everything,
}


def _attack(name: str, port: int) -> None:
    attack = ATTACKS[name]
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
            wire.sendall(_GET.format(self.path, "Connection: close\r\n").encode())
            with wire.makefile("rb") as file:
                if b" 200 " not in file.readline():
                    raise ValueError
                file.read()

    @property
    def p99(self) -> float:
        return sorted(self.seconds)[int(len(self.seconds) * 0.99)] if self.seconds else PATIENCE


def _worked_seconds(pid: int) -> float:
    """Return the processor time of the server, which has one thread."""
    return int(Path(f"/proc/{pid}/schedstat").read_text().split()[0]) / 1e9


def _resident_mib(pid: int) -> float:
    return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * os.sysconf("SC_PAGESIZE") / (1 << 20)


def _phase(name: str) -> tuple[Tally, Tally, float, float]:
    """Run one attack against a server of its own."""
    ours, theirs = _PROCESSES.Pipe()
    server = _PROCESSES.Process(target=_serve, args=(theirs,), daemon=True)
    server.start()
    port = ours.recv()
    pid = server.pid or 0
    Tally("/metrics", SCRAPE_SECONDS, pid).run(port, time.monotonic() + 0.1)
    probes, scrapes = Tally("/-/healthy", PROBE_SECONDS, pid), Tally("/metrics", SCRAPE_SECONDS, pid)
    before = peak = _resident_mib(pid)
    attackers = _PROCESSES.Process(target=_attack, args=(name, port), daemon=True)
    attackers.start()
    until = time.monotonic() + SECONDS
    threads = [threading.Thread(target=one.run, args=(port, until)) for one in (probes, scrapes)]
    for thread in threads:
        thread.start()
    while any(thread.is_alive() for thread in threads):
        time.sleep(0.1)
        peak = max(peak, _resident_mib(pid))
    for process in (attackers, server):
        process.kill()
        process.join()
    return probes, scrapes, before, peak


def main() -> int:
    passed = True
    of_each = "failed | p99 | slowest, work in it"
    print(f"| attack | probes {of_each} | scrapes {of_each} | memory |\n|---|---|---|---|---|---|---|---|")
    for name in ATTACKS:
        probes, scrapes, before, peak = _phase(name)
        cells = [name]
        for one in (probes, scrapes):
            cells += [f"{one.failed} of {len(one.seconds) + one.failed}", f"{one.p99 * 1e3:.0f} ms"]
            cells += [f"{max(one.seconds, default=PATIENCE) * 1e3:.0f} ms, {one.work * 1e3:.0f} ms"]
            passed &= not one.failed and one.p99 <= P99_SECONDS
        passed &= peak - before <= GROWTH_MIB
        print(f"| {' | '.join(cells)} | {before:.0f} → {peak:.0f} MiB |", flush=True)
    return 0 if passed else 1


if __name__ == "__main__":
    sys.exit(main())
