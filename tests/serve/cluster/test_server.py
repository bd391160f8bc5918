"""The cluster's server over real sockets."""

import asyncio
import gzip
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager

import msgspec
import pytest
from msgspec.structs import replace

from podgpu.assembly.server import open_cluster_pages
from podgpu.config.precedence import load
from podgpu.errors import UserError
from podgpu.feed import Feed
from podgpu.insight import reconclude
from podgpu.model import Cluster, ClusterNode, PendingPod, Snapshot
from podgpu.option.value import Address
from podgpu.serve.cluster.pages import BillMaker, ClusterFeed, FitMaker, UsageHistory
from podgpu.serve.cluster.server import ClusterServer
from podgpu.views.cluster.json import decode
from tests.cluster.nodes import card, fresh, snapshot, tenant
from tests.patience import until
from tests.serve.rig import Answer, connected
from tests.tree import SETTINGS

A = fresh("gpu-a", card("GPU-a", tenant("ml/train", 0.5)))
B = fresh("gpu-b", card("GPU-b", tenant("web/serve")))
LOST = ClusterNode(name="gpu-c", state="failed", reason="timeout", detail="No answer within 5 s. <b>Look</b>.")
CLUSTER = reconclude(
    Cluster(
        taken_at=1_700_000_000.0,
        version="1.0",
        name="east",
        nodes=(A, B, LOST),
        pending=(PendingPod(namespace="ml", name="waits", asks={"nvidia.com/gpu": "2"}),),
    ),
    SETTINGS,
)


class StubFeed(Feed[Cluster]):
    ready = True
    interval = 5.0
    seconds_behind = 0.0

    @property
    def cluster(self) -> Cluster:
        return self.newest

    async def full(self, name: str) -> Snapshot:
        if name != "gpu-a":
            raise UserError(f"nothing reads the GPUs of a node {name!r}")
        return snapshot("gpu-a")


@asynccontextmanager
async def serving(
    feed: ClusterFeed,
    dialect: str = "native",
    history: UsageHistory | None = None,
    bills: BillMaker | None = None,
    fits: FitMaker | None = None,
    **flags: list[str],
) -> AsyncIterator[ClusterServer]:
    server = ClusterServer(
        feed,
        open_cluster_pages(load(flags, {})),
        max_requests=40,
        max_connections=100,
        max_streams=10,
        history=history,
        bills=bills,
        fits=fits,
    )
    await server.start([Address("127.0.0.1", 0, dialect)])
    try:
        yield server
    finally:
        await server.stop()


async def get(server: ClusterServer, path: str, **headers: str) -> Answer:
    async with connected(server) as client:
        return await client.get(path, **headers)


def names(page: Answer) -> set[str]:
    assert page.status == 200
    return {line.split()[2] for line in page.text.splitlines() if line.startswith("# TYPE")}


async def test_a_client_chooses_by_name_and_by_group() -> None:
    async with serving(StubFeed(CLUSTER)) as server:
        some = await get(server, "/metrics?name[]=podgpu_cluster_gpus&name[]=podgpu_nothing")
        packed = await get(server, "/metrics?name[]=podgpu_cluster_gpus", Accept_Encoding="gzip")
        waiting = await get(server, "/metrics/native?collect[]=waiting")
        mapped = await get(server, "/metrics/pod-gpu-map?collect[]=pods")
        none = await get(server, "/metrics/nodes?name[]=podgpu_up")
        refused = await get(server, "/metrics?collect[]=capacty")
    assert names(some) == {"podgpu_cluster_gpus"} and some.text.count("podgpu_cluster_gpus{") == 2
    assert gzip.decompress(packed.body) == some.body
    assert names(waiting) == {"podgpu_cluster_pending_pods", "podgpu_cluster_pending_requests"}
    assert names(mapped) == {"pod_and_gpu_map_info"} and names(none) == set()
    assert (refused.status, refused.text) == (400, "there is no group 'capacty'; did you mean capacity?\n")


async def test_names_are_allowed_and_denied() -> None:
    deny = ["podgpu_cluster_build_info", "gpu_a_*"]
    async with serving(StubFeed(CLUSTER), series_allow=["podgpu_cluster_*", "gpu_*_info"], series_deny=deny) as server:
        own, mapped = await get(server, "/metrics"), await get(server, "/metrics/pod-gpu-map")
        nodes = await get(server, "/metrics/nodes")
    assert "podgpu_cluster_gpus" in names(own) and "podgpu_cluster_build_info" not in names(own)
    assert names(mapped) == set() and names(nodes) == {"gpu_b_info"}


async def test_the_document_is_joined_from_the_nodes() -> None:
    async with serving(StubFeed(CLUSTER)) as server:
        plain = await get(server, "/api/v1/cluster")
        packed = await get(server, "/api/v1/cluster", Accept_Encoding="gzip")
    assert decode(plain.body) == CLUSTER
    assert packed.headers["content-encoding"] == "gzip" and gzip.decompress(packed.body) == plain.body
    assert packed.headers["etag"] != plain.headers["etag"]


async def test_a_client_that_has_the_document_gets_it_again_only_if_it_changed() -> None:
    feed = StubFeed(CLUSTER)
    async with serving(feed) as server:
        before = await get(server, "/api/v1/cluster")
        async with connected(server) as client:
            client.ask("/api/v1/cluster", If_None_Match=before.headers["etag"])
            assert (await client.answer(head_only=True)).status == 304
        feed.publish(replace(CLUSTER, nodes=(A, replace(B, ready=True), LOST)))
        await server.prepare()
        after = await get(server, "/api/v1/cluster", If_None_Match=before.headers["etag"])
    assert [node.ready for node in decode(after.body).nodes] == [None, True, None]


async def test_a_node_that_leaves_or_comes_keeps_the_order() -> None:
    feed = StubFeed(replace(CLUSTER, nodes=(B, LOST)))
    async with serving(feed) as server:
        await get(server, "/api/v1/cluster")
        feed.publish(replace(CLUSTER, nodes=(A, B)))
        await server.prepare()
        after = await get(server, "/api/v1/cluster")
    assert [node.name for node in decode(after.body).nodes] == ["gpu-a", "gpu-b"]


async def test_dialects_show_all_nodes() -> None:
    async with serving(StubFeed(CLUSTER)) as server:
        mapped = (await get(server, "/metrics/pod-gpu-map")).text
        nodes = (await get(server, "/metrics/nodes")).text
        containers = msgspec.json.decode((await get(server, "/container/metrics")).body)
        some = msgspec.json.decode((await get(server, "/container/metrics?node=gpu-b")).body)
        none = await get(server, "/container/metrics?node=other")
    assert mapped.count("# HELP pod_and_gpu_map_info ") == 1 and mapped.count("pod_and_gpu_map_info{") == 2
    assert 'node="gpu-a",pod_name="train"' in mapped
    assert "gpu_a_info{" in nodes and "gpu_b_info{" in nodes
    assert [container["node_name"] for container in containers] == ["gpu-a", "gpu-b"]
    assert [container["node_name"] for container in some] == ["gpu-b"]
    assert none.text == "[]\n"


async def test_an_address_may_speak_a_dialect() -> None:
    async with serving(StubFeed(CLUSTER), "pod-gpu-map") as server:
        assert "pod_and_gpu_map_info{" in (await get(server, "/metrics")).text


async def test_old_numbers_do_not_pass_for_new_ones() -> None:
    stale = replace(A, state="stale", reason="timeout")
    async with serving(StubFeed(replace(CLUSTER, nodes=(stale,)))) as server:
        containers = await get(server, "/container/metrics")
        metrics = (await get(server, "/metrics")).text
    assert containers.text == "[]\n"
    assert "podgpu_cluster_gpus{" in metrics and "podgpu_cluster_busy_gpus{" not in metrics


async def test_the_page_lists_every_node_and_escapes_what_others_say() -> None:
    async with serving(StubFeed(CLUSTER)) as server:
        page = await get(server, "/")
    assert page.headers["content-type"].startswith("text/html")
    assert all(f"\n{name} " in page.text for name in ("gpu-a", "gpu-b", "gpu-c"))
    assert "&lt;b&gt;Look&lt;/b&gt;" in page.text and "1 pod waits for a GPU: ml/waits" in page.text


async def test_without_scripts_a_gpu_has_its_own_page() -> None:
    async with serving(StubFeed(CLUSTER)) as server:
        page = await get(server, "/?gpu=GPU-b")
        none = await get(server, "/?gpu=GPU-x")
    assert page.headers["content-type"].startswith("text/html") and "script-src" in str(page.headers)
    assert "<b>gpu-b</b>" in page.text and "Who is on it" in page.text
    assert "web/serve" in page.text and "ml/train" not in page.text
    assert "\ngpu-a " in none.text


async def test_the_snapshot_of_a_node_is_passed_on() -> None:
    async with serving(StubFeed(CLUSTER)) as server:
        found = await get(server, "/api/v1/snapshot?node=gpu-a")
        missing = await get(server, "/api/v1/snapshot?node=other")
        unnamed = await get(server, "/api/v1/snapshot")
    assert (found.status, missing.status, unnamed.status) == (200, 404, 400)
    assert msgspec.json.decode(found.body)["node"] == "gpu-a"


async def test_it_is_ready_after_the_first_round() -> None:
    feed = StubFeed(CLUSTER)
    feed.ready = False
    async with serving(feed) as server:
        assert (await get(server, "/-/ready")).status == 503
        assert (await get(server, "/-/healthy")).status == 200
        feed.ready = True
        assert (await get(server, "/-/ready")).status == 200


async def test_healthz_says_what_zxporter_said() -> None:
    async with serving(StubFeed(CLUSTER)) as server:
        assert (await get(server, "/healthz")).text.strip() == "OK"


class StubHistory:
    def __init__(self) -> None:
        self.asked: list[tuple[str, str, int]] = []

    async def of(self, namespace: str, pod: str, seconds: int) -> dict[str, list[tuple[float, float]]]:
        if pod == "lost":
            raise UserError("store_late: no answer")
        self.asked.append((namespace, pod, seconds))
        return {"busy": [(1.0, 0.5)]}


async def test_a_pods_past_comes_from_the_store() -> None:
    history = StubHistory()
    async with serving(StubFeed(CLUSTER), history=history) as server:
        found = await get(server, "/api/v1/history?pod=ml/train&hours=24")
        assert (found.status, msgspec.json.decode(found.body)) == (200, {"busy": [[1.0, 0.5]]})
        assert (await get(server, "/api/v1/history?pod=ml/lost&hours=24")).status == 502
        hours = ("0", "x", "745", "9999999999", "000000001999999", "٣")
        for query in ("", "pod=train&hours=1", *(f"pod=ml/a&hours={each}" for each in hours)):
            assert (await get(server, f"/api/v1/history?{query}")).status == 400
    assert history.asked == [("ml", "train", 86400)]
    async with serving(StubFeed(CLUSTER)) as server:
        assert b"--prometheus.url" in (await get(server, "/api/v1/history?pod=ml/train&hours=24")).body


class HangingFeed(StubFeed):
    """Its agents and its store do not answer until they are told to."""

    def __init__(self, cluster: Cluster) -> None:
        super().__init__(cluster)
        self.asked: list[object] = []
        self.answered = asyncio.Event()

    async def full(self, name: str) -> Snapshot:
        self.asked.append(name)
        await self.answered.wait()
        return await super().full(name)

    async def of(self, namespace: str, pod: str, seconds: int) -> dict[str, list[tuple[float, float]]]:
        self.asked.append((namespace, pod, seconds))
        await self.answered.wait()
        if pod == "lost":
            raise UserError("store_late: no answer")
        return {"busy": [(1.0, 0.5)]}


async def test_who_waits_for_others_takes_no_place_of_a_scrape() -> None:
    feed = HangingFeed(CLUSTER)
    async with serving(feed, history=feed) as server, AsyncExitStack() as stack:
        clients = [await stack.enter_async_context(connected(server)) for _ in range(60)]
        for number, client in enumerate(clients):
            asked = f"history?pod=ml/pod-{number}&hours=24" if number % 2 else f"snapshot?node=gpu-{number}"
            client.ask(f"/api/v1/{asked}")
        await until(lambda: len(feed.asked) >= 40)
        for path in ("/metrics", "/api/v1/cluster", "/-/healthy") * 3:
            assert (await get(server, path)).status == 200
        assert (await get(server, "/api/v1/snapshot?node=gpu-a")).status == 503, "they have places too"
        feed.answered.set()
        statuses = Counter([(await client.answer()).status for client in clients])
        assert statuses[503] == 20 and len(feed.asked) == 40
        assert (await get(server, "/api/v1/snapshot?node=gpu-a")).status == 200


@pytest.mark.parametrize(
    ("path", "status"),
    [
        ("snapshot?node=gpu-a", 200),
        ("snapshot?node=gone", 404),
        ("history?pod=ml/a&hours=24", 200),
        ("history?pod=ml/lost&hours=24", 502),
    ],
)
async def test_the_same_question_is_asked_once_for_all_who_wait(path: str, status: int) -> None:
    feed = HangingFeed(CLUSTER)
    async with serving(feed, history=feed) as server, AsyncExitStack() as stack:
        clients = [await stack.enter_async_context(connected(server)) for _ in range(20)]
        for client in clients:
            client.ask(f"/api/v1/{path}")
        await until(lambda: feed.asked)
        clients[0].writer.transport.abort()  # who asked first leaves; the others wait on
        assert (await get(server, "/-/healthy")).status == 200
        feed.answered.set()
        answers = [await client.answer() for client in clients[1:]]
        assert {answer.status for answer in answers} == {status} and len({answer.body for answer in answers}) == 1
        assert len(feed.asked) == 1
        assert (await get(server, f"/api/v1/{path}")).status == status
        assert len(feed.asked) == 2, "an answer is not kept"
