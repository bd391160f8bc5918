import re
from functools import cache
from pathlib import Path

import jsonschema  # type: ignore[import-untyped]
import kubernetes_validate
import pytest
import yaml

from podgpu import __version__
from podgpu.config.precedence import load
from tests.conftest import Golden
from tests.deploy import chart
from tests.deploy.chart import FOREIGN, MATRIX, VERSIONS, needs_helm
from tools.chart import CHART

pytestmark = needs_helm


@cache
def every_object() -> list[chart.Object]:
    return [each for kind in MATRIX for each in chart.objects(kind)]


@pytest.mark.parametrize("version", VERSIONS)
def test_kubernetes_knows_every_field(version: str) -> None:
    manifests = every_object()
    assert {"DaemonSet", "ConfigMap", "ServiceAccount"} <= {each["kind"] for each in manifests} - FOREIGN
    chart.validate(manifests, version)


def test_a_misspelt_field_would_be_noticed() -> None:
    daemonset = chart.only(chart.objects("defaults"), "DaemonSet")
    daemonset["spec"]["template"]["spec"]["hostPid"] = True
    with pytest.raises(kubernetes_validate.ValidationError):
        kubernetes_validate.validate(daemonset, "1.36", strict=True)
    with pytest.raises(jsonschema.ValidationError):
        chart.validate([daemonset], "1.36")


@pytest.mark.parametrize("kind", MATRIX)
def test_helm_finds_nothing_to_say(kind: str) -> None:
    done = chart.helm("lint", "--strict", str(CHART), values=MATRIX[kind])
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize("kind", MATRIX)
def test_the_api_server_keeps_it_as_it_is_written(kind: str) -> None:
    """It leaves these out, and tools that compare would always see a difference. make test-kubernetes finds others."""
    manifests = chart.objects(kind)
    assert chart.pod(manifests).get("hostPID", True) is True
    assert not [each for each in manifests if "stringData" in each]
    assert not [each for each in manifests if each["kind"] == "NetworkPolicy" and each["spec"].get("egress") == []]


@pytest.mark.parametrize("version", ["1.29.0", "1.36.0"])
def test_every_supported_cluster_gets_the_same(version: str) -> None:
    assert chart.text(kubernetes=version) == chart.text()


def test_an_older_cluster_is_refused() -> None:
    done = chart.helm("template", "podgpu", str(CHART), "--kube-version=1.28.0")
    assert "chart requires kubeVersion: >=1.29.0" in done.stderr


@pytest.mark.parametrize("kind", ["defaults", "restricted", "old-ports", "platform", "web-config", "locked"])
def test_whole_output(kind: str, golden: Golden) -> None:
    golden(f"chart/{kind}.yaml", chart.text(MATRIX[kind]))


@pytest.mark.parametrize("kind", ["service-monitor", "vm-pod-scrape", "cluster-pod-monitoring"])
def test_output_for_operators(kind: str, golden: Golden) -> None:
    (foreign,) = [each for each in chart.objects(kind) if each["kind"] in FOREIGN]
    golden(f"chart/{kind}.yaml", yaml.safe_dump(foreign, sort_keys=False))


def test_the_chart_runs_the_version_it_comes_with() -> None:
    about = yaml.safe_load((CHART / "Chart.yaml").read_text(encoding="utf-8"))
    assert about["appVersion"] == __version__
    assert chart.agent(chart.objects("defaults"))["image"] == f"podgpu:{__version__}"


def test_options_reach_the_agent_as_words_and_digits() -> None:
    found = chart.config(chart.parse(chart.text({"config": {"series": {"limit": 10000000, "detail": True}}})))
    assert found["series.limit"] == "10000000"
    assert found["series.detail"] == "on"


@pytest.mark.parametrize("kind", MATRIX)
def test_the_agent_reads_the_file(kind: str, tmp_path: Path) -> None:
    """Paths of the pod are moved below a folder of the test, where the mounted files are."""
    for name, content in chart.files_of(chart.objects(kind)).items():
        moved = content.replace("/etc/podgpu", str(tmp_path)).replace('"/host"', f'"{tmp_path}"')
        (tmp_path / name).write_text(moved, encoding="utf-8")
    if any(each["kind"] == "Secret" for each in chart.objects(kind)):
        mounted = Path(f"{tmp_path}-web")
        mounted.mkdir()
        (mounted / "web-config.yml").write_text(chart.web_config(chart.objects(kind)), encoding="utf-8")
    config = load({"config_file": [str(tmp_path / "podgpu.yml")]}, {})
    assert config.web_listen_address[0].port == 19400


def test_the_configuration_page_can_be_pasted_into_config() -> None:
    """All but what the chart sets itself, and what is not an agent's."""
    page = (Path(__file__).parents[2] / "docs/configuration.md").read_text(encoding="utf-8")
    example = yaml.safe_load(page.split("```yaml\n")[1].split("```")[0])
    del example["path"], example["web"]["listen-address"], example["cluster"], example["prometheus"]
    found = chart.config(chart.parse(chart.text({"config": example})))
    assert found["dialect.hami.names"] == "new"
    assert found["dcgm.per-container"] == "off"


def test_a_changed_configuration_restarts_the_agents() -> None:
    def checksum(interval: str) -> object:
        manifests = chart.parse(chart.text({"config": {"interval": interval}}))
        return chart.only(manifests, "DaemonSet")["spec"]["template"]["metadata"]["annotations"]["checksum/config"]

    assert checksum("5s") != checksum("6s")


def test_old_ports_answer_in_their_dialect() -> None:
    manifests = chart.objects("old-ports")
    assert chart.config(manifests)["web.listen-address"] == [":19400", ":9400=dcgm", ":9401=pod-gpu-map"]
    ports = {each["name"]: each for each in chart.agent(manifests)["ports"]}
    assert ports["dcgm"] == {"name": "dcgm", "containerPort": 9400, "protocol": "TCP", "hostPort": 9400}
    assert [each["port"] for each in chart.only(manifests, "Service")["spec"]["ports"]] == [19400, 9400, 9401]
    assert [each["port"] for each in chart.only(manifests, "PodMonitor")["spec"]["podMetricsEndpoints"]] == [
        "http",
        "dcgm",
    ]


@pytest.mark.parametrize(
    ("kind", "object_kind", "endpoints", "relabel"),
    [
        ("pod-monitor", "PodMonitor", "podMetricsEndpoints", "relabelings"),
        ("service-monitor", "ServiceMonitor", "endpoints", "relabelings"),
        ("vm-pod-scrape", "VMPodScrape", "podMetricsEndpoints", "relabelConfigs"),
    ],
)
def test_nothing_becomes_exported_pod(kind: str, object_kind: str, endpoints: str, relabel: str) -> None:
    (endpoint,) = chart.only(chart.objects(kind), object_kind)["spec"][endpoints]
    assert endpoint["honorLabels"] is True
    assert endpoint[relabel][0] == {
        "action": "labeldrop",
        "regex": "(namespace|pod|container|service|endpoint)",
    }


def test_a_monitor_finds_the_agents_pods() -> None:
    manifests = chart.objects("pod-monitor")
    wanted = chart.only(manifests, "PodMonitor")["spec"]["selector"]["matchLabels"]
    labels = chart.only(manifests, "DaemonSet")["spec"]["template"]["metadata"]["labels"]
    assert wanted.items() <= labels.items()


def test_the_runbooks_find_the_agents_and_not_the_clusters_pod() -> None:
    page = (Path(__file__).parents[2] / "docs/alerts.md").read_text(encoding="utf-8")
    (terms,) = re.findall(r"AGENT=.* -l (\S+) ", page)
    wanted = dict(term.split("=") for term in terms.split(","))
    manifests = chart.parse(chart.text({"cluster": {"enabled": True}}))
    labels = {
        kind: chart.only(manifests, kind)["spec"]["template"]["metadata"]["labels"]
        for kind in ("DaemonSet", "Deployment")
    }
    assert wanted.items() <= labels["DaemonSet"].items()
    assert not wanted.items() <= labels["Deployment"].items()


def test_probes_ask_what_depends_on_nothing_outside() -> None:
    container = chart.agent(chart.objects("defaults"))
    assert container["livenessProbe"]["httpGet"] == {"path": "/-/healthy", "port": "probe", "scheme": "HTTP"}
    assert container["readinessProbe"]["httpGet"] == {"path": "/-/ready", "port": "probe", "scheme": "HTTP"}


def test_probes_ask_where_no_reader_of_pages_can_be_unless_told_otherwise() -> None:
    for port, asked in ((19401, "probe"), (0, "http")):
        values = {"probePort": port, "cluster": {"enabled": True, "probePort": port}}
        manifests = chart.parse(chart.text(values))
        pods = [chart.pod(manifests), chart.only(manifests, "Deployment")["spec"]["template"]["spec"]]
        for container in (pod["containers"][0] for pod in pods):
            probes = [container[probe]["httpGet"]["port"] for probe in ("livenessProbe", "readinessProbe")]
            assert probes == [asked, asked]
        files = [manifest["data"]["podgpu.yml"] for manifest in manifests if manifest["kind"] == "ConfigMap"]
        assert [":19401" in text for text in files] == [port > 0, port > 0]


@pytest.mark.parametrize("address", [":19401", "[::]:19401", ":19401=dcgm"])
def test_probes_ask_at_the_address_that_is_for_them_alone(address: str) -> None:
    config = {"web": {"probe-address": address}}
    both = {"config": config, "networkPolicy": {"enabled": True}}
    manifests = chart.parse(chart.text(both | {"cluster": {"enabled": True, **both}}))
    pods = [chart.pod(manifests), chart.only(manifests, "Deployment")["spec"]["template"]["spec"]]
    for container in (pod["containers"][0] for pod in pods):
        ports = {port["name"]: port["containerPort"] for port in container["ports"]}
        assert ports == {"http": 19400, "probe": 19401}
        assert [container[probe]["httpGet"]["port"] for probe in ("livenessProbe", "readinessProbe")] == [
            "probe",
            "probe",
        ]
    for policy in (manifest for manifest in manifests if manifest["kind"] == "NetworkPolicy"):
        assert [port["port"] for port in policy["spec"]["ingress"][0]["ports"]] == ["http", "probe"]


def test_gpu_nodes_are_found_by_either_discovery_and_their_taint_is_tolerated() -> None:
    spec = chart.pod(chart.objects("defaults"))
    terms = spec["affinity"]["nodeAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"]["nodeSelectorTerms"]
    keys = [term["matchExpressions"][0]["key"] for term in terms]
    assert keys[:2] == ["nvidia.com/gpu.present", "feature.node.kubernetes.io/pci-10de.present"]
    assert spec["tolerations"] == [{"key": "nvidia.com/gpu", "operator": "Exists", "effect": "NoSchedule"}]
    assert "nvidia.com/gpu" not in str(chart.agent(chart.objects("defaults"))["resources"])
