"""The optional pod that reads the whole cluster."""

from typing import Any

import kubernetes_validate
import pytest
import yaml

from podgpu.cli.cluster import OPTIONS as OFFERED
from podgpu.config import ClusterOptions
from podgpu.config.precedence import load
from tests.conftest import Golden
from tests.deploy import chart
from tests.deploy.chart import Object, needs_helm

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


def of_cluster(values: Object) -> list[Object]:
    found = chart.parse(chart.text(values))
    return [each for each in found if _component(each) == "cluster"]


def _component(each: Object) -> str:
    return str(each["metadata"]["labels"]["app.kubernetes.io/component"])


def settings(found: list[Object]) -> ClusterOptions:
    """The options as the command reads them from its file."""
    file = chart.only(found, "ConfigMap")["data"]["podgpu.yml"]
    written: dict[str, Any] = yaml.load(file, Loader=yaml.BaseLoader)  # noqa: S506 - text, lists and maps alone
    flags = {key.replace(".", "_").replace("-", "_"): value for key, value in written.items()}
    assert set(flags) <= set(OFFERED)
    texts = {name: value if isinstance(value, list) else [value] for name, value in flags.items()}
    texts.pop("web_config_file", None)  # is in the pod
    return load(texts, {}).of(ClusterOptions)


@pytest.mark.parametrize("values", [PLAIN, FULL], ids=["plain", "full"])
@pytest.mark.parametrize("version", ["1.29", "1.36"])
def test_kubernetes_knows_every_field(values: Object, version: str) -> None:
    for each in of_cluster(values):
        if each["kind"] != "PodMonitor":
            assert kubernetes_validate.validate(each, version, strict=True) == version


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
