"""A real Prometheus scrapes the demo as the chart's PodMonitor says. Who is `pod` on the samples then?"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import pytest

from tests.deploy import chart
from tests.deploy.chart import needs_helm
from tests.e2e.prometheus import PROGRAM, Job, Prometheus, prometheus
from tests.e2e.rig import demo

pytestmark = [needs_helm, pytest.mark.skipif(PROGRAM is None, reason="prometheus is not installed")]

# What the Prometheus Operator puts on a target before the relabelings of a PodMonitor.
TARGET = {
    "namespace": "monitoring",
    "pod": "podgpu-x7k2p",
    "container": "agent",
    "endpoint": "http",
    "__meta_kubernetes_pod_node_name": "gpu-node-1",
}
NAMES = {"sourceLabels": "source_labels", "targetLabel": "target_label"}


@dataclass(frozen=True)
class Target(Job):
    honor: bool = True
    relabelings: list[dict[str, Any]] = field(default_factory=list)

    def configuration(self, proxy: str) -> dict[str, Any]:
        usual = super().configuration(proxy)
        usual["static_configs"][0]["labels"] = TARGET
        rules = [{NAMES.get(key, key): value for key, value in rule.items()} for rule in self.relabelings]
        return {**usual, "honor_labels": self.honor, "relabel_configs": rules}


JOB = {"action": "replace", "targetLabel": "job", "replacement": "gpu/podgpu"}


def test_the_job_has_a_name_that_no_label_of_a_pod_can_have() -> None:
    (endpoint,) = chart.only(chart.objects("pod-monitor"), "PodMonitor")["spec"]["podMetricsEndpoints"]
    assert JOB in endpoint["relabelings"]


@pytest.fixture(scope="module")
def scraper(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Prometheus]:
    (endpoint,) = chart.only(chart.objects("pod-monitor"), "PodMonitor")["spec"]["podMetricsEndpoints"]
    honor = endpoint["honorLabels"]
    rules = [rule for rule in endpoint["relabelings"] if rule != JOB]  # these jobs differ by their names
    folder = tmp_path_factory.mktemp("scraping")
    with demo(["native"], folder / "demo.log", "--interval=1s") as node:
        url = f"{node.urls['native']}/metrics"
        jobs = [
            Target("as the chart says", url, honor=honor, relabelings=rules),
            Target("overridden", url, honor=False, relabelings=rules),
            Target("by default", url, honor=False),
        ]
        with prometheus(jobs, folder) as here:
            yield here.when(f"count(podgpu_up) == {len(jobs)}")


def pods(scraper: Prometheus, job: str, label: str) -> set[str]:
    found = scraper.query(f'podgpu_container_memory_used_bytes{{job="{job}"}}')
    assert found
    return {labels.get(label, "") for labels, _ in found}


@pytest.mark.parametrize("job", ["as the chart says", "overridden"])
def test_the_pod_on_a_sample_is_the_one_that_uses_the_gpu(scraper: Prometheus, job: str) -> None:
    assert "notebook-3" in pods(scraper, job, "pod")
    assert pods(scraper, job, "exported_pod") == pods(scraper, job, "exported_namespace") == {""}


def test_a_prometheus_left_to_itself_would_name_the_agent(scraper: Prometheus) -> None:
    assert pods(scraper, "by default", "pod") == {TARGET["pod"]}
    assert "notebook-3" in pods(scraper, "by default", "exported_pod")


def test_the_target_itself_has_the_nodes_name(scraper: Prometheus) -> None:
    (found,) = scraper.query('up{job="as the chart says"}')
    assert found[0]["node"] == "gpu-node-1" and "pod" not in found[0]
