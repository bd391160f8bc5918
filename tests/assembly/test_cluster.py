"""A whole cluster through a played API server: agents behind its proxy, an exporter's page, or nobody at all."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import msgspec
import pytest

from podgpu.assembly.cluster import OpenCluster, open_cluster
from podgpu.assembly.exporter import open_exporter
from podgpu.cluster.allocations import KubeAllocations, wanted_objects
from podgpu.cluster.discovery import NodeTarget
from podgpu.cluster.node_state import ReadFault
from podgpu.config import Config
from podgpu.config.precedence import load
from podgpu.doctor.cluster import examine_cluster
from podgpu.errors import UserError
from podgpu.kube.api import ApiServer
from podgpu.kube.cluster_watch import NODES, ClusterWatch
from podgpu.model import ClusterNode
from podgpu.views.json import encode
from tests.cluster.fleet import Fleet
from tests.cluster.nodes import snapshot
from tests.fakeapi.recorded import NODE
from tests.fakeapi.server import FakeApi
from tests.fakeapi.whole import recorded_cluster
from tests.patience import until
from tests.sources.dcgm.exporter import FakeExporter, recorded

LABELS = {"app.kubernetes.io/name": "podgpu", "app.kubernetes.io/component": "agent"}
FORBIDDEN = msgspec.json.encode({"kind": "Status", "code": 403, "message": "it is forbidden"})


def agent_pod(name: str = "podgpu-x1", node: str = NODE, namespace: str = "podgpu", **owner: Any) -> dict[str, Any]:
    ports = [{"name": "http", "containerPort": 19400}]
    owner = {key.rstrip("_"): value for key, value in owner.items()}
    owners = [{"kind": "DaemonSet", "name": "podgpu", "controller": True} | owner]
    return {
        "metadata": {
            "name": name,
            "namespace": namespace,
            "uid": name,
            "resourceVersion": "1",
            "labels": LABELS,
            "ownerReferences": owners,
        },
        "spec": {"nodeName": node, "containers": [{"name": "agent", "ports": ports}]},
        "status": {"phase": "Running", "podIP": "10.0.0.9"},
    }


def document(node: str) -> bytes:
    return encode(snapshot(node))


def cluster_of(*agents: dict[str, Any]) -> FakeApi:
    fake = recorded_cluster()
    fake.selects = True
    fake.pods = [*fake.pods, *agents]
    return fake


def config(fake: FakeApi, **more: list[str]) -> Config:
    flags = {"kube_api": [fake.url], "cluster_via": ["proxy"], "cluster_interval": ["1s"]}
    return load({**flags, "cluster_timeout": ["60s"], **more}, {})


@asynccontextmanager
async def opened(fake: FakeApi, **more: list[str]) -> AsyncIterator[OpenCluster]:
    async with fake:
        cluster = open_cluster(config(fake, **more))
        try:
            await until(lambda: cluster.loop.ready)
            yield cluster
        finally:
            await cluster.close()


def only(cluster: OpenCluster) -> ClusterNode:
    (node,) = cluster.loop.cluster.nodes
    return node


async def test_without_any_agent_it_shows_what_kubernetes_gave_and_says_so() -> None:
    async with opened(cluster_of()) as cluster:
        node = only(cluster)
        parts = {part.name: part for part in cluster.loop.cluster.parts}
    assert (node.name, node.state, node.origin, node.reason) == (NODE, "allocation", "api", "no_agent")
    assert node.snapshot is not None and any(card.tenants for card in node.snapshot.cards)
    assert all(part.up for part in parts.values()) and {"agents", "nodes", "apiserver"} <= parts.keys()


async def test_what_nobody_holds_of_a_cordoned_node_is_not_free() -> None:
    fake = cluster_of(agent_pod())
    fake.lists_of[NODES][0]["spec"]["unschedulable"] = True
    async with Fleet(1, lambda _, __: document(NODE)) as fleet:
        fake.pods_at = {"podgpu-x1": fleet.urls[0]}
        async with opened(fake) as cluster:
            node, insight = only(cluster), cluster.loop.cluster.insight
    assert (node.state, node.cordoned) == ("fresh", True)
    assert node.snapshot is not None and node.snapshot.insight is not None and insight is not None
    free = node.snapshot.insight.sums.free_gpus  # as the agent counts, which does not know
    assert free
    assert (insight.sums.free_gpus, insight.sums.free_whole_gpus, insight.sums.cordoned_gpus) == (0.0, 0, free)
    assert insight.sums.gpus == node.snapshot.insight.sums.gpus
    assert insight.sums.allocated_gpus == node.snapshot.insight.sums.allocated_gpus


async def test_where_agents_run_everywhere_it_is_no_problem_that_there_are_no_exporters() -> None:
    fake = cluster_of(agent_pod())
    async with Fleet(1, lambda _, __: document(NODE)) as fleet:
        fake.pods_at = {"podgpu-x1": fleet.urls[0]}
        async with opened(fake) as cluster:
            found = cluster.loop.cluster
    assert {part.name: part.fault for part in found.parts if part.fault} == {}
    assert found.insight is not None and found.insight.problems == ()
    assert next(finding for finding in examine_cluster(found) if finding.id == "cluster.parts").status == "PASS"


async def test_where_neither_agents_nor_exporters_run_the_next_step_is_to_install_agents() -> None:
    async with opened(cluster_of()) as cluster:
        found = cluster.loop.cluster
    assert found.insight is not None
    (problem,) = found.insight.problems
    assert problem.text.startswith("agents: no_agent: no running pod with app.kubernetes.io/name=podgpu")
    assert "Install the podgpu agent" in problem.next_step and "nvidia-smi" not in problem.next_step


async def test_an_agent_is_read_through_the_proxy_and_again_only_if_it_has_news() -> None:
    fake = cluster_of(agent_pod())
    async with Fleet(1, lambda _, __: document(NODE)) as fleet:
        fake.pods_at = {"podgpu-x1": fleet.urls[0]}
        async with opened(fake) as cluster:
            node = only(cluster)
            assert (node.state, node.origin) == ("fresh", "agent")
            assert node.allocatable
            await until(lambda: fleet.requests > 1)
            assert (await cluster.loop.full(NODE)).node == NODE
    assert fleet.bodies == 2  # the second is the full one
    paths = {seen.path for seen in fake.requests if "/proxy/" in seen.path}
    assert paths == {"/api/v1/namespaces/podgpu/pods/podgpu-x1:19400/proxy/api/v1/snapshot"}


@pytest.mark.parametrize(
    ("forged", "named"),
    [
        (agent_pod("forged", namespace="tenant"), "tenant/podgpu"),
        (agent_pod("forged", name_="other"), "podgpu/other"),
        (agent_pod("forged", kind="ReplicaSet"), "podgpu/forged"),
        (agent_pod("forged", controller=False), "podgpu/forged"),
    ],
    ids=["elsewhere", "of another", "of another kind", "not run by it"],
)
async def test_a_pod_with_the_labels_of_an_agent_does_not_speak_for_its_node(
    forged: dict[str, Any], named: str
) -> None:
    forged["metadata"]["creationTimestamp"] = "2020-01-01T00:00:00Z"  # older than any other
    for agents in ([forged, agent_pod()], [forged]):
        fake = cluster_of(*agents)
        async with Fleet(2, lambda number, _: document(NODE)) as fleet:
            fake.pods_at = {"podgpu-x1": fleet.urls[0], "forged": fleet.urls[1]}
            async with opened(fake) as cluster:
                node = only(cluster)
                (part,) = (part for part in cluster.loop.cluster.parts if part.name == "agents")
        assert (node.state, node.reason) == (("fresh", "") if len(agents) > 1 else ("allocation", "no_agent"))
        assert not [request for request in fake.requests if "/forged:" in request.path]
    assert part.fault and f"; {named} have these labels and are not asked" in part.fault.detail


async def test_agents_elsewhere_are_read_when_they_are_named() -> None:
    fake = cluster_of(agent_pod(namespace="monitoring", name_="gpus"))
    async with Fleet(1, lambda _, __: document(NODE)) as fleet:
        fake.pods_at = {"podgpu-x1": fleet.urls[0]}
        async with opened(fake, cluster_namespace=["monitoring"], cluster_daemonset=["gpus"]) as cluster:
            assert only(cluster).state == "fresh"


async def test_an_agent_that_reports_another_node_is_not_believed() -> None:
    fake = cluster_of(agent_pod())
    async with Fleet(1, lambda _, __: document("gpu-node-2")) as fleet:
        fake.pods_at = {"podgpu-x1": fleet.urls[0]}
        async with opened(fake) as cluster:
            node = only(cluster)
    assert (node.name, node.state, node.reason, node.origin) == (NODE, "failed", "wrong_node", "api")
    assert "gpu-node-2" in node.detail


async def test_an_agent_that_cannot_be_reached_says_what_the_api_server_says() -> None:
    async with opened(cluster_of(agent_pod())) as cluster:
        node = only(cluster)
    assert (node.state, node.reason) == ("failed", "unreachable")
    assert "connection refused" in node.detail


async def test_without_the_right_to_use_the_proxy_the_rule_is_named() -> None:
    fake = cluster_of(agent_pod())
    fake.refuse(403, times=99, body=FORBIDDEN, wanted=lambda seen: "/proxy/" in seen.path)
    async with opened(fake) as cluster:
        node = only(cluster)
    assert (node.state, node.reason) == ("failed", "forbidden")
    assert "resources: [pods/proxy], verbs: [get]" in node.detail


async def test_without_the_right_to_list_nodes_the_rest_is_shown_and_the_rule_is_named() -> None:
    fake = cluster_of()
    fake.refuse(403, times=99, body=FORBIDDEN, wanted=lambda seen: seen.path == "/api/v1/nodes")
    async with opened(fake) as cluster:
        node = only(cluster)
        (part,) = (part for part in cluster.loop.cluster.parts if part.name == "nodes")
    assert node.name == NODE
    assert not part.up and part.fault is not None
    assert 'resources: [nodes], verbs: ["list", "watch"]' in part.fault.detail


async def test_a_node_without_an_agent_is_read_from_its_exporters_page() -> None:
    async with (
        FakeExporter(recorded("k8s_484_lowercase_hostname_t4")) as exporter,
        recorded_cluster() as fake,
    ):
        api = ApiServer(fake.url)
        given = KubeAllocations(ClusterWatch(api, wanted_objects()))
        reader = open_exporter(config(fake), NodeTarget("dcgm", (exporter.url,), NODE), given)
        found = await reader.read()
        exporter.status = 500
        with pytest.raises(ReadFault) as fault:
            await reader.read()
        await reader.close()
        await given.close()
        await api.close()
    assert found.node == NODE and any(card.tenants for card in found.cards) and reader.origin == "dcgm"
    assert fault.value.reason == "http_error"


def test_without_an_api_server_and_without_addresses_it_says_what_to_do(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in {"PATH": "/nowhere", "HOME": str(tmp_path), "KUBECONFIG": ""}.items():
        monkeypatch.setenv(name, value)

    async def open_it() -> None:
        open_cluster(load({}, {}))

    with pytest.raises(UserError, match=r"--kube.kubeconfig.*--cluster.agents"):
        asyncio.run(open_it())


def exporter_pod(namespace: str = "gpu-operator", **owner: Any) -> dict[str, Any]:
    pod = agent_pod("exporter-1", namespace=namespace, **{"name_": "nvidia-dcgm-exporter"} | owner)
    pod["metadata"]["labels"] = {"app.kubernetes.io/name": "dcgm-exporter"}
    return pod


async def test_a_page_is_fetched_through_the_proxy_too() -> None:
    fake = cluster_of(exporter_pod())
    async with FakeExporter(recorded("k8s_484_lowercase_hostname_t4")) as exporter:
        fake.pods_at = {"exporter-1": exporter.url.removesuffix("/metrics")}
        async with opened(fake) as cluster:
            node = only(cluster)
    assert (node.state, node.origin) == ("fresh", "dcgm")
    assert node.snapshot is not None and node.snapshot.node == NODE


@pytest.mark.parametrize(
    "pod", [exporter_pod("team-a"), exporter_pod(kind="ReplicaSet"), exporter_pod(controller=False)]
)
async def test_a_pod_that_only_has_an_exporters_labels_speaks_for_no_node_and_is_named(pod: dict[str, Any]) -> None:
    """As for agents: a DaemonSet must run it, in the namespace that was named."""
    fake = cluster_of(pod)
    async with FakeExporter(recorded("k8s_484_lowercase_hostname_t4")) as exporter:
        fake.pods_at = {"exporter-1": exporter.url.removesuffix("/metrics")}
        async with opened(fake) as cluster:
            node, parts = only(cluster), {part.name: part for part in cluster.loop.cluster.parts}
            insight = cluster.loop.cluster.insight
    assert (node.state, node.origin, node.reason) == ("allocation", "api", "no_agent")
    assert not [seen for seen in fake.requests if "/proxy" in seen.path]
    fault = parts["exporters"].fault
    assert parts["exporters"].up and fault is not None
    assert fault.reason == "not_believed" and f"{pod['metadata']['namespace']}/" in fault.detail
    assert insight is not None
    assert any("--dcgm.namespace" in problem.next_step for problem in insight.problems)


async def test_an_exporter_of_another_namespace_is_read_once_that_is_named() -> None:
    fake = cluster_of(exporter_pod("monitoring"))
    async with FakeExporter(recorded("k8s_484_lowercase_hostname_t4")) as exporter:
        fake.pods_at = {"exporter-1": exporter.url.removesuffix("/metrics")}
        async with opened(fake, dcgm_namespace=["monitoring"]) as cluster:
            assert (only(cluster).state, only(cluster).origin) == ("fresh", "dcgm")


async def test_the_exporters_port_and_path_can_be_given() -> None:
    pod = exporter_pod()
    pod["spec"]["containers"][0]["ports"] = [{"name": "metrics", "containerPort": 8080}]
    fake = cluster_of(pod)
    async with opened(fake, dcgm_port_number=["9444"], dcgm_path=["/gpu/numbers"]):
        pass
    paths = {seen.path for seen in fake.requests if "/proxy/" in seen.path}
    assert paths == {"/api/v1/namespaces/gpu-operator/pods/exporter-1:9444/proxy/gpu/numbers"}


def test_without_an_api_server_it_says_what_to_do() -> None:
    async def open_it() -> None:
        open_cluster(load({"kube_api": ["off"]}, {}))

    with pytest.raises(UserError, match=r"--kube.api=off leaves no API server to ask"):
        asyncio.run(open_it())
