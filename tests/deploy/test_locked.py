"""Certificates, passwords and tokens in the chart. That the agent honours them is tested in tests/serve/guard."""

from pathlib import Path
from typing import Any

import pytest
import yaml

from podgpu.serve.guard import web_config
from tests.deploy import chart
from tests.deploy.chart import needs_helm
from tests.deploy.test_privileges import notes

pytestmark = needs_helm

ON = {"enabled": True}
HASH = "$2y$10$9Ud8aZCUvlr8Zxq8y9Wwc.T/INKZnmiWHx8n0GVXiD9Be/Q9MOIdW"
PASSWORD: dict[str, Any] = {"webConfig": {"basic_auth_users": {"alice": HASH}}}
TOKENS: dict[str, Any] = {"config": {"web.kube-auth": "on"}}
TLS: dict[str, Any] = {"tlsServerConfig": {"existingSecret": "podgpu-tls"}}
MUTUAL = chart.MATRIX["locked"]["webConfig"]
LOGIN = {"username": {"name": "login", "key": "user"}, "password": {"name": "login", "key": "password"}}


@pytest.mark.parametrize("kind", ["web-config", "locked"])
def test_probes_and_monitors_follow_tls(kind: str) -> None:
    manifests = chart.objects(kind)
    container = chart.agent(manifests)
    for probe in ("livenessProbe", "readinessProbe"):
        assert container[probe]["httpGet"]["scheme"] == "HTTPS"
    (monitor,) = [each for each in manifests if each["kind"] in ("PodMonitor", "ServiceMonitor")]
    (endpoint,) = monitor["spec"].get("podMetricsEndpoints") or monitor["spec"]["endpoints"]
    assert endpoint["scheme"] == "https" and endpoint["tlsConfig"]


def test_the_agent_reads_the_certificate_of_the_secret(tmp_path: Path) -> None:
    """The Secret's folder is moved below a folder of the test."""
    manifests = chart.objects("locked")
    for name in ("tls.crt", "tls.key", "ca.crt"):
        (tmp_path / name).write_text("")
    file = tmp_path / "web-config.yml"
    file.write_text(chart.web_config(manifests).replace("/etc/podgpu-tls", str(tmp_path)))
    tls = web_config.read(file).tls
    assert tls and tls.needs_certificate and tls.cert_file == tmp_path / "tls.crt"
    volumes = {each["name"]: each for each in chart.pod(manifests)["volumes"]}
    mounts = {each["name"]: each["mountPath"] for each in chart.agent(manifests)["volumeMounts"]}
    assert volumes["web-tls"]["secret"] == {"secretName": "podgpu-tls"}
    assert mounts["web-tls"] == "/etc/podgpu-tls"


def test_a_renewed_certificate_restarts_nobody() -> None:
    """The agent notices by itself, so the pods do not depend on what the web configuration says."""

    def pods(values: chart.Values) -> Any:
        return chart.only(chart.parse(chart.text(values)), "DaemonSet")["spec"]["template"]

    other = {"webConfig": {"basic_auth_users": {"bob": HASH}}}
    assert pods({**TLS, **PASSWORD}) == pods({**TLS, **other})


def test_the_agent_may_ask_about_tokens_only_where_it_must() -> None:
    def created(values: chart.Values) -> set[str]:
        roles = [each for each in chart.parse(chart.text(values)) if each["kind"] == "ClusterRole"]
        rules = [rule for role in roles for rule in role["rules"] if rule["verbs"] == ["create"]]
        return {resource for rule in rules for resource in rule["resources"]}

    assert created(TOKENS) == {"tokenreviews", "subjectaccessreviews"}
    assert created({}) == set()


def test_readers_may_get_the_pages_and_nothing_else() -> None:
    found = {each["metadata"]["name"]: each for each in chart.objects("locked") if "Role" in each["kind"]}
    assert found["podgpu-reader"]["kind"] == "ClusterRoleBinding"
    assert found["podgpu-reader"]["subjects"] == chart.MATRIX["locked"]["rbac"]["readers"]
    (role,) = [each for each in chart.objects("locked") if each["kind"] == "ClusterRole"][1:]
    assert role["rules"] == [{"nonResourceURLs": ["/metrics", "/metrics/*"], "verbs": ["get"]}]


@pytest.mark.parametrize(
    ("monitor", "object_kind", "endpoints"),
    [
        ("podMonitor", "PodMonitor", "podMetricsEndpoints"),
        ("serviceMonitor", "ServiceMonitor", "endpoints"),
        ("vmPodScrape", "VMPodScrape", "podMetricsEndpoints"),
        ("clusterPodMonitoring", "ClusterPodMonitoring", "endpoints"),
    ],
)
def test_a_monitor_gets_what_the_pages_ask_for(monitor: str, object_kind: str, endpoints: str) -> None:
    trust = "tls" if monitor == "clusterPodMonitoring" else "tlsConfig"
    shown = {"authorization": {"credentials": {"name": "token", "key": "token"}}, "basicAuth": LOGIN}
    values = {**TLS, **PASSWORD, "service": ON, monitor: {**ON, **shown, trust: {"serverName": "podgpu"}}}
    found = chart.only(chart.parse(chart.text(values)), object_kind)
    (endpoint,) = found["spec"][endpoints]
    assert endpoint["scheme"] == "https"
    assert endpoint[trust] == {"serverName": "podgpu"}
    assert {name: endpoint[name] for name in shown} == shown


@pytest.mark.parametrize(
    ("values", "reason"),
    [
        ({**PASSWORD, "podMonitor": ON}, "podMonitor has none, so every scrape would be answered with 401"),
        ({**TOKENS, "vmPodScrape": ON}, "Set vmPodScrape.basicAuth or vmPodScrape.authorization"),
        (
            {**TLS, "webConfig": MUTUAL, "clusterPodMonitoring": {**ON, "tls": {"serverName": "podgpu"}}},
            "clusterPodMonitoring has none, so every scrape would be answered with 403",
        ),
        (
            {"podMonitor": {**ON, "tlsConfig": {"insecureSkipVerify": True}}},
            "podMonitor.tlsConfig is for TLS, but the agents serve plain HTTP",
        ),
        (
            {**TLS, "webConfig": {"tls_server_config": {"cert_file": "a", "key_file": "b"}}},
            "tlsServerConfig.existingSecret and webConfig.tls_server_config each name a certificate",
        ),
        ({"webConfig": MUTUAL}, "webConfig.tls_server_config needs a certificate"),
        (
            {**TLS, "webConfig": {"tls_server_config": {"client_auth_type": "RequireAnyClientCert"}}},
            "RequireAnyClientCert would accept certificates that no authority has signed",
        ),
        (
            {**TLS, "webConfig": {"tls_server_config": {"client_auth_type": "RequireAndVerifyClientCert"}}},
            "client_ca_file goes together with client_auth_type",
        ),
        (
            {"config": {"web.kube-auth": "on", "kube.api": "off"}},
            "config.web.kube-auth=on has the API server check tokens, but config.kube.api is off",
        ),
        ({"rbac": {"readers": [{"kind": "User"}]}}, "config.web.kube-auth is off and nobody is asked"),
    ],
)
def test_what_would_lock_everybody_out_is_refused_with_the_reason(values: chart.Values, reason: str) -> None:
    assert reason in chart.refusal(values)


def test_no_password_is_in_what_everybody_may_read() -> None:
    manifests = chart.parse(chart.text(PASSWORD))
    assert HASH in chart.web_config(manifests)
    assert not [each["kind"] for each in manifests if HASH in yaml.safe_dump(each, width=1000)]


def test_the_notes_warn_of_a_monitor_that_does_not_know_whom_to_trust() -> None:
    warning = "WARNING: the pages are served by TLS, and podMonitor does not say whom to trust"
    assert warning in notes({**TLS, "podMonitor": ON})
    assert warning not in notes({**TLS, "podMonitor": {**ON, "tlsConfig": {"serverName": "podgpu"}}})
    assert warning not in notes({"podMonitor": ON})
