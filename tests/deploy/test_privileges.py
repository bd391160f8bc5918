"""What the rendered pods may do. Nothing here is a matter of taste: each line is a way out of the container."""

import json

import pytest
import yaml

from tests.deploy import chart
from tests.deploy.chart import MATRIX, needs_helm
from tools.chart import privileges

pytestmark = needs_helm

FOLDERS = {
    "podResources": {"/var/lib/kubelet/pod-resources"},
    "podsApi": {"/var/lib/kubelet/pods-api"},
    "podLogs": {"/var/log/pods", "/var/log/containers"},
    "hami": {"/usr/local/vgpu/containers"},
    "root": {"/"},
}
NONE_ON = dict.fromkeys(FOLDERS, False)


@pytest.mark.parametrize("kind", MATRIX)
def test_the_agent_can_do_nothing_but_read(kind: str) -> None:
    context = chart.agent(chart.objects(kind))["securityContext"]
    assert context["privileged"] is False
    assert context["allowPrivilegeEscalation"] is False
    assert context["readOnlyRootFilesystem"] is True
    assert context["capabilities"] == {"drop": ["ALL"]}


@pytest.mark.parametrize("kind", MATRIX)
def test_the_pod_shares_nothing_of_the_host_but_process_ids(kind: str) -> None:
    spec = chart.pod(chart.objects(kind))
    assert spec["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}
    assert not spec.get("hostNetwork") and not spec.get("hostIPC")
    assert spec.get("hostPID", False) is MATRIX[kind].get("hostPID", True)


@pytest.mark.parametrize("kind", MATRIX)
def test_the_hosts_folders_are_read_only_but_the_agents_own(kind: str) -> None:
    manifests = chart.objects(kind)
    of_host = {each["name"] for each in chart.pod(manifests)["volumes"] if "hostPath" in each}
    mounts = [each for each in chart.agent(manifests)["volumeMounts"] if each["name"] in of_host]
    assert {each["name"] for each in mounts} == of_host
    assert {each["name"] for each in mounts if not each.get("readOnly")} <= {"state"}, "the agent's own folder"


@pytest.mark.parametrize("switch", [*FOLDERS, None])
def test_a_folder_is_mounted_only_where_it_is_switched_on(switch: str | None) -> None:
    wanted = set() if switch is None else {switch, *(["podResources"] if switch == "podsApi" else [])}
    manifests = chart.parse(chart.text({"hostPaths": NONE_ON | dict.fromkeys(wanted, True)}))
    paths = {each["hostPath"]["path"] for each in chart.pod(manifests)["volumes"] if "hostPath" in each}
    own = {"/var/lib/podgpu"} if "podResources" in wanted else set()
    assert paths == {path for each in wanted for path in FOLDERS[each]} | own


def test_an_agent_without_anything_of_the_node_keeps_its_state_in_its_pod() -> None:
    (state,) = (each for each in chart.pod(chart.objects("restricted"))["volumes"] if each["name"] == "state")
    assert state == {"name": "state", "emptyDir": {"sizeLimit": "64Mi"}}


def test_root_is_used_for_the_kubelets_sockets_alone() -> None:
    assert chart.agent(chart.objects("defaults"))["securityContext"]["runAsUser"] == 0
    restricted = chart.agent(chart.objects("restricted"))["securityContext"]
    assert restricted["runAsNonRoot"] is True and restricted["runAsUser"] == 65534


def test_the_log_of_context_switches_adds_one_capability_and_only_where_it_is_asked_for() -> None:
    manifests = chart.parse(chart.text({"switches": {"enabled": True}}))
    context = chart.agent(manifests)["securityContext"]
    assert context["capabilities"] == {"drop": ["ALL"], "add": ["SYS_ADMIN"]}
    assert context["runAsUser"] == 0
    assert context["privileged"] is False
    assert chart.config(manifests)["switches"] == "check"


def test_without_the_capability_the_log_can_be_read_too() -> None:
    manifests = chart.parse(chart.text({"config": {"switches": "auto"}}))
    assert chart.agent(manifests)["securityContext"]["capabilities"] == {"drop": ["ALL"]}
    assert chart.config(manifests)["switches"] == "auto"


def rules(values: chart.Values) -> list[tuple[str, str, str]]:
    manifests = chart.parse(chart.text(values))
    roles = [each for each in manifests if each["kind"] == "ClusterRole"]
    return [
        (group, resource, verb)
        for role in roles
        for rule in role["rules"]
        for group in rule["apiGroups"]
        for resource in rule["resources"]
        for verb in rule["verbs"]
    ]


def test_a_feature_that_is_off_has_no_rule() -> None:
    assert rules({"rbac": {"owners": False, "resourceClaims": False}}) == [
        ("", "pods", "list"),
        ("", "pods", "watch"),
    ]
    assert ("batch", "cronjobs", "get") in rules({"rbac": {"resourceClaims": False}})
    assert ("resource.k8s.io", "resourceslices", "list") in rules({"rbac": {"owners": False}})


def test_with_the_kubelets_pods_no_rule_lists_pods() -> None:
    values: chart.Values = {"config": {"kube.pods": "kubelet"}, "hostPaths": {"podsApi": True}}
    found = rules(values)
    assert found and not [rule for rule in found if rule[1] == "pods"]
    assert {verb for _, resource, verb in found if resource != "resourceslices"} == {"get"}
    assert chart.config(chart.parse(chart.text(values)))["kube.pods"] == "kubelet"
    assert rules({**values, "rbac": {"owners": False, "resourceClaims": False}}) == []


def test_every_rule_reads_and_names_what_it_reads() -> None:
    found = rules({})
    assert {verb for _, _, verb in found} == {"get", "list", "watch"}
    assert not [rule for rule in found if "*" in rule]
    assert not [rule for rule in found if rule[1] in ("secrets", "nodes/proxy", "configmaps")]


@pytest.mark.parametrize("api", ["off", "http://127.0.0.1:8001"])
def test_without_the_api_server_there_is_no_token_and_no_role(api: str) -> None:
    values = {"config": {"kube.api": api}}
    assert rules(values) == []
    assert chart.pod(chart.parse(chart.text(values)))["automountServiceAccountToken"] is False


def test_the_token_is_mounted_by_the_pod_alone() -> None:
    manifests = chart.objects("defaults")
    assert chart.only(manifests, "ServiceAccount")["automountServiceAccountToken"] is False
    assert chart.pod(manifests)["automountServiceAccountToken"] is True


def test_a_network_policy_lets_in_scrapes_and_out_to_the_api_server() -> None:
    policy = chart.only(chart.objects("old-ports"), "NetworkPolicy")["spec"]
    assert policy["policyTypes"] == ["Ingress", "Egress"]
    (ingress,) = policy["ingress"]
    assert [each["port"] for each in ingress["ports"]] == ["http", "probe", "dcgm", "pod-gpu-map"]
    assert ingress["from"] == [{"namespaceSelector": {"matchLabels": {"a": "b"}}}]
    assert {each["port"] for rule in policy["egress"] for each in rule["ports"]} == {53, 443, 6443}


def test_without_the_api_server_nothing_goes_out() -> None:
    policy = chart.only(chart.objects("no-api"), "NetworkPolicy")["spec"]
    assert "Egress" in policy["policyTypes"] and "egress" not in policy


def test_the_pod_can_do_without_anything_of_the_host() -> None:
    manifests = chart.parse(chart.text({"hostPID": False, "hostPaths": NONE_ON}))
    spec = chart.pod(manifests)
    assert chart.agent(manifests)["securityContext"]["runAsUser"] == 65534
    assert not any(spec.get(name) for name in ("hostPID", "hostNetwork", "hostIPC"))
    assert not [each for each in spec["volumes"] if "hostPath" in each]


def test_a_web_config_is_kept_as_a_secret() -> None:
    manifests = chart.objects("web-config")
    assert "tls_server_config" in chart.web_config(manifests)
    assert "tls_server_config" not in str(chart.only(manifests, "ConfigMap"))


def notes(values: chart.Values) -> str:
    """helm prints them only when it installs, so they are rendered into an object here."""
    template = 'apiVersion: v1\nkind: Notes\nmetadata: {}\ntext: {{ include "podgpu.notes" . | toJson }}\n'
    manifests = chart.parse(chart.text({**values, "extraManifests": [template]}))
    return str(chart.only(manifests, "Notes")["text"])


def listed() -> dict[str, dict[str, str]]:
    entries = yaml.safe_load(privileges.SOURCE.read_text(encoding="utf-8"))
    return {each["value"]: each for each in entries}


@pytest.mark.parametrize(
    ("values", "switched_off"),
    [
        ({"hostPID": False}, "hostPID"),
        ({"hostPaths": {"podResources": False}}, "hostPaths.podResources"),
        ({"config": {"kube": {"api": False}}}, "config.kube.api"),
        ({"rbac": {"owners": False}}, "rbac.owners"),
        ({"rbac": {"resourceClaims": False}}, "rbac.resourceClaims"),
    ],
)
def test_the_notes_say_what_a_missing_privilege_costs(values: chart.Values, switched_off: str) -> None:
    warnings = [line for line in notes(values).splitlines() if line.startswith("WARNING")]
    assert warnings == [f"WARNING: {switched_off} is off. Without it {listed()[switched_off]['lost']}."]


def test_the_notes_warn_about_no_default() -> None:
    assert "WARNING" not in notes({})


def test_the_notes_say_when_nothing_scrapes() -> None:
    assert "Nothing scrapes the agents yet" in notes({})
    assert "Nothing scrapes" not in notes({"podMonitor": {"enabled": True}})


def test_the_list_of_privileges_has_the_charts_switches_and_defaults() -> None:
    template = 'apiVersion: v1\nkind: Switches\nmetadata: {}\nvalue: {{ include "podgpu.switches" . | toJson }}\n'
    manifests = chart.parse(chart.text({"extraManifests": [template]}))
    switches = json.loads(chart.only(manifests, "Switches")["value"])
    assert {value: each["default"] for value, each in listed().items()} == switches
