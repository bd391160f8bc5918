"""Rows of a cluster: over HTTP, and how often they are made."""

import asyncio
import json

from msgspec.structs import replace

from podgpu.model import Cluster
from podgpu.serve.cluster.pages import ClusterRows
from podgpu.views.rows_file import RowsQuery
from tests.serve.cluster.test_server import CLUSTER, StubFeed, get, serving


async def test_a_cluster_serves_its_rows() -> None:
    feed = StubFeed(CLUSTER)
    async with serving(feed) as server:
        before = await get(server, "/api/v1/rows?by=pods")
        feed.publish(replace(CLUSTER, nodes=CLUSTER.nodes[:1], pending=()))
        after = await get(server, "/api/v1/rows?by=pods", If_None_Match=before.headers["etag"])
        refused = await get(server, "/api/v1/rows?by=cards")
    assert {row["name"] for row in json.loads(before.text)["rows"]} == {"train", "serve", "waits"}
    assert [row["name"] for row in json.loads(after.text)["rows"]] == ["train"]
    assert (refused.status, "workloads" in refused.text) == (400, True)


async def test_all_who_wait_share_one_computation() -> None:
    newest = [CLUSTER]
    rows = ClusterRows(lambda: newest[0])
    first, *others = await asyncio.gather(*(rows.page(RowsQuery("pods"), gzipped=False) for _ in range(9)))
    assert all(page is first for page in others)
    assert await rows.page(RowsQuery("pods"), gzipped=False) is first
    newest[0] = replace(CLUSTER, nodes=())
    assert b'"train"' not in (await rows.page(RowsQuery("pods"), gzipped=False)).body


async def test_a_cluster_that_changes_all_the_time_makes_no_computation_for_each_who_waits() -> None:
    def newest() -> Cluster:
        return replace(CLUSTER)

    rows = ClusterRows(newest)
    pages = await asyncio.gather(*(rows.page(RowsQuery("nodes"), gzipped=True) for _ in range(9)))
    assert len({id(page) for page in pages}) == 1


async def test_who_leaves_ends_nothing_for_the_others() -> None:
    rows = ClusterRows(lambda: CLUSTER)
    leaves = asyncio.create_task(rows.page(RowsQuery("gpus"), gzipped=False))
    stays = asyncio.create_task(rows.page(RowsQuery("gpus"), gzipped=False))
    await asyncio.sleep(0)
    leaves.cancel()
    assert b"gpu-a" in (await stays).body


async def test_a_cluster_tells_the_facts_of_a_pod() -> None:
    async with serving(StubFeed(CLUSTER)) as server:
        found = json.loads((await get(server, "/api/v1/facts?pod=ml%2Ftrain")).text)
    assert [place["container"]["pod"] for place in found["places"]] == ["train"]
