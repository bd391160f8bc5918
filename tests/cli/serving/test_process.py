"""Hundreds of TLS connections must not take a quarter of a MiB each."""

import asyncio
import tracemalloc
from asyncio import sslproto
from contextlib import AsyncExitStack
from pathlib import Path

import pytest

from podgpu.cli._process import shrink_tls_buffers
from podgpu.serve.guard.guard import Guard
from tests.serve.guard.certificates import Authority, web_config
from tests.serve.rig import CountingDialect, StubNode, connected, serving

CONNECTIONS = 20
SERIES = 30_000


async def test_an_idle_tls_connection_is_small_and_a_large_page_still_arrives(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sslproto.SSLProtocol, "max_size", sslproto.SSLProtocol.max_size)  # undone at the end
    shrink_tls_buffers()
    authority = Authority(tmp_path, "authority")
    guard = Guard(web_config(tmp_path, authority.sign("server")))
    big = CountingDialect(series=SERIES)
    async with serving(StubNode(), guard=guard, dialects={"big": big}) as server, AsyncExitStack() as stack:
        tracemalloc.start()
        try:
            for _ in range(CONNECTIONS):
                client = await stack.enter_async_context(connected(server, ssl=authority.client()))
                assert (await client.get("/-/healthy")).status == 200
            await asyncio.sleep(0)
            held = tracemalloc.get_traced_memory()[0] / CONNECTIONS
        finally:
            tracemalloc.stop()
        assert (await client.get("/metrics/big")).body.count(b"\ncounted{") == SERIES
    assert held < 150_000  # both ends, with the client's own context
