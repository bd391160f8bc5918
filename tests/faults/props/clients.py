"""Clients that are many, slow, silent or rude: `python -m tests.faults.props.clients KIND PORT FILE`.

They have a process of their own. They begin before there is a server, and come back when they are cut. How often
something happened to them is written to the file.
"""

import asyncio
import json
import os
import random
import ssl
import sys
from base64 import b64encode
from collections import Counter
from collections.abc import Awaitable, Callable
from contextlib import suppress
from pathlib import Path

MANY = 300
READERS = 60
POLITE = 258  # more than --web.max-connections
TALLY_SECONDS = 0.1
PAUSE_SECONDS = 0.05

_GET = "GET {} HTTP/1.1\r\nHost: faults\r\n{}\r\n"
Wire = tuple[asyncio.StreamReader, asyncio.StreamWriter]
Deed = Callable[[Wire, Counter[str]], Awaitable[None]]


async def _status(wire: Wire) -> str:
    """Read the answer whole, and return its status."""
    reader, _ = wire
    head = (await reader.readuntil(b"\r\n\r\n")).decode()
    length = head.lower().partition("content-length: ")[2].partition("\r")[0]
    await reader.readexactly(int(length or 0))
    return head.split(" ", 2)[1]


async def _ask(wire: Wire, text: str) -> str:
    wire[1].write(text.encode("latin-1"))
    return await _status(wire)


async def storms(wire: Wire, tally: Counter[str]) -> None:
    """Scrape without a pause."""
    for _ in range(50):
        tally[await _ask(wire, _GET.format("/metrics", ""))] += 1


async def asks_politely(wire: Wire, tally: Counter[str]) -> None:
    """Keep the connection, and ask again before it could count as idle."""
    for _ in range(50):
        tally[await _ask(wire, _GET.format("/-/healthy", ""))] += 1
        await asyncio.sleep(0.5)


async def guesses(wire: Wire, tally: Counter[str]) -> None:
    """Try one password after the other."""
    for _ in range(50):
        word = b64encode(f"alice:{random.random()}".encode()).decode()
        tally[await _ask(wire, _GET.format("/metrics", f"Authorization: Basic {word}\r\n"))] += 1
        await asyncio.sleep(0.1)


async def dribbles(wire: Wire, tally: Counter[str]) -> None:
    """Send a head by the byte and never end it."""
    tally["connected"] += 1
    while not wire[0].at_eof():
        wire[1].write(b"G")
        with suppress(TimeoutError):
            await asyncio.wait_for(wire[0].read(1), 0.5)


async def is_silent(wire: Wire, tally: Counter[str]) -> None:
    """Say nothing, and make room for the next one."""
    tally["connected"] += 1
    with suppress(TimeoutError):
        await asyncio.wait_for(wire[0].read(1), 1.0)


async def clings(wire: Wire, tally: Counter[str]) -> None:
    """Say nothing until the connection is cut, and come back later."""
    tally["connected"] += 1
    with suppress(OSError):
        await wire[0].read(1)
    await asyncio.sleep(1)


async def stalls_in_handshake(wire: Wire, tally: Counter[str]) -> None:
    """Begin to greet as TLS does, and stop in the midst of it."""
    wire[1].write(b"\x16\x03\x01\x02\x00\x01")
    tally["connected"] += 1
    await wire[0].read(1)


async def does_not_read(wire: Wire, tally: Counter[str]) -> None:
    """Send requests ahead, and read nothing."""
    wire[1].write(_GET.format("/api/v1/snapshot", "").encode() * 50)
    tally["asked"] += 50
    wire[1].transport.pause_reading()  # type: ignore[attr-defined]
    await asyncio.sleep(3)


async def sends_too_much(wire: Wire, tally: Counter[str]) -> None:
    tally[await _ask(wire, _GET.format("/metrics", f"X-Long: {'x' * 1000}\r\n" * 20))] += 1


async def asks_too_long(wire: Wire, tally: Counter[str]) -> None:
    tally[await _ask(wire, _GET.format("/metrics?" + "name[]=x&" * 2_000, ""))] += 1


async def queries(wire: Wire, tally: Counter[str]) -> None:
    tally[await _ask(wire, _GET.format("/metrics?" + "name[]=x&" * 800, ""))] += 1


async def sends_methods(wire: Wire, tally: Counter[str]) -> None:
    for method in ("DELETE", "PUT", "TRACE", "OPTIONS", "BREW"):
        tally[await _ask(wire, f"{method} /metrics HTTP/1.1\r\nHost: faults\r\n\r\n")] += 1


async def sends_bodies(wire: Wire, tally: Counter[str]) -> None:
    head = f"Content-Length: {1 << 30}\r\n"
    tally[f"body {await _ask(wire, _GET.format('/metrics', head))}"] += 1


async def takes_documents(wire: Wire, tally: Counter[str]) -> None:
    for path in ("/usage", "/container/metrics", "/container/metrics?missing=null&pod=p"):
        tally[await _ask(wire, _GET.format(path, "Accept-Encoding: gzip\r\n"))] += 1


async def comes_from_elsewhere(wire: Wire, tally: Counter[str]) -> None:
    """Do what a browser does on behalf of a strange page, and for a name that was made to lead here."""
    strange = "Sec-Fetch-Site: cross-site\r\nContent-Length: 0\r\n"
    head = f"POST /-/release?seconds=60 HTTP/1.1\r\nHost: 127.0.0.1\r\n{strange}\r\n"
    tally[f"release {await _ask(wire, head)}"] += 1
    rebound = "GET /api/v1/snapshot HTTP/1.1\r\nHost: evil.example\r\n\r\n"
    tally[f"snapshot {await _ask(wire, rebound)}"] += 1


KINDS: dict[str, tuple[int, tuple[Deed, ...]]] = {
    "storm": (64, (storms,)),
    "polite": (POLITE, (asks_politely,)),
    "guessing": (24, (guesses,)),
    "slow": (MANY, (dribbles,)),
    "silent": (MANY, (is_silent,)),
    "clinging": (READERS, (clings,)),
    "handshake": (MANY, (stalls_in_handshake,)),
    "unread": (READERS, (does_not_read,)),
    "long": (4, (sends_too_much, asks_too_long)),
    "rude": (4, (sends_methods, sends_bodies)),
    "query": (4, (queries,)),
    "documents": (32, (takes_documents,)),
    "elsewhere": (2, (comes_from_elsewhere,)),
}


# Where they come from, unless that is where the good clients are.
SOURCES = {
    "polite": ("127.0.0.2", "127.0.0.3"),
    "guessing": tuple(f"127.0.1.{number}" for number in range(1, 13)),
}


async def _visit(port: int, source: str, deeds: tuple[Deed, ...], tally: Counter[str]) -> None:
    while True:
        for deed in deeds:
            with suppress(OSError, asyncio.IncompleteReadError, ssl.SSLError):
                wire = await asyncio.open_connection("127.0.0.1", port, local_addr=(source, 0))
                try:
                    await deed(wire, tally)
                finally:
                    wire[1].transport.abort()
            await asyncio.sleep(PAUSE_SECONDS)


async def main(kind: str, port: int, file: Path) -> None:
    tally: Counter[str] = Counter()
    count, deeds = KINDS[kind]
    sources = SOURCES.get(kind, ("127.0.0.1",))
    visits = [
        asyncio.create_task(_visit(port, sources[number % len(sources)], deeds, tally)) for number in range(count)
    ]
    while not any(visit.done() for visit in visits):
        part = file.with_suffix(".part")
        part.write_text(json.dumps(tally))
        part.replace(file)
        await asyncio.sleep(TALLY_SECONDS)
    await asyncio.gather(*visits)


if __name__ == "__main__":
    os.nice(5)  # the machine may be small, and it is the server's patience that is tried
    asyncio.run(main(sys.argv[1], int(sys.argv[2]), Path(sys.argv[3])))
