"""A whole cluster, served, of which one agent or the store sends what no node can: the others are shown and fresh."""

import asyncio
import json
import logging
import time
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Any

import pytest
from aiohttp import web

from podgpu.agent.loop import Agent
from podgpu.assembly.agent import open_agent
from podgpu.assembly.server import open_cluster_pages
from podgpu.cluster.agent_reader import AgentReader, DirectClient
from podgpu.cluster.discovery import StaticDiscovery
from podgpu.cluster.loop import ClusterLoop
from podgpu.cluster.store.client import Store
from podgpu.cluster.store.nodes import StoreDiscovery
from podgpu.cluster.store.options import StoreOptions
from podgpu.config.precedence import load
from podgpu.option.value import Address
from podgpu.serve.cluster.server import ClusterServer
from podgpu.serve.server import NodeServer
from podgpu.supervise import end
from tests.cluster.store.stub import StubStore, matrix, serving, vector
from tests.fuzz.mutation import NUMBERS, OTHERS, TEXTS
from tests.fuzz.targets import document
from tests.patience import PATIENCE
from tests.serve.rig import connected
from tests.tree import SETTINGS

INTERVAL = 0.2
PAGES = ("/metrics", "/metrics/pod-gpu-map", "/metrics/nodes", "/api/v1/cluster", "/", "/container/metrics")


class BadAgent:
    """Sends whatever it is told to."""

    def __init__(self) -> None:
        self.body = document()
        self.url = ""
        self._sent = asyncio.Event()
        self._runner = web.ServerRunner(web.Server(self._answer))

    async def _answer(self, _request: web.BaseRequest) -> web.Response:
        self._sent.set()
        return web.Response(body=self.body, content_type="application/json")

    async def start(self) -> None:
        await self._runner.setup()
        await web.TCPSite(self._runner, "127.0.0.1", 0).start()
        self.url = f"http://127.0.0.1:{self._runner.addresses[0][1]}"

    async def send(self, body: bytes) -> None:
        """Return when it was asked again."""
        self.body = body
        self._sent.clear()
        async with asyncio.timeout(PATIENCE):
            await self._sent.wait()

    async def die(self) -> None:
        await self._runner.cleanup()


@asynccontextmanager
async def good_agent(name: str) -> AsyncIterator[str]:
    """A real agent over a simulated node."""
    agent = open_agent(load({"source": ["simulator"], "interval": ["100ms"], "node_name": [name]}, {}))
    assert isinstance(agent, Agent)
    server = NodeServer(
        agent,
        series_limit=20_000,
        max_requests=10,
        max_connections=10,
        max_streams=1,
        supervisor=agent.supervisor,
    )
    await server.start([Address("127.0.0.1", 0)])
    running = agent.supervisor.supervise(agent.name, agent.run)
    try:
        yield f"http://127.0.0.1:{server.ports[0]}"
    finally:
        await end(running)
        await server.stop()
        await agent.close()


@asynccontextmanager
async def served(loop: ClusterLoop) -> AsyncIterator[ClusterServer]:
    server = ClusterServer(
        loop,
        open_cluster_pages(load({}, {})),
        max_requests=40,
        max_connections=40,
        max_streams=4,
        supervisor=loop.supervisor,
    )
    await server.start([Address("127.0.0.1", 0)])
    running = loop.supervisor.supervise("nodes", loop.run)
    try:
        yield server
    finally:
        await end(running)
        await server.stop()
        await loop.close()


class Viewer:
    """Reads the cluster's pages as a Prometheus would."""

    def __init__(self, server: ClusterServer) -> None:
        self._server = server

    async def text(self, path: str = "/metrics") -> str:
        until = time.monotonic() + PATIENCE
        while True:
            async with connected(self._server) as client:
                page = await client.get(path)
            if page.status == 200:
                return page.text
            # A machine that stands still for three of these short intervals makes a page too old for a moment.
            assert page.status == 503 and time.monotonic() < until, f"{path}: {page.status} {page.text}"
            await asyncio.sleep(0.05)

    async def value(self, series: str) -> float | None:
        found = [line for line in (await self.text()).splitlines() if line.startswith(series)]
        return float(found[0].rpartition(" ")[2]) if found else None

    async def wait(self, what: str, check: Callable[[str], bool]) -> str:
        page, until = "", time.monotonic() + PATIENCE
        while time.monotonic() < until:
            page = await self.text()
            if check(page):
                return page
            await asyncio.sleep(0.02)
        raise AssertionError(f"no {what}:\n{page[:3000]}")

    async def advances(self, *nodes: str) -> None:
        """Wait until the page has newer numbers of each of these nodes."""
        for node in nodes:
            stamp = f'podgpu_cluster_snapshot_timestamp_seconds{{node="{node}"}}'
            before = await self.value(stamp)
            assert before is not None, f"{node} is not shown"
            until = time.monotonic() + PATIENCE
            while (await self.value(stamp) or 0.0) <= before:
                assert time.monotonic() < until, f"{node} stands still"
                await asyncio.sleep(0.02)


def hostile() -> list[bytes]:
    """Every field of a document at and beyond its bounds, and of wrong types: whole documents of one value each."""
    plain = json.loads(document())
    numbers = sorted({10**400, -1, 2**31, 2**63, 2**64, 1e308, -1e308, *NUMBERS[:12]}, key=str)

    def filled(value: Any, old: Any) -> Any:
        if isinstance(old, dict):
            return {key: filled(value, child) for key, child in old.items()}
        if isinstance(old, list):
            return [filled(value, child) for child in old]
        is_number = isinstance(old, int | float) and not isinstance(old, bool)
        return value if is_number == isinstance(value, int | float) else old

    values: tuple[Any, ...] = (*numbers, *TEXTS)
    whole = [{**filled(value, plain), "schema": 2, "node": "bad"} for value in values]
    odd: tuple[Any, ...] = (*OTHERS, "soon", 10**400, 1e308)
    single = [{**plain, "node": "bad", "taken_at": value} for value in odd]
    none: tuple[Any, ...] = (1, "x", {"a": 1}, [[]], [{"gpu": 1}])
    cards = [{**plain, "node": "bad", "cards": value} for value in none]
    tokens = [document().replace(b'"taken_at":', b'"taken_at":' + each + b',"x":') for each in (b"NaN", b"1e400")]
    return [json.dumps(each).encode() for each in (*whole, *single, *cards)] + [
        *tokens,
        b"\xff" + document(),
        document()[:1000],
    ]


async def test_an_agent_that_sends_anything_and_dies_holds_up_nobody(
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.INFO, "podgpu")
    bad = BadAgent()
    bad.body = json.dumps({**json.loads(document()), "node": "bad", "interval_seconds": INTERVAL}).encode()
    await bad.start()
    async with AsyncExitStack() as stack:
        urls = [await stack.enter_async_context(good_agent(name)) for name in ("good-1", "good-2")]
        client = DirectClient(timeout=2.0)
        stack.push_async_callback(client.close)
        discovery = StaticDiscovery([*urls, bad.url])
        loop = ClusterLoop(
            discovery,
            lambda target: AgentReader(client, target.urls[0]),
            interval=INTERVAL,
            settings=SETTINGS,
        )
        viewer = Viewer(await stack.enter_async_context(served(loop)))
        await viewer.wait("three fresh nodes", lambda page: 'podgpu_cluster_nodes{state="fresh"} 3' in page)
        for number, body in enumerate(hostile()):
            await bad.send(body)
            await viewer.text(PAGES[number % len(PAGES)])
        await viewer.wait("bad node by name", lambda page: 'node="bad"' in page and 'reason="garbage"' in page)
        await viewer.advances("good-1", "good-2")
        await bad.die()
        await viewer.wait("dead node", lambda page: 'reason="unreachable"' in page)
        await viewer.advances("good-1", "good-2")
        assert "podgpu_cluster_errors_total" not in await viewer.text()
    words = [record.getMessage() for record in caplog.records if record.levelno >= logging.WARNING]
    assert set(words) == {"a node cannot be read"}
    reasons = [getattr(record, "fields", {}).get("reason") for record in caplog.records]
    assert reasons.count("unreachable") == 1


class Scraped(StubStore):
    """A store that has scraped two nodes. What it says of the second is up to the test."""

    value = "100"
    clock: str | None = None

    async def handle(self, request: web.BaseRequest) -> web.Response:
        query = str((await request.post())["query"])
        now = time.time()
        clocks = {"good": str(now), "bad": self.clock if self.clock is not None else str(now)}
        if "snapshot_timestamp" in query:
            answer = matrix(
                *(
                    (
                        {"__name__": "podgpu_snapshot_timestamp_seconds", "node": node},
                        [(now - ago, clock) for ago in (INTERVAL, 0)],
                    )
                    for node, clock in clocks.items()
                )
            )
        elif query.startswith("timestamp("):
            answer = vector()
        else:
            answer = vector(*(row for node in clocks for row in _rows(node, self.value if node == "bad" else "100")))
        return web.json_response(answer)


def _rows(node: str, value: str) -> list[tuple[dict[str, str], str]]:
    card = {"node": node, "gpu": "0", "uuid": f"GPU-{node}"}
    names = (
        "power_watts",
        "memory_total_bytes",
        "memory_used_bytes",
        "utilization_ratio",
        "booked_energy_joules_total",
    )
    return [
        ({"__name__": "podgpu_gpu_up", **card}, "1"),
        ({"__name__": "podgpu_gpu_info", "model": "NVIDIA H200", "minor": "²", **card}, "1"),
        ({"__name__": "podgpu_interval_seconds", "node": node}, str(INTERVAL)),
        *(({"__name__": f"podgpu_gpu_{name}", **card}, value) for name in names),
    ]


async def test_a_store_that_answers_anything_holds_up_nobody(caplog: pytest.LogCaptureFixture) -> None:
    async with serving(Scraped()) as store:
        assert isinstance(store, Scraped)
        discovery = StoreDiscovery(Store(StoreOptions(url=store.url)), store.url)
        loop = ClusterLoop(discovery, discovery.open_reader, interval=INTERVAL, settings=SETTINGS)
        async with served(loop) as server:
            viewer = Viewer(server)
            await viewer.wait("two fresh nodes", lambda page: 'podgpu_cluster_nodes{state="fresh"} 2' in page)
            power = 'podgpu_cluster_power_watts{node="bad"'
            for value in ("NaN", "+Inf", "-Inf", "1e400", "1e308", "-1e308"):
                store.value = value
                await viewer.wait(f"gap for {value}", lambda page: power not in page)
                await viewer.advances("good")
                for path in PAGES:
                    await viewer.text(path)
            store.value = "100"
            await viewer.wait("values again", lambda page: power in page)
            for clock in ("+Inf", "1e308", "1e20", "-5"):
                store.clock = clock
                await viewer.wait("the bad node by name", lambda page: 'reason="implausible"' in page)
                await viewer.advances("good")
            store.clock = None
            await viewer.wait("two fresh nodes", lambda page: 'podgpu_cluster_nodes{state="fresh"} 2' in page)
            assert "podgpu_cluster_errors_total" not in await viewer.text()
    words = [record.getMessage() for record in caplog.records if record.levelno >= logging.WARNING]
    assert words == ["a node cannot be read"]
