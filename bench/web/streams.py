"""Hundreds of event streams, some of which are not read: what they cost a scrape, and how fresh each is.

python -m bench.web.streams [seconds]
python -m bench.web.streams rounds 20     opens and closes them all so many times, and shows the memory after each
"""

import asyncio
import re
import socket
import statistics
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

STREAMS = 500
ASLEEP = 50
INTERVAL = 1.0
PAUSE_SECONDS = 0.02
EVENTS = b"GET /api/v1/events HTTP/1.1\r\nHost: bench\r\nAccept-Encoding: identity\r\n\r\n"
SCRAPE = b"GET /metrics HTTP/1.1\r\nHost: bench\r\n\r\n"
NUMBER = re.compile(rb"id: \w+-(\d+)\n")


@contextmanager
def demo() -> Iterator[tuple[int, int]]:
    """A demo's port and PID."""
    command = [
        sys.executable,
        "-m",
        "podgpu",
        "demo",
        "--web.listen-address=127.0.0.1:0",
        f"--interval={INTERVAL:.0f}s",
    ]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as process:
        assert process.stdout is not None
        try:
            for line in process.stdout:
                if found := re.search(r"page\s+http://[^:]+:(\d+)", line):
                    yield int(found.group(1)), process.pid
                    break
        finally:
            process.terminate()


async def scrapes(port: int, seconds: float) -> list[float]:
    """How long each scrape took, one after the other over one connection."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port, limit=1 << 22)
    took = []
    end = time.perf_counter() + seconds
    while time.perf_counter() < end:
        start = time.perf_counter()
        writer.write(SCRAPE)
        head = await reader.readuntil(b"\r\n\r\n")
        length = re.search(rb"Content-Length: (\d+)", head)
        assert length is not None
        await reader.readexactly(int(length.group(1)))
        took.append(time.perf_counter() - start)
        await asyncio.sleep(PAUSE_SECONDS)
    writer.close()
    return took


def source(number: int) -> tuple[str, int]:
    """Spread readers over addresses: each may hold a tenth of the streams."""
    return f"127.0.1.{1 + number // 20}", 0


async def follow(number: int, port: int, arrivals: dict[int, float]) -> None:
    """Read one stream, and note when each event was there."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port, limit=1 << 22, local_addr=source(number))
    writer.write(EVENTS)
    tail = b""
    while data := await reader.read(1 << 16):
        now = time.perf_counter()
        tail = tail[-64:] + data
        for number in {int(digits) for digits in NUMBER.findall(tail)}:
            arrivals.setdefault(number, now)
        tail = tail[tail.rfind(b"\n") + 1 :]


def fall_asleep(stack: ExitStack, number: int, port: int) -> None:
    """Ask for a stream and never read it."""
    client = stack.enter_context(socket.socket())
    client.bind(source(number))
    client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    client.connect(("127.0.0.1", port))
    client.sendall(EVENTS)


def spreads(arrivals: list[dict[int, float]]) -> Iterator[float]:
    """For each event, how long after the first reader the last one had it, or a newer one in its place."""
    first, last = max(min(seen) for seen in arrivals), min(max(seen) for seen in arrivals)
    for number in range(first + 1, last + 1):
        times = [min(at for seen, at in arrival.items() if seen >= number) for arrival in arrivals]
        yield max(times) - min(times)


def memory_mib(pid: int) -> float:
    text = Path(f"/proc/{pid}/status").read_text()
    found = re.search(r"VmRSS:\s+(\d+)", text)
    assert found is not None
    return int(found.group(1)) / 1024


def p99(values: list[float]) -> float:
    return statistics.quantiles(values, n=100)[98] * 1000


async def measure(seconds: float) -> None:
    with demo() as (port, pid), ExitStack() as stack:
        await asyncio.sleep(5)
        await scrapes(port, 3)
        alone, before = await scrapes(port, seconds), memory_mib(pid)
        for number in range(ASLEEP):
            fall_asleep(stack, number, port)
        arrivals: list[dict[int, float]] = [{} for _ in range(STREAMS - ASLEEP)]
        readers = []
        # Not all at once: connections that are no streams yet have a cap of their own.
        for number, seen in enumerate(arrivals, ASLEEP):
            readers.append(asyncio.create_task(follow(number, port, seen)))
            await asyncio.sleep(PAUSE_SECONDS)
        await asyncio.sleep(3)
        early = memory_mib(pid)
        beside = await scrapes(port, seconds)
        after = memory_mib(pid)
        lost = sum(reader.done() for reader in readers)
        for reader in readers:
            reader.cancel()
        await asyncio.gather(*readers, return_exceptions=True)
    behind = sorted(spreads(arrivals))
    print(f"scrapes alone: {len(alone)}, median {statistics.median(alone) * 1000:.1f} ms, p99 {p99(alone):.1f} ms")
    print(
        f"beside {STREAMS} streams, {ASLEEP} of them not reading: {len(beside)}, "
        f"median {statistics.median(beside) * 1000:.1f} ms, p99 {p99(beside):.1f} ms"
    )
    print(f"{lost} of the streams that were read were cut")
    print(f"p99 is {p99(beside) / p99(alone):.2f} times that without")
    print(f"memory: {before:.1f} MiB without, {early:.1f} MiB with streams, {after:.1f} MiB {seconds:.0f} s later")
    print(
        f"the last reader of an event was {statistics.median(behind) * 1000:.0f} ms behind the first at the median, "
        f"{behind[-1] * 1000:.0f} ms at most, over {len(behind)} events"
    )


async def rounds(number: int) -> None:
    with demo() as (port, pid):
        await asyncio.sleep(5)
        await scrapes(port, 3)
        print(f"memory: {memory_mib(pid):.1f} MiB before")
        for place in range(1, number + 1):
            readers = []
            for count in range(STREAMS):
                readers.append(asyncio.create_task(follow(count, port, {})))
                await asyncio.sleep(PAUSE_SECONDS)
            await asyncio.sleep(3)
            for reader in readers:
                reader.cancel()
            await asyncio.gather(*readers, return_exceptions=True)
            await asyncio.sleep(3)
            print(f"memory: {memory_mib(pid):.1f} MiB after {place * STREAMS:,} streams", flush=True)


if __name__ == "__main__":
    match sys.argv[1:]:
        case ["rounds", number]:
            asyncio.run(rounds(int(number)))
        case given:
            asyncio.run(measure(float(given[0]) if given else 60.0))
