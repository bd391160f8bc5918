"""The optional pod that reads the whole cluster."""

from typing import Any

import pytest
import yaml

from podgpu.cli.cluster import OPTIONS as OFFERED
from podgpu.config import ClusterOptions
from podgpu.config.precedence import load
from tests.conftest import Golden
from tests.deploy import chart
from tests.deploy.chart import Object, needs_helm
from tests.deploy.test_privileges import notes

pytestmark = needs_helm

PLAIN: Object = {"cluster": {"enabled": True}}
FULL: Object = {
    "networkPolicy": {"enabled": True, "from": [{"namespaceSelector": {"matchLabels": {"a": "b"}}}]},
    "cluster": {
        "enabled": True,
        "config": {"cluster": {"name": "east", "via": "proxy"}, "kube.pod-labels": ["team"]},
        "listeners": [{"port": 9401, "dialect": "pod-gpu-map"}],
        "webConfig": {"tls_server_config": {"cert_file": "/tls/tls.crt", "key_file": "/tls/tls.key"}},
        "rbac": {"proxy": True, "owners": False, "resourceClaims": False},
        "networkPolicy": {"enabled": True},
        "podMonitor": {"enabled": True},
    },
}

# Agents that ask for everything.
LOCKED: Object = {
    "tlsServerConfig": {"existingSecret": "podgpu-tls"},
    "webConfig": {
        "tls_server_config": {
            "client_auth_type": "RequireAndVerifyClientCert",
            "client_ca_file": "/etc/podgpu-tls/ca.crt",
        }
    },
    "config": {"web": {"kube-auth": True}},
    "cluster": {
        "enabled": True,
        "login": {"existingSecret": "podgpu-client"},
        "config": {"login": {"server-name": "podgpu"}},
    },
}
USERS: Object = {"basic_auth_users": {"ada": f"$2y$05${'x' * 53}"}}


def of_cluster(values: Object) -> list[Object]:
    manifests = chart.parse(chart.text(values))
    return [each for each in manifests if _component(each) == "cluster"]


def _component(each: Object) -> str:
    return str(each["metadata"]["labels"]["app.kubernetes.io/component"])


def written(found: list[Object]) -> dict[str, Any]:
    file = chart.only(found, "ConfigMap")["data"]["podgpu.yml"]
    read: dict[str, Any] = yaml.load(file, Loader=yaml.BaseLoader)  # noqa: S506 - text, lists and maps alone
    return read


def settings(found: list[Object]) -> ClusterOptions:
    """The options as the command reads them from its file."""
    flags = {key.replace(".", "_").replace("-", "_"): value for key, value in written(found).items()}
    assert set(flags) <= set(OFFERED)
    texts = {name: value if isinstance(value, list) else [value] for name, value in flags.items()}
    texts.pop("web_config_file", None)  # is in the pod
    return load(texts, {}).of(ClusterOptions)


@pytest.mark.parametrize("values", [PLAIN, FULL, LOCKED], ids=["plain", "full", "locked"])
@pytest.mark.parametrize("version", ["1.29", "1.36"])
def test_kubernetes_knows_every_field(values: Object, version: str) -> None:
    chart.validate(of_cluster(values), version)


def test_whole_output(golden: Golden) -> None:
    golden("chart/cluster.yaml", yaml.safe_dump_all(of_cluster(FULL), sort_keys=False))


def test_there_is_none_by_default() -> None:
    assert {_component(each) for each in chart.parse(chart.text())} == {"agent"}


def test_it_reads_the_agents_of_its_own_release_and_trusts_no_other_namespace() -> None:
    found = settings(of_cluster(PLAIN))
    daemonset = chart.only(chart.parse(chart.text(PLAIN)), "DaemonSet")
    labels = daemonset["spec"]["template"]["metadata"]["labels"]
    assert dict(term.split("=") for term in found.selector.split(",")).items() <= labels.items()
    assert (found.namespace, found.via) == ("gpu", "auto")


def test_what_the_user_sets_reaches_it() -> None:
    found = settings(of_cluster(FULL))
    assert (found.name, found.via) == ("east", "proxy")


def test_its_rights_are_those_that_are_switched_on() -> None:
    rules = chart.only(of_cluster(PLAIN), "ClusterRole")["rules"]
    assert {verb for rule in rules for verb in rule["verbs"]} == {"list", "watch", "get"}
    assert "secrets" not in {resource for rule in rules for resource in rule["resources"]}
    assert chart.only(of_cluster(FULL), "ClusterRole")["rules"] == [
        {"apiGroups": [""], "resources": ["pods", "nodes"], "verbs": ["list", "watch"]},
        {"apiGroups": [""], "resources": ["pods/proxy"], "verbs": ["get"]},
    ]


def test_it_keeps_the_restricted_standard() -> None:
    pod = chart.only(of_cluster(PLAIN), "Deployment")["spec"]["template"]["spec"]
    (container,) = pod["containers"]
    assert pod["securityContext"]["runAsNonRoot"] and "hostPID" not in pod
    assert container["securityContext"]["capabilities"] == {"drop": ["ALL"]}
    assert [list(each)[1] for each in pod["volumes"]] == ["configMap"]


def test_the_agents_let_it_in_where_they_let_in_only_some() -> None:
    policies = [each for each in chart.parse(chart.text(FULL)) if each["kind"] == "NetworkPolicy"]
    (of_agents,) = [each for each in policies if _component(each) == "agent"]
    (rule,) = of_agents["spec"]["ingress"]
    peers = [each["podSelector"]["matchLabels"] for each in rule["from"] if "podSelector" in each]
    deployment = chart.only(of_cluster(FULL), "Deployment")
    assert peers == [deployment["spec"]["selector"]["matchLabels"]]


def test_an_option_of_the_agent_alone_is_refused() -> None:
    refusal = chart.refusal({"cluster": {"enabled": True, "config": {"interval": "5s"}}})
    assert "interval" in refusal


def test_it_logs_in_to_agents_with_what_they_ask_for() -> None:
    found = of_cluster(LOCKED)
    file = written(found)
    assert {key: value for key, value in file.items() if key.startswith(("login.", "cluster.scheme"))} == {
        "cluster.scheme": "https",
        "login.ca-file": "/etc/podgpu-login/ca.crt",
        "login.client-cert-file": "/etc/podgpu-login/tls.crt",
        "login.client-key-file": "/etc/podgpu-login/tls.key",
        "login.server-name": "podgpu",
        "login.token-file": "/var/run/secrets/kubernetes.io/serviceaccount/token",
    }
    assert {key.replace(".", "_").replace("-", "_") for key in file} <= set(OFFERED)
    pod = chart.only(found, "Deployment")["spec"]["template"]["spec"]
    assert {"name": "login", "secret": {"secretName": "podgpu-client"}} in pod["volumes"]
    (container,) = pod["containers"]
    assert {"name": "login", "mountPath": "/etc/podgpu-login", "readOnly": True} in container["volumeMounts"]
    rules = chart.only(found, "ClusterRole")["rules"]
    assert {"nonResourceURLs": ["/podgpu/api/v1/snapshot"], "verbs": ["get"]} in rules


def test_a_password_is_read_where_agents_ask_for_one() -> None:
    values = {**LOCKED, "webConfig": USERS, "config": {}}
    assert written(of_cluster(values))["login.password-file"] == "/etc/podgpu-login/password"
    own = {"enabled": True, "config": {"login.token-file": "/etc/mine/token"}}
    assert "login.password-file" not in written(of_cluster({**values, "cluster": own}))


@pytest.mark.parametrize(
    ("change", "advice"),
    [
        ({"tlsServerConfig": {}, "webConfig": {}}, "Set tlsServerConfig.existingSecret."),
        ({"cluster": {"enabled": True}}, "a Secret with tls.crt and tls.key"),
        (
            {"cluster": {**LOCKED["cluster"], "config": {"cluster.via": "proxy"}}},
            "Leave out cluster.config.cluster.via.",
        ),
        (
            {"cluster": {"enabled": True}, "config": {}, "webConfig": USERS},
            "a Secret with a password",
        ),
    ],
)
def test_agents_that_would_turn_it_away_are_refused_with_what_to_do(change: Object, advice: str) -> None:
    assert advice in chart.refusal({**LOCKED, **change})


BEHIND_PROXY: Object = {
    "cluster": {
        "enabled": True,
        "config": {"web": {"trusted-proxy": ["127.0.0.1"], "kube-auth": "on"}},
        "networkPolicy": {"enabled": True},
        "podMonitor": {"enabled": True, "authorization": {"credentials": {"name": "t", "key": "token"}}},
        "service": {"targetPort": "login"},
    }
}


def test_a_proxy_in_the_pod_is_where_the_service_leads() -> None:
    found = of_cluster(BEHIND_PROXY)
    (port, *_) = chart.only(found, "Service")["spec"]["ports"]
    assert (port["port"], port["targetPort"]) == (19400, "login")
    (rule,) = chart.only(found, "NetworkPolicy")["spec"]["ingress"]
    assert [each["port"] for each in rule["ports"]] == ["http", "login", "probe"]
    assert chart.only(of_cluster(PLAIN), "Service")["spec"]["ports"][0]["targetPort"] == "http"


def test_it_may_check_tokens_where_it_asks_for_them() -> None:
    rules = chart.only(of_cluster(BEHIND_PROXY), "ClusterRole")["rules"]
    assert [rule["resources"] for rule in rules if "create" in rule["verbs"]] == [
        ["tokenreviews"],
        ["subjectaccessreviews"],
    ]
    (endpoint,) = chart.only(of_cluster(BEHIND_PROXY), "PodMonitor")["spec"]["podMetricsEndpoints"]
    assert endpoint["authorization"] == {"credentials": {"name": "t", "key": "token"}}


@pytest.mark.parametrize(
    "asks",
    [
        {"config": {"web.trusted-proxy": "127.0.0.1"}},
        {"config": {"web.kube-auth": "on"}},
        {"webConfig": USERS},
    ],
)
def test_a_scraper_that_would_be_turned_away_is_refused(asks: Object) -> None:
    cluster = {"enabled": True, "podMonitor": {"enabled": True}, **asks}
    assert "cluster.podMonitor.basicAuth" in chart.refusal({"cluster": cluster})


def test_agents_behind_a_proxy_ask_the_cluster_for_a_login_too() -> None:
    values = {"config": {"web.trusted-proxy": "127.0.0.1"}, "cluster": {"enabled": True}}
    assert "Set tlsServerConfig.existingSecret." in chart.refusal(values)


def test_the_notes_warn_of_a_page_without_a_login() -> None:
    public: Object = {"enabled": True, "ingress": {"enabled": True}}
    locked: Object = {**public, "config": {"web.trusted-proxy": "127.0.0.1"}}
    assert "Let a proxy ask for a login" in notes({"cluster": public})
    assert "WARNING" not in notes({"cluster": locked})
