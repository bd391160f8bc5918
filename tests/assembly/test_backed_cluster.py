"""A cluster with an API server and a store: agents give the present, the store whatever they do not."""

import json
import time
from dataclasses import dataclass
from typing import Any

from aiohttp import web

from tests.assembly.test_cluster import agent_pod, cluster_of, document, only, opened
from tests.cluster.fleet import Fleet
from tests.cluster.store.stub import StubStore, error, matrix, serving, vector
from tests.fakeapi.recorded import NODE


@dataclass
class ScrapedStore(StubStore):
    """It has one card of one node, as it was a moment ago."""

    async def handle(self, request: web.BaseRequest) -> web.Response:
        query = str((await request.post())["query"])
        return web.Response(body=json.dumps(_answer(query)).encode())


def _answer(query: str) -> dict[str, Any]:
    now = time.time()
    if "podgpu_snapshot_timestamp_seconds" in query:
        labels = {"__name__": "podgpu_snapshot_timestamp_seconds", "node": NODE}
        return matrix((labels, [(now - 6, str(now - 6)), (now - 1, str(now - 1))]))
    card = {"node": NODE, "gpu": "0", "uuid": "GPU-1"}
    if "podgpu_container_info" in query and "timestamp(" in query:
        return vector()
    if "timestamp(" in query:
        return vector((card, str(now - 1)))
    return vector(({"__name__": "podgpu_gpu_up", **card}, "1"))


async def test_an_agent_is_believed_while_it_answers_and_the_store_has_its_part() -> None:
    fake = cluster_of(agent_pod())
    async with serving(ScrapedStore()) as store, Fleet(1, lambda _, __: document(NODE)) as fleet:
        fake.pods_at = {"podgpu-x1": fleet.urls[0]}
        async with opened(fake, prometheus_url=[store.url]) as cluster:
            node, parts = only(cluster), {part.name: part.up for part in cluster.loop.cluster.parts}
            assert cluster.history is not None
    assert (node.state, node.origin) == ("fresh", "agent")
    assert parts["agents"] and parts["store"]


async def test_the_store_shows_a_node_whose_agent_cannot_be_reached() -> None:
    async with (
        serving(ScrapedStore()) as store,
        opened(cluster_of(agent_pod()), prometheus_url=[store.url]) as cluster,
    ):
        node = only(cluster)
        assert (await cluster.loop.full(NODE)).stored
    assert (node.state, node.origin) == ("fresh", "store")


async def test_without_agents_nothing_is_missing_while_the_store_answers() -> None:
    async with serving(ScrapedStore()) as store, opened(cluster_of(), prometheus_url=[store.url]) as cluster:
        node, parts = only(cluster), cluster.loop.cluster.parts
    assert (node.state, node.origin) == ("fresh", "store")
    assert node.allocatable
    assert [part.name for part in parts if part.fault or not part.up] == []


async def test_a_store_that_fails_is_told_beside_agents_that_work() -> None:
    fake = cluster_of(agent_pod())
    broken = StubStore(status=422, answer=error("execution", "too many samples"))
    async with serving(broken) as store, Fleet(1, lambda _, __: document(NODE)) as fleet:
        fake.pods_at = {"podgpu-x1": fleet.urls[0]}
        async with opened(fake, prometheus_url=[store.url]) as cluster:
            node, seen = only(cluster), cluster.loop.cluster
    assert (node.state, node.origin) == ("fresh", "agent")
    assert seen.insight is not None
    assert [problem.text.partition(":")[0] for problem in seen.insight.problems] == ["store"]
