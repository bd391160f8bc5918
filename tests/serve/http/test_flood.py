"""Clients that come in great numbers and never finish a request, from one address and from many."""

import asyncio
import socket
from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack, suppress

import pytest

from podgpu.option.value import Address
from podgpu.serve.http.connections import SPARED_SCRAPERS
from podgpu.serve.http.request import Limits
from podgpu.serve.server import NodeServer
from tests.patience import PATIENCE, until
from tests.serve.rig import StubNode, connected, fetch, serving

PLACES = 16  # for connections; sixteen times as many may wait


async def dial(port: int, source: str = "127.0.0.1") -> socket.socket:
    wire = socket.socket()
    wire.setblocking(False)
    wire.bind((source, 0))
    try:
        await asyncio.get_running_loop().sock_connect(wire, ("127.0.0.1", port))
    except BaseException:
        wire.close()
        raise
    return wire


async def silent(port: int, wires: list[socket.socket]) -> None:
    """About a thousand new connections a second, none of which says anything."""
    while True:
        for _ in range(10):
            wire = await dial(port)
            wires.append(wire)  # at once, so that none is lost when this ends
        await asyncio.sleep(0.01)


async def slow(port: int, wires: list[socket.socket]) -> None:
    """More clients than may wait, each a few bytes at a time, that come back whenever they are cut."""
    loop = asyncio.get_running_loop()

    async def one_of_them() -> None:
        while True:
            with suppress(OSError):
                wires.append(wire := await dial(port))
                while True:
                    await loop.sock_sendall(wire, b"GET /metrics HTTP/1.1\r\nX-Slow: ")
                    await asyncio.sleep(0.05)
            await asyncio.sleep(0.02)

    async with asyncio.TaskGroup() as group:
        for _ in range(PLACES * 16):
            group.create_task(one_of_them())


async def ask_at_once(server: NodeServer, path: str) -> int:
    """Connect and ask in one step, as a probe or a scraper of another process does, whatever this loop has to do."""
    with socket.create_connection(("127.0.0.1", server.ports[0])) as wire:
        wire.sendall(f"GET {path} HTTP/1.1\r\nHost: test\r\nConnection: close\r\n\r\n".encode())
        wire.setblocking(False)
        async with asyncio.timeout(PATIENCE):
            head = await asyncio.get_running_loop().sock_recv(wire, 1 << 16)
    return int(head.split()[1])


@pytest.mark.parametrize("attack", [silent, slow])
async def test_no_probe_and_no_scrape_fails(
    attack: Callable[[int, list[socket.socket]], Awaitable[None]],
) -> None:
    wires: list[socket.socket] = []
    async with serving(StubNode(), max_connections=PLACES) as server:
        flood = asyncio.ensure_future(attack(server.ports[0], wires))
        answers = []
        try:
            await until(lambda: len(wires) > PLACES * 16)
            for path in ("/-/healthy", "/metrics") * 10:
                answers.append(await ask_at_once(server, path))
                await asyncio.sleep(0.02)  # for the flood to go on
        finally:
            flood.cancel()
            await asyncio.gather(flood, return_exceptions=True)
            for wire in wires:
                wire.close()
    assert answers == [200] * 20


def is_open(wire: socket.socket) -> bool:
    """Whether the server, which closes sockets in this very process, has left it open."""
    try:
        wire.recv(1)
    except BlockingIOError:
        return True
    except ConnectionError:
        pass
    return False


async def all_accepted(server: NodeServer, source: str = "127.0.0.1") -> None:
    """Get a response: whoever connected before was accepted before."""
    async with connected(server, local_addr=(source, 0)) as client:
        assert (await client.get("/-/healthy")).status == 200


async def test_an_address_has_half_of_the_places_at_most() -> None:
    async with serving(StubNode(), max_connections=2, limits=Limits(settle_seconds=0)) as server:
        port = server.ports[0]
        patient = await dial(port)
        others = [await dial(port, "127.0.0.2") for _ in range(40)]
        await all_accepted(server)
        states = [is_open(wire) for wire in others]
        assert is_open(patient)
    assert sum(states) == 16
    assert states[:15] == [True] * 15, "the youngest make room"
    for wire in (patient, *others):
        wire.close()


async def test_under_pressure_the_largest_crowd_makes_room() -> None:
    async with serving(StubNode(), max_connections=2, limits=Limits(settle_seconds=0)) as server:
        port = server.ports[0]
        crowd = [await dial(port, "127.0.0.2") for _ in range(16)]
        few = [await dial(port, f"127.0.0.{number}") for number in range(3, 19)]
        await all_accepted(server)  # by the place that is one too many
        assert [is_open(wire) for wire in crowd].count(False) == 1
        assert all(map(is_open, few))
    for wire in (*crowd, *few):
        wire.close()


async def test_a_client_that_has_behaved_is_preferred() -> None:
    async with serving(StubNode(), max_connections=2, limits=Limits(settle_seconds=0)) as server:
        port = server.ports[0]
        assert (await fetch(server, "/metrics")).status == 200  # from 127.0.0.1
        scraper = [await dial(port) for _ in range(4)]
        strangers = [await dial(port, f"127.0.1.{number}") for number in range(1, 40)]
        await all_accepted(server, "127.0.2.1")
        assert all(map(is_open, scraper))
    for wire in (*scraper, *strangers):
        wire.close()


async def test_a_request_in_pieces_is_answered() -> None:
    async with serving(StubNode()) as server, connected(server) as client:
        for byte in b"GET /-/healthy HTTP/1.1\r\nHost: localhost\r\n\r\n":
            client.send(bytes([byte]))
            await asyncio.sleep(0.001)
        assert (await client.answer()).status == 200
        assert (await client.get("/-/healthy")).status == 200


async def test_a_client_that_leaves_leaves_no_descriptor() -> None:
    async with serving(StubNode()) as server:
        for _ in range(20):
            async with connected(server) as client:
                client.send(b"GET")
        await until(lambda: not server.clients)


async def probed(server: NodeServer, path: str) -> int:
    assert server.probe_address is not None
    async with asyncio.timeout(PATIENCE), connected(server, server.probe_address.port) as client:
        return (await client.get(path)).status


async def test_the_probe_address_has_places_of_its_own() -> None:
    async with AsyncExitStack() as stack:
        node = StubNode()
        node.let_go.clear()
        server = await stack.enter_async_context(
            serving(node, max_connections=2, probe_address=Address("127.0.0.1", 0))
        )
        for _ in range(2):
            client = await stack.enter_async_context(connected(server))
            client.ask("/-/release", "POST")
        await until(lambda: len(node.released) == 2)
        assert (await fetch(server, "/-/healthy")).status == 503
        paths = ("/-/healthy", "/healthz", "/-/ready", "/metrics", "/", "/api/v1/snapshot", "/-/release")
        assert [await probed(server, path) for path in paths] == [200, 200, 200, 200, 404, 404, 404]
        node.let_go.set()


async def polite(port: int, source: str, path: str, wires: list[socket.socket]) -> None:
    """Keep a connection, ask on it several times a second, and come back when it is closed."""
    loop = asyncio.get_running_loop()
    while True:
        with suppress(OSError):
            wires.append(wire := await dial(port, source))
            while True:
                await loop.sock_sendall(wire, f"GET {path} HTTP/1.1\r\nHost: test\r\n\r\n".encode())
                if not await loop.sock_recv(wire, 1 << 16):
                    break
                await asyncio.sleep(0.1)
        await asyncio.sleep(0.02)


@pytest.mark.parametrize("sources", [("127.0.0.2", "127.0.0.3"), ("127.0.0.1",)])
@pytest.mark.parametrize("path", ["/-/healthy", "/metrics"])
async def test_polite_clients_in_great_numbers_keep_out_nobody(sources: tuple[str, ...], path: str) -> None:
    wires: list[socket.socket] = []
    async with serving(StubNode(), max_connections=PLACES) as server, asyncio.TaskGroup() as group:
        port = server.ports[0]
        crowd = [
            group.create_task(polite(port, sources[number % len(sources)], path, wires)) for number in range(PLACES + 2)
        ]
        await until(lambda: server.clients >= PLACES)
        answers = []
        for asked in ("/-/healthy", "/metrics") * 10:
            answers.append((await fetch(server, asked)).status)
            await asyncio.sleep(0.02)
        for client in crowd:
            client.cancel()
    for wire in wires:
        wire.close()
    assert answers == [200] * 20


async def test_a_scraper_keeps_its_connection_beside_a_crowd() -> None:
    async with serving(StubNode(), max_connections=4) as server, AsyncExitStack() as stack:
        port = server.ports[0]
        scraper = await stack.enter_async_context(connected(server))
        assert (await scraper.get("/metrics")).status == 200
        for number in range(2, 40):  # each from an address of its own: none has more than the scraper
            stranger = await stack.enter_async_context(connected(server, port, local_addr=(f"127.0.1.{number}", 0)))
            assert (await stranger.get("/-/healthy")).status == 200
        assert (await scraper.get("/metrics")).status == 200


async def test_who_scrapes_on_many_connections_keeps_a_few_of_them() -> None:
    async with serving(StubNode(), max_connections=SPARED_SCRAPERS + 4) as server, AsyncExitStack() as stack:
        clients = [await stack.enter_async_context(connected(server)) for _ in range(SPARED_SCRAPERS + 4)]
        for client in clients:
            assert (await client.get("/metrics")).status == 200
        for number in range(2, 5):
            other = await stack.enter_async_context(connected(server, local_addr=(f"127.0.1.{number}", 0)))
            assert (await other.get("/-/healthy")).status == 200
        assert [await client.rest() for client in clients[SPARED_SCRAPERS : SPARED_SCRAPERS + 3]] == [b""] * 3
        for client in clients[:SPARED_SCRAPERS]:
            assert (await client.get("/metrics")).status == 200
