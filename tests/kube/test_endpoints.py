"""Which addresses are asked for a page: those of the right pods on this node, and no others."""

from typing import Any

import pytest

from podgpu.kube import endpoints
from podgpu.kube.api import ApiServer
from podgpu.kube.endpoints import MOST_PODS, Endpoints
from podgpu.model import Fault
from tests.fakeapi.server import PODS, FakeApi

NODE = "gpu-node"
Json = dict[str, Any]
OWNER = {"kind": "DaemonSet", "name": "nvidia-dcgm-exporter", "controller": True}
NOBODY = "no running pod with app=dcgm of a DaemonSet on node gpu-node in namespace gpu-operator"


def pod(name: str = "dcgm-exporter-1", ip: str = "10.0.0.5", **changes: Any) -> Json:
    ports = changes.get("ports", [{"name": "metrics", "containerPort": 9400}])
    metadata = {
        "name": name,
        "namespace": changes.get("namespace", "gpu-operator"),
        "creationTimestamp": changes.get("created", "2026-01-01T00:00:00Z"),
        "ownerReferences": changes.get("owners", [OWNER]),
    }
    if "deleted" in changes:
        metadata["deletionTimestamp"] = changes["deleted"]
    return {
        "metadata": metadata,
        "spec": {"nodeName": changes.get("node", NODE), "containers": [{"name": "c", "ports": ports}]},
        "status": {"phase": changes.get("phase", "Running"), "podIP": ip},
    }


def finder(fake: FakeApi, **changes: Any) -> Endpoints:
    settings: Json = {
        "node": NODE,
        "selector": "app=dcgm",
        "namespace": "gpu-operator",
        "port": 9400,
        "path": "/metrics",
    }
    return Endpoints(ApiServer(fake.url), **settings | changes)


async def found(*pods: Json, **changes: Any) -> tuple[tuple[str, ...], Fault | None]:
    async with FakeApi(pods=list(pods)) as fake:
        finding = finder(fake, **changes)
        try:
            return await asked(finding)
        finally:
            await finding.close()


async def asked(finding: Endpoints) -> tuple[tuple[str, ...], Fault | None]:
    nodes, fault = await finding.find()
    return tuple(nodes), fault


@pytest.mark.parametrize(
    ("candidate", "url"),
    [
        (pod(), "http://10.0.0.5:9400/metrics"),
        (pod(ip="fd00::5"), "http://[fd00::5]:9400/metrics"),
        (pod(ip="::ffff:10.0.0.5"), "http://10.0.0.5:9400/metrics"),
        (pod(ports=[]), "http://10.0.0.5:9400/metrics"),
        (pod(ports=None), "http://10.0.0.5:9400/metrics"),
        (pod(ports=[{"name": "metrics", "containerPort": 9500}]), "http://10.0.0.5:9500/metrics"),
        (pod(ports=[{"name": "https", "containerPort": 8443}]), "http://10.0.0.5:9400/metrics"),
        (pod(ports=[{"name": "metrics", "containerPort": 99999}]), "http://10.0.0.5:9400/metrics"),
    ],
)
async def test_a_pod_has_an_address(candidate: Json, url: str) -> None:
    assert await found(candidate) == ((url,), None)


async def test_a_port_and_path_that_were_given_win_over_the_pod_s_own() -> None:
    urls, _ = await found(pod(), port=9444, fixed=True, path="/gpu/numbers")
    assert urls == ("http://10.0.0.5:9444/gpu/numbers",)


async def test_a_pod_with_tls_is_reached_by_it_through_the_proxy_too() -> None:
    urls, _ = await found(pod(), scheme="https", path="")
    assert urls == ("https://10.0.0.5:9400",)
    (url,), _ = await found(pod("dcgm-7"), scheme="https", proxied=True, path="")
    assert url == "/api/v1/namespaces/gpu-operator/pods/https:dcgm-7:9400/proxy"


@pytest.mark.parametrize(
    "candidate",
    [
        pod(node="other-node"),
        pod(phase="Pending"),
        pod(deleted="2026-01-01T00:00:00Z"),
        *(
            pod(ip=ip)
            for ip in (
                *("", "127.0.0.1", "::1", "0.0.0.0", "169.254.169.254", "fe80::1%eth0", "evil.example"),
                *("::ffff:127.0.0.1", "::ffff:169.254.169.254", "::ffff:0.0.0.0", "fd00::1%lo", "::1%lo"),
            )
        ),
    ],
)
async def test_a_pod_that_is_not_meant_or_not_there_is_not_asked(candidate: Json) -> None:
    urls, fault = await found(candidate)
    assert urls == ()
    assert fault == Fault(reason="no_exporter", detail=NOBODY)


async def test_several_pods_come_in_a_fixed_order_and_each_once() -> None:
    urls, _ = await found(pod("b", "10.0.0.7"), pod("a", "10.0.0.9"), pod("c", "10.0.0.7"))
    assert urls == ("http://10.0.0.9:9400/metrics", "http://10.0.0.7:9400/metrics")


async def test_of_too_many_pods_the_oldest_are_asked() -> None:
    later = [pod(f"a-{n}", f"10.6.6.{n}", created=f"2026-01-02T00:00:0{n}Z") for n in range(MOST_PODS)]
    urls, _ = await found(*later, pod("z"))
    assert len(urls) == MOST_PODS
    assert urls[:2] == ("http://10.0.0.5:9400/metrics", "http://10.6.6.0:9400/metrics")


async def test_a_pod_without_an_address_takes_nobody_s_place() -> None:
    urls, _ = await found(*(pod(f"a-{n}", ip="") for n in range(MOST_PODS)), pod("z"))
    assert urls == ("http://10.0.0.5:9400/metrics",)


async def test_the_question_names_labels_node_and_phase() -> None:
    async with FakeApi(pods=[pod()]) as fake:
        finding = finder(fake)
        await finding.find()
        await finding.close()
    assert [seen.path for seen in fake.requests] == ["/api/v1/namespaces/gpu-operator/pods", PODS]
    for seen in fake.requests:
        assert seen.query["labelSelector"] == "app=dcgm"
        assert seen.query["fieldSelector"] == "spec.nodeName=gpu-node,status.phase=Running"


@pytest.mark.parametrize(
    ("pretender", "named"),
    [
        (pod("evil", "10.6.6.6", namespace="tenant"), "tenant/nvidia-dcgm-exporter"),
        (pod("evil", "10.6.6.6", namespace="tenant", owners=None), "tenant/evil"),
        (pod("evil", "10.6.6.6", owners=None), "gpu-operator/evil"),
        (pod("evil", "10.6.6.6", owners=[OWNER | {"controller": False}]), "gpu-operator/evil"),
        (pod("evil", "10.6.6.6", owners=[OWNER | {"kind": "ReplicaSet"}]), "gpu-operator/evil"),
    ],
)
async def test_only_a_pod_of_a_daemon_set_in_the_namespace_speaks_for_its_node(pretender: Json, named: str) -> None:
    told = f"{named} have these labels and are not asked"
    assert await found(pretender) == ((), Fault(reason="not_believed", detail=f"{NOBODY}; {told}"))
    beside = await found(pretender, pod())
    assert beside == (("http://10.0.0.5:9400/metrics",), Fault(reason="not_believed", detail=told))


async def test_a_daemon_set_that_is_named_is_the_only_one() -> None:
    other = pod("other", "10.6.6.6", owners=[OWNER | {"name": "tenants"}])
    urls, fault = await found(other, pod(), daemon_set="nvidia-dcgm-exporter")
    assert urls == ("http://10.0.0.5:9400/metrics",)
    assert fault is not None and "gpu-operator/tenants" in fault.detail


async def test_pods_of_other_namespaces_are_looked_at_now_and_then() -> None:
    async with FakeApi(pods=[pod()]) as fake:
        finding = finder(fake)
        assert await asked(finding) == (("http://10.0.0.5:9400/metrics",), None)
        fake.pods = [pod(), pod("evil", "10.6.6.6", namespace="tenant")]
        finding._list_due = 0.0
        assert (await asked(finding))[1] is None
        finding._list_due = finding._look_due = 0.0
        assert (await asked(finding))[1] is not None
        await finding.close()
    assert [seen.path == PODS for seen in fake.requests] == [False, True, False, False, True]


async def test_the_list_is_not_asked_for_again_at_once() -> None:
    async with FakeApi(pods=[pod()]) as fake:
        finding = finder(fake)
        await finding.find()
        fake.pods = [pod(ip="10.0.0.6")]
        assert (await asked(finding))[0] == ("http://10.0.0.5:9400/metrics",)
        finding._list_due = 0.0
        assert (await asked(finding))[0] == ("http://10.0.0.6:9400/metrics",)
        await finding.close()


async def test_while_the_api_server_is_away_the_last_list_holds() -> None:
    async with FakeApi(pods=[pod()]) as fake:
        finding = finder(fake)
        known = await finding.find()
        finding._list_due = 0.0
        fake.refuse(500, times=9)
        assert await finding.find() == known
        await finding.close()


@pytest.mark.parametrize(("status", "reason"), [(403, "forbidden"), (500, "unreachable"), (401, "unauthorized")])
async def test_an_api_server_that_refuses_is_the_reason(status: int, reason: str) -> None:
    async with FakeApi() as fake:
        fake.refuse(status, times=9)
        finding = finder(fake)
        urls, fault = await asked(finding)
        await finding.close()
    assert urls == ()
    assert fault is not None
    assert fault.reason == reason
    assert fault.detail.startswith("API server: HTTP")


async def test_where_only_one_namespace_may_be_read_the_missing_pod_is_still_the_reason() -> None:
    async with FakeApi(objects={"/api/v1/namespaces/podgpu/pods": {"metadata": {}, "items": []}}) as fake:
        fake.refuse(403, times=9, wanted=lambda seen: seen.path == PODS)
        finding = finder(fake, node=None, namespace="podgpu", daemon_set="podgpu")
        urls, fault = await asked(finding)
        await finding.close()
    wanted = "no running pod with app=dcgm of DaemonSet podgpu on any node in namespace podgpu"
    assert (urls, fault) == ((), Fault(reason="no_exporter", detail=wanted))


async def test_nonsense_from_the_api_server_is_a_reason_too() -> None:
    _, fault = await found({"metadata": {"name": "../x", "namespace": "gpu-operator"}})
    assert fault is not None
    assert fault.reason == "garbage"


async def test_without_a_node_those_of_all_nodes_are_found_and_so_many_of_each() -> None:
    here = [pod(f"here-{n}", f"10.0.0.{n}") for n in range(1, MOST_PODS + 3)]
    async with FakeApi(pods=[*here, pod("there", "10.0.1.1", node="other-node")]) as fake:
        finding = finder(fake, node=None)
        nodes, fault = await finding.find()
        await finding.close()
    assert fault is None
    assert sorted(nodes.values()) == [NODE] * MOST_PODS + ["other-node"]
    assert nodes["http://10.0.1.1:9400/metrics"] == "other-node"
    assert fake.requests[0].query["fieldSelector"] == "status.phase=Running"


async def test_a_long_list_comes_in_pages(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(endpoints, "PAGE", 1)
    async with FakeApi(pods=[pod("a", "10.0.0.1"), pod("b", "10.0.1.1", node="other-node")]) as fake:
        finding = finder(fake, node=None)
        nodes, _ = await finding.find()
        await finding.close()
    assert list(nodes.values()) == [NODE, "other-node"]
    assert [seen.query["limit"] for seen in fake.requests] == ["1"] * 4
    assert "continue" in fake.requests[1].query
