"""How long a client may take to send a request and to read the answer."""

import asyncio
from contextlib import AsyncExitStack
from dataclasses import replace

from tests.patience import LoopClock, until
from tests.serve.rig import PATIENT, StubNode, big_page, connected, drained, fetch, serving, slow_reader


async def test_an_unfinished_head_is_cut() -> None:
    limits = replace(PATIENT, head_seconds=0.2, sweep_seconds=0.02)
    async with serving(StubNode(), limits=limits) as server, connected(server) as client:
        client.send(b"GET /metrics HTTP/1.1\r\nHost: te")
        assert await client.rest() == b""


async def test_a_head_that_dribbles_in_is_cut() -> None:
    limits = replace(PATIENT, head_seconds=0.2, sweep_seconds=0.02)
    async with serving(StubNode(), limits=limits) as server, connected(server) as client:

        async def dribble() -> None:
            for byte in b"GET /metrics HTTP/1.1\r\nX-Long: " + b"x" * 10_000:
                client.send(bytes([byte]))
                await asyncio.sleep(0.01)

        dribbling = asyncio.create_task(dribble())
        assert await client.rest() == b""
        dribbling.cancel()


async def test_a_second_head_has_a_deadline_too() -> None:
    async with serving(StubNode()) as server, connected(server) as client:
        clock = LoopClock()
        assert (await client.get("/metrics")).status == 200
        client.send(b"GET /met")
        await fetch(server, "/-/healthy")  # the server has read what was sent before
        clock.set_ahead(PATIENT.head_seconds + PATIENT.sweep_seconds)
        assert await client.rest() == b""


async def test_a_connection_between_requests_outlives_the_head_deadline() -> None:
    async with serving(StubNode()) as server, connected(server) as client, connected(server) as silent:
        clock = LoopClock()
        await client.get("/metrics")
        await until(lambda: server.clients == 2)
        clock.set_ahead(PATIENT.head_seconds + PATIENT.sweep_seconds)
        assert await silent.rest() == b""  # deadlines were checked
        assert (await client.get("/metrics")).status == 200


async def test_an_idle_connection_is_closed() -> None:
    async with (
        serving(StubNode(), limits=replace(PATIENT, idle_seconds=0.2)) as server,
        connected(server) as client,
    ):
        await client.get("/metrics")
        assert await client.rest() == b""


async def test_a_slow_reader_is_cut_while_others_are_served() -> None:
    limits, big = replace(PATIENT, write_seconds=0.3, sweep_seconds=0.02), {"big": big_page()}
    async with serving(StubNode(), dialects=big) as server:
        full = len((await fetch(server, "/metrics/big")).body)
    async with serving(StubNode(), limits=limits, dialects=big) as server, AsyncExitStack() as stack:
        slow = await slow_reader(stack, server.ports[0])
        good = await fetch(server, "/metrics")
        assert good.status == 200
        await until(lambda: not server.clients)
        assert await drained(slow) < full


async def test_a_reader_that_keeps_reading_is_not_cut() -> None:
    """The deadline is that of a page, not of a connection."""
    async with (
        serving(StubNode(), dialects={"big": big_page()}) as server,
        connected(server) as client,
        AsyncExitStack() as stack,
    ):
        clock = LoopClock()
        assert (await client.get("/metrics/big")).status == 200
        await slow_reader(stack, server.ports[0])
        for _ in range(2):
            clock.set_ahead(0.6 * PATIENT.write_seconds)
            assert (await client.get("/metrics/big")).status == 200
        await until(lambda: server.clients == 1)
        assert (await client.get("/-/healthy")).status == 200
