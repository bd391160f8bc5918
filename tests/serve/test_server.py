import asyncio
import socket
import subprocess
import sys
from contextlib import AsyncExitStack
from dataclasses import replace

import pytest

from podgpu.errors import UserError
from podgpu.option.value import Address
from tests.patience import PATIENCE
from tests.ports import quiet_port
from tests.serve.rig import (
    PATIENT,
    CountingDialect,
    StubNode,
    big_page,
    connected,
    drained,
    fetch,
    serving,
    slow_reader,
)

ANY = Address("127.0.0.1", 0)


async def test_each_address_answers_in_its_dialect() -> None:
    other = Address("127.0.0.1", 0, "counted")
    async with serving(StubNode(), ANY, other, dialects={"counted": CountingDialect()}) as server:
        first, second = server.ports
        assert first != second
        async with connected(server, first) as client:
            native = await client.get("/metrics")
            counted = await client.get("/metrics/counted")
        async with connected(server, second) as client:
            by_port = await client.get("/metrics")
    assert b"podgpu_build_info" in native.body
    assert counted.body == by_port.body
    assert b"counted" in by_port.body


async def test_a_page_is_rendered_once_for_all_clients() -> None:
    dialect = CountingDialect()
    async with serving(StubNode(), dialects={"counted": dialect}) as server:
        await asyncio.gather(*(fetch(server, "/metrics/counted") for _ in range(20)))
    assert dialect.calls == 1


async def test_an_unknown_dialect_is_refused_with_the_known_ones() -> None:
    with pytest.raises(UserError, match="no dialect 'martian'; choose one of: native"):
        async with serving(StubNode(), Address("127.0.0.1", 0, "martian")):
            pass


async def test_a_port_in_use_is_named() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        with pytest.raises(UserError, match=f"cannot listen on 127.0.0.1:{port}: the port is in use; .*") as caught:
            async with serving(StubNode(), ANY, Address("127.0.0.1", port)):
                pass
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("host", ["192.0.2.1", "no-such-host.invalid"])
async def test_an_address_that_cannot_be_bound_is_named(host: str) -> None:
    with pytest.raises(UserError, match=f"cannot listen on {host}:0: .*--web.listen-address"):
        async with serving(StubNode(), Address(host, 0)):
            pass


async def test_a_failed_start_leaves_nothing_listening() -> None:
    port = quiet_port()
    with pytest.raises(UserError):
        async with serving(StubNode(), Address("127.0.0.1", port), Address("192.0.2.1", 0)):
            pass
    with socket.socket() as probe:
        assert probe.connect_ex(("127.0.0.1", port)) != 0


async def test_stop_lets_a_request_finish() -> None:
    node = StubNode()
    node.let_go.clear()
    limits = replace(PATIENT, stop_seconds=2 * PATIENCE)
    async with serving(node, limits=limits) as server, connected(server) as client, connected(server) as idle:
        client.ask("/-/release", "POST")
        await node.asked.wait()
        stopping = asyncio.create_task(server.stop())
        ready = await idle.get("/-/ready")
        with pytest.raises(OSError, match=r"refused|Connect call failed"):
            await fetch(server, "/metrics")
        await asyncio.sleep(0.1)
        assert not stopping.done()
        node.let_go.set()
        answer = await client.answer()
        await asyncio.wait_for(stopping, PATIENCE)
        assert await client.rest() == b""
    assert ready.status == 503
    assert answer.status == 200
    assert answer.headers["connection"] == "close"


async def test_stop_does_not_wait_for_ever() -> None:
    node = StubNode()
    node.let_go.clear()
    patient = replace(PATIENT, stop_seconds=0.1)  # nothing else cuts a client
    async with (
        serving(node, limits=patient, dialects={"big": big_page()}) as server,
        connected(server) as stuck,
        AsyncExitStack() as stack,
    ):
        full = len((await fetch(server, "/metrics/big")).body)
        slow = await slow_reader(stack, server.ports[0])
        stuck.ask("/-/release", "POST")
        await asyncio.wait_for(node.asked.wait(), PATIENCE)
        await asyncio.wait_for(server.stop(), PATIENCE)
        assert await stuck.rest() == b""
        assert await drained(slow) < full


async def test_stop_closes_idle_connections_at_once() -> None:
    async with (
        serving(StubNode(), limits=replace(PATIENT, stop_seconds=2 * PATIENCE)) as server,
        connected(server) as silent,
        connected(server) as idle,
    ):
        await idle.get("/metrics")
        await asyncio.wait_for(server.stop(), PATIENCE)
        assert await idle.rest() == b""
        assert await silent.rest() == b""


def test_the_server_does_without_aiohttp() -> None:
    # It would take a third of the memory that an agent may have.
    look = "import sys, podgpu.serve.server; print([name for name in sys.modules if 'aiohttp' in name])"
    assert subprocess.check_output([sys.executable, "-c", look], text=True) == "[]\n"
