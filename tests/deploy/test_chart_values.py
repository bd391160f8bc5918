"""Values beyond the agent itself, each with what it makes, and an upgrade from the last release."""

import shutil
import ssl
import subprocess
from base64 import b64decode
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from tests.deploy import chart
from tests.deploy.chart import Object, needs_helm
from tests.deploy.test_privileges import notes
from tools.chart import CHART, manifests

pytestmark = needs_helm

ON: Object = {"enabled": True}
RELEASED = max((Path(__file__).parent / "released").glob("*.tgz"))
SIDECAR: Object = {"name": "proxy", "image": "example.com/proxy:1"}
SPREAD: Object = {"maxSkew": 1, "topologyKey": "zone", "whenUnsatisfiable": "ScheduleAnyway"}
# Two renderings show most values.
AGENT: Object = {
    "hostNetwork": True,
    "daemonSetAnnotations": {"reloader": "on"},
    "extraContainers": [SIDECAR],
    "listeners": [{"port": 9400, "dialect": "dcgm"}],
    "tlsServerConfig": {"selfSigned": True},
    "podMonitor": ON,
    "cluster": {**ON, "networkPolicy": ON},
}
CLUSTER: Object = {
    "cluster": {
        **ON,
        "replicas": 2,
        "podDisruptionBudget": ON,
        "topologySpreadConstraints": [
            SPREAD,
            {**SPREAD, "topologyKey": "rack", "labelSelector": {"matchLabels": {"a": "b"}}},
        ],
        "ingress": {
            **ON,
            "className": "nginx",
            "annotations": {"note": "x"},
            "hosts": ["gpus.example.com", "*.example.org"],
            "tls": [{"hosts": ["gpus.example.com"], "secretName": "gpus"}],
        },
        "httpRoute": {
            **ON,
            "parentRefs": [{"name": "gateway"}],
            "hostnames": ["gpus.example.com"],
            "path": "/gpus",
        },
        "deploymentAnnotations": {"reloader": "on"},
        "extraContainers": [SIDECAR],
        "networkPolicy": ON,
        "config": {"prometheus": {"url": "http://prometheus.monitoring:9091/prom"}},
        "webConfig": {"basic_auth_users": {"ada": f"$2y$05${'x' * 53}"}},
    },
    "tlsServerConfig": {"certManager": {**ON, "issuerRef": {"name": "internal", "kind": "ClusterIssuer"}}},
}


@cache
def of_agent() -> list[Object]:
    return chart.parse(chart.text(AGENT))


@cache
def of_cluster() -> list[Object]:
    return chart.parse(chart.text(CLUSTER))


def component(found: list[Object], kind: str, name: str) -> Object:
    (each,) = [manifest for manifest in found if (manifest["kind"], manifest["metadata"]["name"]) == (kind, name)]
    return each


@pytest.mark.parametrize("version", chart.VERSIONS)
@pytest.mark.parametrize("rendered", [of_agent, of_cluster], ids=["agent", "cluster"])
def test_kubernetes_knows_every_field(rendered: Any, version: str) -> None:
    chart.validate(rendered(), version)


def test_the_agent_is_not_evicted_first() -> None:
    assert chart.pod(chart.objects("defaults"))["priorityClassName"] == "system-node-critical"
    assert "priorityClassName" not in chart.pod(chart.parse(chart.text({"priorityClassName": ""})))
    assert "this namespace may not use system-node-critical" in notes({})


def test_on_the_nodes_network_every_port_is_one_of_the_node() -> None:
    pod = chart.pod(of_agent())
    assert (pod["hostNetwork"], pod["dnsPolicy"]) == (True, "ClusterFirstWithHostNet")
    ports = pod["containers"][0]["ports"]
    assert {port["name"] for port in ports} == {"http", "probe", "dcgm"}
    assert all(port["hostPort"] == port["containerPort"] for port in ports)
    policy = component(of_agent(), "NetworkPolicy", "podgpu-cluster")
    assert {"ports": [{"port": 19400, "protocol": "TCP"}]} in policy["spec"]["egress"]


def test_containers_and_annotations_are_added_to_both() -> None:
    for found, kind in ((of_agent(), "DaemonSet"), (of_cluster(), "Deployment")):
        owner = chart.only(found, kind)
        assert owner["metadata"]["annotations"] == {"reloader": "on"}
        assert owner["spec"]["template"]["spec"]["containers"][1] == SIDECAR


@pytest.mark.skipif(shutil.which("openssl") is None, reason="needs openssl")
def test_a_certificate_that_the_chart_made_fits_where_it_is_used(tmp_path: Path) -> None:
    made = component(of_agent(), "Secret", "podgpu-tls")
    assert made["type"] == "kubernetes.io/tls"
    for name, text in made["data"].items():
        (tmp_path / name).write_bytes(b64decode(text))
    checks = ["-x509_strict", "-purpose", "sslserver", "-verify_hostname", "podgpu.gpu.svc"]
    command = ["openssl", "verify", *checks, "-CAfile", "ca.crt", "tls.crt"]
    subprocess.run(command, cwd=tmp_path, check=True, capture_output=True)
    ssl.create_default_context().load_cert_chain(tmp_path / "tls.crt", tmp_path / "tls.key")
    (endpoint,) = chart.only(of_agent(), "PodMonitor")["spec"]["podMetricsEndpoints"]
    assert endpoint["tlsConfig"] == {
        "ca": {"secret": {"name": "podgpu-tls", "key": "ca.crt"}},
        "serverName": "podgpu.gpu.svc",
    }
    mounted = {each["name"]: each for each in chart.pod(of_agent())["volumes"]}
    assert mounted["web-tls"]["secret"] == {"secretName": "podgpu-tls"}


def test_the_clusters_pod_trusts_it_and_does_not_get_its_key() -> None:
    written = component(of_agent(), "ConfigMap", "podgpu-cluster")["data"]["podgpu.yml"]
    for line in (
        'login.ca-file: "/etc/podgpu-login/ca.crt"',
        'login.server-name: "podgpu.gpu.svc"',
        'scheme: "https"',
    ):
        assert line in written
    volumes = chart.only(of_agent(), "Deployment")["spec"]["template"]["spec"]["volumes"]
    (login,) = [each["secret"] for each in volumes if each["name"] == "login"]
    assert login == {"secretName": "podgpu-tls", "items": [{"key": "ca.crt", "path": "ca.crt"}]}


def test_cert_manager_is_asked_for_the_same_certificate() -> None:
    spec = chart.only(of_cluster(), "Certificate")["spec"]
    assert (spec["secretName"], spec["dnsNames"]) == ("podgpu-tls", ["podgpu.gpu.svc"])
    assert spec["issuerRef"] == {"name": "internal", "kind": "ClusterIssuer"}
    assert not [each for each in of_cluster() if each["metadata"]["name"] == "podgpu-tls"]


def test_an_ingress_leads_to_the_clusters_service() -> None:
    ingress = chart.only(of_cluster(), "Ingress")
    assert ingress["metadata"]["annotations"] == {"note": "x"}
    assert ingress["spec"]["ingressClassName"] == "nginx"
    assert ingress["spec"]["tls"] == [{"hosts": ["gpus.example.com"], "secretName": "gpus"}]
    assert [rule["host"] for rule in ingress["spec"]["rules"]] == ["gpus.example.com", "*.example.org"]
    (path,) = ingress["spec"]["rules"][0]["http"]["paths"]
    assert path["backend"]["service"] == {"name": "podgpu-cluster", "port": {"name": "http"}}
    assert "host" not in _rule_without_a_host()


def _rule_without_a_host() -> Object:
    found = chart.parse(chart.text({"cluster": {**ON, "ingress": ON}}))
    (rule,) = chart.only(found, "Ingress")["spec"]["rules"]
    return dict(rule)


def test_a_route_of_a_gateway_leads_there_too() -> None:
    spec = chart.only(of_cluster(), "HTTPRoute")["spec"]
    (parent,) = spec["parentRefs"]
    assert parent == {"group": "gateway.networking.k8s.io", "kind": "Gateway", "name": "gateway"}
    assert spec["hostnames"] == ["gpus.example.com"]
    (rule,) = spec["rules"]
    assert rule["matches"] == [{"path": {"type": "PathPrefix", "value": "/gpus"}}]
    (backend,) = rule["backendRefs"]
    assert (backend["kind"], backend["name"], backend["port"]) == ("Service", "podgpu-cluster", 19400)


def test_replicas_are_spread_and_not_drained_together() -> None:
    deployment = chart.only(of_cluster(), "Deployment")
    own = deployment["spec"]["selector"]
    budget = chart.only(of_cluster(), "PodDisruptionBudget")["spec"]
    assert budget == {"minAvailable": 1, "selector": own}
    first, second = deployment["spec"]["template"]["spec"]["topologySpreadConstraints"]
    assert first["labelSelector"] == own
    assert second["labelSelector"] == {"matchLabels": {"a": "b"}}
    assert "cluster.replicas is 2" in notes(CLUSTER)


@pytest.mark.parametrize(
    ("url", "port"),
    [
        ("http://prometheus.monitoring:9091/prom", 9091),
        ("http://thanos", 80),
        ("https://mimir.example.com/x", 443),
    ],
)
def test_the_clusters_policy_lets_it_reach_the_store(url: str, port: int) -> None:
    values = {"cluster": {**CLUSTER["cluster"], "config": {"prometheus.url": url}}}
    found = of_cluster() if port == 9091 else chart.parse(chart.text(values))
    egress = component(found, "NetworkPolicy", "podgpu-cluster")["spec"]["egress"]
    assert {"ports": [{"port": port, "protocol": "TCP"}]} in egress


@pytest.mark.parametrize(
    ("values", "reason"),
    [
        ({"cluster": {**ON, "replicas": 2, "podMonitor": ON}}, "would be 2 times as large. Keep one replica"),
        (
            {"cluster": {**ON, "replicas": 2, "podAnnotations": {"prometheus.io/scrape": "true"}}},
            "Keep one replica",
        ),
        (
            {"cluster": {**ON, "ingress": ON, "service": {"enabled": False}}},
            "cluster.service.enabled is false",
        ),
        ({"cluster": {**ON, "httpRoute": ON}}, "Name it in cluster.httpRoute.parentRefs"),
        ({"cluster": {**ON, "podDisruptionBudget": ON}}, "would let no node be drained"),
        (
            {"cluster": {**ON, "replicas": 2, "podDisruptionBudget": {**ON, "maxUnavailable": 1}}},
            "takes minAvailable or maxUnavailable",
        ),
        ({"hostNetwork": True, "networkPolicy": ON}, "has no effect on pods with hostNetwork"),
        (
            {"hostNetwork": True, "listeners": [{"port": 9400, "dialect": "dcgm", "hostPort": 9500}]},
            "port 9400 cannot be port 9500 of the node",
        ),
        (
            {"tlsServerConfig": {"selfSigned": True, "existingSecret": "x"}},
            "tlsServerConfig.existingSecret and tlsServerConfig.selfSigned each name a certificate",
        ),
        ({"tlsServerConfig": {"certManager": ON}}, "needs an issuer"),
        ({"cluster": {"ingress": {"pathType": "prefix"}}}, "value must be one of 'Prefix', 'Exact'"),
    ],
)
def test_values_that_would_be_a_trap_are_refused(values: Object, reason: str) -> None:
    assert reason in chart.refusal(values)


# What the API server does not let anybody change.
FIXED = {
    "DaemonSet": ("spec", "selector"),
    "Deployment": ("spec", "selector"),
    "ClusterRoleBinding": ("roleRef",),
    "PersistentVolumeClaim": ("spec",),
    "Secret": ("type",),
}
UPGRADED: Object = {
    "cluster": {**ON, "webConfig": CLUSTER["cluster"]["webConfig"]},
    "webConfig": CLUSTER["cluster"]["webConfig"],
    "tlsServerConfig": {"existingSecret": "podgpu-tls"},
    "report": {"schedule": "@daily", "store": "http://prometheus"},
}


def test_an_upgrade_from_the_last_release_changes_nothing_that_is_fixed() -> None:
    def fixed(where: Path) -> dict[tuple[str, str], Any]:
        place = ["--namespace=gpu", f"--kube-version={manifests.KUBERNETES}"]
        done = chart.helm("template", "podgpu", str(where), *place, values=values)
        assert done.returncode == 0, done.stderr
        return {
            (each["kind"], each["metadata"]["name"]): _part(each, FIXED[each["kind"]])
            for each in chart.parse(done.stdout)
            if each["kind"] in FIXED
        }

    values = {**UPGRADED, "cluster": {**UPGRADED["cluster"], "login": {"existingSecret": "login"}}}
    before, now = fixed(RELEASED), fixed(CHART)
    assert {kind for kind, _ in before} == set(FIXED)
    assert {name: now.get(name) for name in before} == before


def _part(each: Object, path: tuple[str, ...]) -> Any:
    found: Any = each
    for name in path:
        found = found[name]
    return found
