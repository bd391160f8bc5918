"""What the agents ask of the API server: requests and bytes, counted on the way to a server that plays it.

An agent here is its watch of pods and its search for owners, as the agent has them.
"""

import asyncio
import time
from collections import Counter
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

from bench.figure import Figure
from podgpu.kube.api import ApiServer
from podgpu.kube.object_watch import PodWatch, WatchTiming
from podgpu.kube.workloads import Workloads
from tests.fakeapi.server import FakeApi

AGENTS = 100
PODS = 10  # that come to each node
OWNERS = 20  # Deployments that they belong to, spread over all nodes
QUIET_SECONDS = 10.0
PATIENCE_SECONDS = 60.0
_ROLLOUT = f"API server, a rollout of {AGENTS * PODS} pods"
MANAGED_FIELDS = 1500  # bytes of a pod or owner that podgpu does not need, as a real server sends them


class Counted:
    """Passes connections on and counts the bytes that the server sends."""

    def __init__(self, port: int) -> None:
        self._port = port
        self.received = 0
        self.port = 0

    async def _pass(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        there, back = await asyncio.open_connection("127.0.0.1", self._port)
        await asyncio.gather(_copy(reader, back), self._counting(there, writer), return_exceptions=True)

    async def _counting(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while piece := await reader.read(1 << 16):
            self.received += len(piece)
            writer.write(piece)
        writer.close()

    @asynccontextmanager
    async def open(self) -> AsyncIterator[str]:
        server = await asyncio.start_server(self._pass, "127.0.0.1", 0)
        try:
            yield f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
        finally:
            server.close()


async def _copy(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    while piece := await reader.read(1 << 16):
        writer.write(piece)
    writer.close()


async def run() -> list[Figure]:
    fake = FakeApi(objects=dict(_owners()))
    async with fake:
        way = Counted(int(fake.url.rpartition(":")[2]))
        async with way.open() as url:
            agents = [_Agent(url, number) for number in range(AGENTS)]
            watching = [asyncio.create_task(agent.watch.run()) for agent in agents]
            await _until(lambda: fake.open_watches == AGENTS)
            first, fake.requests = (
                Counter(_kind(seen.path, is_watch=seen.is_watch) for seen in fake.requests),
                [],
            )
            way.received = 0
            await asyncio.sleep(QUIET_SECONDS)
            quiet, quiet_bytes = len(fake.requests), way.received
            rollout = await _rollout(fake, agents, way)
            for task in watching:
                task.cancel()
            await asyncio.gather(*watching, *(agent.close() for agent in agents), return_exceptions=True)
    watch = WatchTiming()
    return [
        Figure(f"API server, {AGENTS} agents start", _words(first)),
        Figure(
            f"API server, {AGENTS} agents at rest for {QUIET_SECONDS:.0f} s",
            f"{quiet} requests, {quiet_bytes} B",
        ),
        Figure("API server, a watch begins anew", f"every {watch.watch:.0f} s"),
        *rollout,
    ]


async def _rollout(fake: FakeApi, agents: list["_Agent"], way: Counted) -> list[Figure]:
    """Every agent gets its pods, and looks for their owners."""
    way.received, began = 0, time.monotonic()
    for number in range(AGENTS * PODS):
        fake.version += 1
        fake.event("ADDED", _pod(number, fake.version))
    sent = way.received
    await _until(lambda: all(agent.pods() for agent in agents))
    by_watch = way.received - sent
    way.received = 0
    await asyncio.gather(*(agent.resolve() for agent in agents))
    seconds = time.monotonic() - began
    asked = Counter(_kind(seen.path, is_watch=seen.is_watch) for seen in fake.requests)
    accepted = Counter(seen.headers.get("Accept", "") for seen in fake.requests if "/namespaces/" in seen.path)
    metadata = sum(count for accept, count in accepted.items() if "PartialObjectMetadata" in accept)
    each = len(agents)
    await asyncio.gather(*(agent.resolve() for agent in agents))
    again = len(fake.requests) - sum(asked.values())
    return [
        # The played server sends every pod to every watch. A real one sends an agent the pods of its node alone.
        Figure(f"{_ROLLOUT}, by the watches", f"{by_watch / AGENTS / AGENTS / PODS:.0f} B a pod"),
        Figure(f"{_ROLLOUT}, owners", f"{_words(asked)}, {sum(asked.values()) / each:.1f} for each agent"),
        Figure(f"{_ROLLOUT}, owners asked for metadata alone", f"{metadata} of {sum(accepted.values())}"),
        Figure(f"{_ROLLOUT}, bytes for an owner", f"{way.received / max(sum(asked.values()), 1):.0f} B"),
        Figure(f"{_ROLLOUT}, until all names were known", f"{seconds:.1f} s"),
        Figure(f"{_ROLLOUT}, the same pods again", f"{again} requests"),
    ]


class _Agent:
    def __init__(self, url: str, number: int) -> None:
        self._api = ApiServer(url)
        self.node = f"node-{number}"
        self.watch = PodWatch(self._api, self.node)
        self._workloads = Workloads(self._api)

    def pods(self) -> bool:
        found = self.watch.pods()
        return found is not None and len(found) == PODS

    async def resolve(self) -> None:
        pods = self.watch.pods() or ()
        until = time.monotonic() + PATIENCE_SECONDS
        while not self._workloads.knows_all(pods) and time.monotonic() < until:
            await self._workloads.resolve(pods)

    async def close(self) -> None:
        await self._workloads.close()
        await self._api.close()


async def _until(good: Callable[[], bool]) -> None:
    for _ in range(int(PATIENCE_SECONDS / 0.05)):
        if good():
            return
        await asyncio.sleep(0.05)


def _kind(path: str, *, is_watch: bool) -> str:
    return "watches" if is_watch else f"{path.rstrip('/').split('/')[-2 if '/namespaces/' in path else -1]}"


def _words(counts: Counter[str]) -> str:
    return ", ".join(f"{count} {name}" for name, count in sorted(counts.items())) or "nothing"


def _owners() -> list[tuple[str, Any]]:
    found: list[tuple[str, Any]] = []
    for number in range(OWNERS):
        name = f"web-{number}"
        above = [
            {
                "apiVersion": "apps/v1",
                "kind": "Deployment",
                "name": name,
                "uid": f"d-{number}",
                "controller": True,
            }
        ]
        more = {"managedFields": "x" * MANAGED_FIELDS}
        replicas = {"metadata": {"name": f"{name}-abc", "uid": f"r-{number}", "ownerReferences": above, **more}}
        deployment = {"metadata": {"name": name, "uid": f"d-{number}", **more}}
        found.append((f"/apis/apps/v1/namespaces/ml/replicasets/{name}-abc", replicas))
        found.append((f"/apis/apps/v1/namespaces/ml/deployments/{name}", deployment))
    return found


def _pod(number: int, version: int) -> dict[str, Any]:
    """Pods of one owner are spread over the nodes, as a scheduler does."""
    owner = (number + number // AGENTS) % OWNERS
    reference = {
        "apiVersion": "apps/v1",
        "kind": "ReplicaSet",
        "name": f"web-{owner}-abc",
        "uid": f"r-{owner}",
        "controller": True,
    }
    metadata = {
        "name": f"web-{owner}-abc-{number}",
        "namespace": "ml",
        "uid": f"pod-{number}",
        "resourceVersion": str(version),
        "ownerReferences": [reference],
        "managedFields": "x" * MANAGED_FIELDS,
    }
    spec = {"nodeName": f"node-{number % AGENTS}", "containers": [{"name": "main", "image": "web"}]}
    return {"metadata": metadata, "spec": spec, "status": {"phase": "Running"}}
