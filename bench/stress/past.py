"""A cluster's server with a thousand nodes and a whole hour of them, and the readers of that hour."""

import asyncio
import random
import time
from collections.abc import Sequence
from contextlib import AsyncExitStack, suppress

from msgspec.structs import replace

from bench.reader import fleet
from bench.stress.served import CAPS
from podgpu.assembly.server import open_cluster_history, open_cluster_pages
from podgpu.cli._process import FEWER_GC_OBJECTS, allow_connections, answer_promptly, save_memory
from podgpu.cluster.agent_reader import AgentReader, DirectClient, open_login
from podgpu.cluster.discovery import StaticDiscovery
from podgpu.cluster.login_options import LoginOptions
from podgpu.cluster.loop import ClusterLoop
from podgpu.config import Config
from podgpu.history.in_memory import HOUR, InMemoryHistory
from podgpu.insight import InsightSettings, conclude_cluster, conclude_node
from podgpu.model import Card, Cluster, ClusterNode, Snapshot
from podgpu.model.document import decode
from podgpu.option.value import Address
from podgpu.serve.cluster.server import ClusterServer
from podgpu.supervise import brief
from podgpu.views.cluster.json import slim
from podgpu.views.json import encode
from tests.history.crowded_node import crowded_snapshots

NODES, PODS, MOMENTS, STEP = 1000, 10, 15, 240.0
INTERVAL = 15.0
READERS = 80
SETTINGS = InsightSettings(idle_after=1800.0)
_NAME = "0123456789"
_GET = "GET {} HTTP/1.1\r\nHost: stress\r\n{}\r\n"


class ClusterWithPast:
    """All agents have news in each interval."""

    ports: tuple[int, ...] = ()

    async def start(self, addresses: Sequence[Address], /) -> None:
        save_memory(FEWER_GC_OBJECTS)
        answer_promptly()
        allow_connections()
        self._open = AsyncExitStack()
        urls, self._change = await self._open.enter_async_context(fleet(NODES))
        client, turn = DirectClient(timeout=30.0, login=open_login(LoginOptions())), asyncio.Lock()
        loop = ClusterLoop(
            StaticDiscovery(urls),
            lambda place: AgentReader(client, place.urls[0], turn=turn),
            interval=INTERVAL,
            settings=SETTINGS,
        )
        history = open_cluster_history(Config())
        assert history is not None
        await _fill(history)
        await loop.round()
        assert all(node.state == "fresh" for node in loop.cluster.nodes)
        server = ClusterServer(loop, open_cluster_pages(Config()), past=history, **CAPS)
        await server.start(addresses)
        self.ports = server.ports
        self._tasks = [
            brief(loop.run()),
            brief(history.follow(loop.cluster, loop.changed)),
            brief(self._news()),
        ]

    async def _news(self) -> None:
        while True:
            await asyncio.sleep(INTERVAL)
            await self._change(NODES)


async def _fill(history: InMemoryHistory[Cluster, ClusterNode]) -> None:
    now = time.time()
    number = 0
    async for snapshot in crowded_snapshots(MOMENTS, 30.0):
        await history.keep(_cluster(encode(slim(_with_pods(snapshot))), now - HOUR + number * STEP))
        number += 1


def _cluster(text: bytes, at: float) -> Cluster:
    """Nodes that share nothing, as those that are read from agents."""
    nodes = tuple([_node(decode(text), f"{number:010}") for number in range(NODES)])
    return conclude_cluster(Cluster(taken_at=at, version="1", interval_seconds=INTERVAL, nodes=nodes), SETTINGS)


def _node(snapshot: Snapshot, name: str) -> ClusterNode:
    node = ClusterNode(name=name, state="fresh", origin="agent", snapshot=replace(snapshot, node=name))
    return conclude_node(node, SETTINGS)


def _with_pods(snapshot: Snapshot) -> Snapshot:
    def cut(card: Card) -> Card:
        return replace(card, tenants=card.tenants[: 2 if card.gpu.index < 2 else 1])

    return replace(snapshot, node=_NAME, cards=tuple(map(cut, snapshot.cards)), pods=snapshot.pods[:PODS])


async def readers_of_the_past(port: int) -> None:
    """Each asks for one moment after the other. Some leave midway, some read slowly, some want it uncompressed."""

    async def client(number: int) -> None:
        chance = random.Random(number)
        while True:
            with suppress(OSError, asyncio.IncompleteReadError):
                reader, writer = await asyncio.open_connection("127.0.0.1", port)
                try:
                    while True:
                        await _read(reader, writer, number, chance)
                finally:
                    writer.transport.abort()
            await asyncio.sleep(0.1)

    await asyncio.gather(*map(client, range(READERS)))


async def _read(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, number: int, chance: random.Random) -> None:
    at = time.time() - chance.uniform(0.0, HOUR - STEP)
    path = f"/api/v1/rows?by=pods&at={at}" if number % 4 == 3 else f"/api/v1/history?at={at}"
    writer.write(_GET.format(path, "" if number % 8 == 0 else "Accept-Encoding: gzip\r\n").encode())
    head = (await reader.readuntil(b"\r\n\r\n")).decode().lower()
    left = int(head.partition("content-length: ")[2].partition("\r")[0])
    while left:
        left -= len(await reader.read(min(left, 1 << 16)))
        if number % 8 == 1:
            raise ConnectionAbortedError  # it leaves
        if number % 8 == 2:
            await asyncio.sleep(0.1)
    await asyncio.sleep(1.0 if " 503 " in head.partition("\r")[0] else 0.1)
