"""Several clusters as one, over real sockets: two servers of clusters, and one that reads both."""

import json
from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path

import pytest
from msgspec.structs import replace

from podgpu.assembly.cluster import OpenCluster, open_cluster
from podgpu.cluster import federation
from podgpu.config.precedence import load
from podgpu.errors import UserError
from podgpu.insight import reconclude
from podgpu.model import Cluster, ClusterNode, PendingPod, document
from podgpu.views.cluster import metrics
from podgpu.views.cluster.json import decode, encode
from podgpu.views.exposition import lines
from tests.cluster.nodes import card, fresh, tenant
from tests.fakeapi.recorded import NODE
from tests.fakeapi.whole import recorded_cluster
from tests.patience import until
from tests.serve.cluster.test_server import StubFeed, get, serving
from tests.tree import SETTINGS

LOST = ClusterNode(name="gpu-b", state="failed", reason="timeout", detail="No answer within 5 s.")
WAITS = PendingPod(namespace="ml", name="waits", asks={"nvidia.com/gpu": "2"})


def cluster(*nodes: ClusterNode, pending: Sequence[PendingPod] = ()) -> Cluster:
    return reconclude(Cluster(taken_at=1_700_000_000.0, version="1.0", nodes=nodes, pending=tuple(pending)), SETTINGS)


# Nodes of one name, with cards of their own.
EAST = cluster(fresh("gpu-a", card("GPU-east", tenant("ml/train", 0.5))), LOST, pending=[WAITS])
WEST = cluster(fresh("gpu-a", card("GPU-west", tenant("web/serve"))))


@asynccontextmanager
async def federated(*feeds: StubFeed, names: Sequence[str] = ("east", "west")) -> AsyncIterator[OpenCluster]:
    async with AsyncExitStack() as stack:
        servers = [await stack.enter_async_context(serving(feed)) for feed in feeds]
        upstreams = [
            f"{name}=http://127.0.0.1:{server.addresses[0].port}" for name, server in zip(names, servers, strict=True)
        ]
        config = load({"cluster_upstreams": upstreams, "cluster_interval": ["1s"], "cluster_name": ["all"]}, {})
        opened = open_cluster(config)
        stack.push_async_callback(opened.close)
        await until(lambda: opened.loop.ready)
        yield opened


def names(found: Cluster) -> list[tuple[str, str, str]]:
    return [(node.cluster, node.name, node.state) for node in found.nodes]


async def test_nodes_of_one_name_in_two_clusters_stay_apart() -> None:
    async with federated(StubFeed(EAST), StubFeed(WEST)) as opened:
        found = opened.loop.cluster
        assert names(found) == [
            ("east", "east/gpu-a", "fresh"),
            ("east", "east/gpu-b", "failed"),
            ("west", "west/gpu-a", "fresh"),
        ]
        assert [node.snapshot.node for node in found.nodes if node.snapshot] == ["east/gpu-a", "west/gpu-a"]
        assert {node.name: node.snapshot.cards[0].gpu.uuid for node in found.nodes if node.snapshot} == {
            "east/gpu-a": "GPU-east",
            "west/gpu-a": "GPU-west",
        }
        assert [(pod.cluster, pod.name) for pod in found.pending] == [("east", "waits")]
        assert [(part.name, part.up) for part in found.parts] == [("east", True), ("west", True)]
        assert found.insight and EAST.insight and WEST.insight
        assert found.insight.sums.gpus == (EAST.insight.sums.gpus or 0) + (WEST.insight.sums.gpus or 0)
        assert decode(encode(found)) == found


async def test_a_problem_names_its_cluster() -> None:
    async with federated(StubFeed(EAST), StubFeed(WEST)) as opened:
        insight = opened.loop.cluster.insight
        assert insight
        assert {problem.node for problem in insight.problems if problem.kind == "node_down"} <= {"east/gpu-b"}
        assert not {problem.node for problem in insight.problems} & {"gpu-a", "gpu-b"}


async def test_series_have_the_cluster_and_the_bare_name_of_the_node() -> None:
    async with federated(StubFeed(EAST), StubFeed(WEST)) as opened:
        found = opened.loop.cluster
    families = [
        *metrics.of_cluster(found),
        *(family for node in found.nodes for family in metrics.of_node(node)),
    ]
    page = "".join(map(lines, families))
    assert 'podgpu_cluster_node_info{cluster="west",node="gpu-a",state="fresh"' in page
    assert 'podgpu_cluster_nodes{cluster="east",state="failed"} 1.0' in page
    assert 'podgpu_cluster_nodes{cluster="west",state="failed"} 0.0' in page
    assert 'podgpu_cluster_pending_pods{cluster="east",namespace="ml"' in page
    assert 'podgpu_cluster_source_up{source="west"} 1.0' in page
    alone = "".join(map(lines, metrics.of_cluster(EAST)))
    assert 'podgpu_cluster_nodes{state="failed"} 1.0' in alone, "no label where one cluster is read"


async def test_drop_in_pages_name_nodes_as_the_series_do_with_the_cluster_beside() -> None:
    east, west = (cluster(fresh("gpu-node.1", card(f"GPU-{name}", tenant(f"{name}/p")))) for name in ("east", "west"))
    async with federated(StubFeed(east), StubFeed(west)) as opened, serving(opened.loop) as server:
        whole, by_node, of_one = [
            json.loads((await get(server, f"/container/metrics{query}")).body)
            for query in ("", "?node=gpu-node.1", "?node=gpu-node.1&cluster=west")
        ]
        mapped, nodes = [(await get(server, path)).body.decode() for path in ("/metrics/pod-gpu-map", "/metrics/nodes")]
    assert [(row["cluster"], row["node_name"], row["device_uuid"]) for row in whole] == [
        ("east", "gpu-node.1", "GPU-east"),
        ("west", "gpu-node.1", "GPU-west"),
    ]
    assert by_node == whole and of_one == whole[1:]
    for page, family in ((mapped, "pod_and_gpu_map_info"), (nodes, "gpu_node_1_info")):
        assert [line for line in page.splitlines() if not line.startswith("#")] == [
            f'{family}{{cluster="{name}",gpu_id="GPU-{name}",gpu_model="NVIDIA H200",namespace="{name}",'
            'node="gpu-node.1",pod_name="p"} 1.0'
            for name in ("east", "west")
        ]


async def test_what_changes_there_changes_here_and_the_rest_is_not_made_again() -> None:
    feed = StubFeed(EAST)
    async with federated(feed, StubFeed(WEST)) as opened:
        before = {node.name: node for node in opened.loop.cluster.nodes}
        newer = fresh("gpu-b", card("GPU-new", tenant("ml/later")))
        feed.publish(cluster(EAST.nodes[0], newer))
        await until(lambda: {node.name: node.state for node in opened.loop.cluster.nodes}["east/gpu-b"] == "fresh")
        after = {node.name: node for node in opened.loop.cluster.nodes}
        assert after["west/gpu-a"] is before["west/gpu-a"]
        assert after["east/gpu-a"] is before["east/gpu-a"]


async def test_a_round_without_news_publishes_nothing() -> None:
    """So that whoever reads this one is told that nothing has changed."""
    async with federated(StubFeed(EAST), StubFeed(WEST)) as opened:
        before = opened.loop.cluster
        assert isinstance(opened.loop, federation.Federation)
        await opened.loop.round()
        assert opened.loop.cluster is before


async def test_a_node_can_be_fetched_with_everything_in_it() -> None:
    async with federated(StubFeed(EAST), StubFeed(WEST)) as opened:
        assert (await opened.loop.full("west/gpu-a")).node == "west/gpu-a"
        for unknown in ("gpu-a", "north/gpu-a", "west/"):
            with pytest.raises(UserError, match="lists the nodes as CLUSTER/NODE"):
                await opened.loop.full(unknown)


async def test_a_cluster_that_is_gone_grows_old_and_the_others_stay(monkeypatch: pytest.MonkeyPatch) -> None:
    feed = StubFeed(WEST)
    async with serving(StubFeed(EAST)) as east:
        address = f"http://127.0.0.1:{east.addresses[0].port}"
        async with serving(feed) as west:
            url = f"http://127.0.0.1:{west.addresses[0].port}"
            config = load({"cluster_upstreams": [f"east={address}", f"west={url}"], "cluster_interval": ["1s"]}, {})
            opened = open_cluster(config)
            await until(lambda: opened.loop.ready)
        try:
            await until(lambda: dict(states(opened))["west/gpu-a"] == ("stale", "unreachable"))
            assert dict(states(opened))["east/gpu-a"] == ("fresh", "")
            assert {part.name: part.up for part in opened.loop.cluster.parts} == {"east": True, "west": False}
            (dark,) = [node for node in opened.loop.cluster.nodes if node.cluster == "west"]
            assert dark.heard and dark.heard.gpus == len(WEST.nodes[0].snapshot.cards if WEST.nodes[0].snapshot else ())
            monkeypatch.setattr(opened.loop, "_remember", 0.0)
            await until(lambda: dict(states(opened))["west/gpu-a"][0] == "failed")
            (gone,) = [node for node in opened.loop.cluster.nodes if node.cluster == "west"]
            assert gone.snapshot is None and gone.heard and (gone.heard.at, gone.heard.gpus) == (dark.heard.at, None)
        finally:
            await opened.close()


def states(opened: OpenCluster) -> list[tuple[str, tuple[str, str]]]:
    return [(node.name, (node.state, node.reason)) for node in opened.loop.cluster.nodes]


async def test_a_damaged_row_is_shown_as_such_and_the_others_stay() -> None:
    damaged = replace(WEST.nodes[0], name="gpu-z", insight=None)
    feed = StubFeed(cluster(WEST.nodes[0], damaged))
    async with federated(feed, names=("west",)) as opened:
        assert [node.state for node in opened.loop.cluster.nodes] == ["fresh", "fresh"]
    good, bad = (encode(cluster(node)) for node in (WEST.nodes[0], damaged))
    _, rows = document.split(bad.replace(b'"state":"fresh"', b'"state":7'))
    found = federation._row(rows[0])
    assert (found.name, found.state, found.reason) == ("gpu-z", "failed", "garbage")
    _, rows = document.split(good)
    assert federation._row(rows[0]).state == "fresh"


async def test_contexts_of_a_kubeconfig_are_read_side_by_side(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))  # without kubectl, podgpu reads the file itself
    async with recorded_cluster() as first, recorded_cluster() as second:
        first.selects = second.selects = True
        servers = {"prod": first.url, "arn:lab/1": second.url}
        document = {
            "contexts": [{"name": name, "context": {"cluster": name, "user": "me"}} for name in servers],
            "clusters": [{"name": name, "cluster": {"server": url}} for name, url in servers.items()],
            "users": [{"name": "me", "user": {"token": "secret"}}],
        }
        path = tmp_path / "kubeconfig"
        path.write_text(json.dumps(document))
        contexts = ["prod", "lab=arn:lab/1"]
        flags = {"cluster_contexts": contexts, "kube_kubeconfig": [str(path)], "cluster_interval": ["1s"]}
        opened = open_cluster(load(flags, {}))
        try:
            await until(lambda: len(opened.loop.cluster.nodes) == 2)
            assert names(opened.loop.cluster) == [
                ("lab", f"lab/{NODE}", "allocation"),
                ("prod", f"prod/{NODE}", "allocation"),
            ]
            assert all(node.snapshot and node.snapshot.cards for node in opened.loop.cluster.nodes)
        finally:
            await opened.close()


@pytest.mark.parametrize(
    ("flags", "said"),
    [
        ({"cluster_upstreams": ["http://east.example"]}, "write NAME=URL"),
        ({"cluster_upstreams": ["a/b=http://east.example"]}, "no name that a label can be"),
        ({"cluster_contexts": ["arn:aws:eks:eu:1:cluster/prod"]}, "write NAME=arn:aws:eks:eu:1:cluster/prod"),
        ({"cluster_upstreams": ["a=http://east.example", "a=http://west.example"]}, "names that differ"),
        (
            {"cluster_upstreams": ["a=http://east.example"], "cluster_agents": ["http://gpu-1"]},
            "--cluster.agents",
        ),
    ],
)
async def test_a_mistake_says_what_to_write(flags: dict[str, list[str]], said: str) -> None:
    with pytest.raises(UserError, match=said):
        open_cluster(load(flags, {}))
