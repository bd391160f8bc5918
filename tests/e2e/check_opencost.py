"""OpenCost's GPU hours and costs, from podgpu's series by deploy/opencost/rules.yaml, are those of `podgpu report`.

The real OpenCost reads a real Prometheus with four hours of the demo's node: its cards and shares, with made-up time.
"""

import json
import os
import re
import shutil
import subprocess
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from http import HTTPStatus
from pathlib import Path
from socket import socket
from typing import Any
from unittest.mock import patch

import pytest

from podgpu.cli.main import main
from podgpu.views import exposition
from podgpu.views import json as snapshot_json
from podgpu.views.exposition import Format
from podgpu.views.native import families
from podgpu.views.series import BILLED
from tests.e2e import prometheus
from tests.e2e.rig import demo, eventually, get, running

ROOT = Path(__file__).parents[2]
OPENCOST = os.environ.get("PODGPU_OPENCOST") or shutil.which("opencost")
RULES = [ROOT / "deploy/rules/price.yaml", ROOT / "deploy/opencost/rules.yaml"]

pytestmark = [
    pytest.mark.skipif(not OPENCOST, reason="needs OpenCost at $PODGPU_OPENCOST; make test-opencost builds it"),
    pytest.mark.skipif(prometheus.PROGRAM is None, reason="prometheus is not installed"),
    pytest.mark.skipif(shutil.which("promtool") is None, reason="promtool is not installed"),
]

MINUTE, HOUR, STEP = 60, 3600, 15
HOURS = 4
GRACE = 5 * MINUTE  # for which podgpu shows the counters of a pod that has ended
PRICE = 1  # of deploy/rules/price.yaml
ALLOCATED, SHARE = "podgpu_container_allocated_seconds_total", "podgpu_container_allocated_ratio"
METERS, WATTS = ("podgpu_gpu_energy_joules_total", "podgpu_gpu_booked_energy_joules_total"), 100
SAMPLE = re.compile(r"(\w+)\{(.*)\} (\S+)")
LABEL = re.compile(r'(\w+)="([^"]*)"')
# Pods on shared cards that come late and leave early, in seconds after the start.
TIMES = {"camera-0": (80 * MINUTE, HOURS * HOUR), "camera-1": (0, 165 * MINUTE)}


@dataclass(frozen=True)
class PageSample:
    metric: str
    labels: Mapping[str, str]
    text: str
    value: float

    @property
    def times(self) -> tuple[int, int]:
        pod = self.labels.get("pod", "")
        return next((times for name, times in TIMES.items() if pod.startswith(name)), (0, HOURS * HOUR))


def page_of_demo(folder: Path) -> list[PageSample]:
    with demo(["native"], folder / "demo.log") as agent:
        snapshot = snapshot_json.decode(get(f"{agent.urls['native']}/api/v1/snapshot").body)
    page = exposition.render(families(snapshot, {}), Format.TEXT).decode()
    found = (SAMPLE.fullmatch(line) for line in page.splitlines())
    samples = (
        PageSample(match[1], dict(LABEL.findall(match[2])), match[2], float(match[3])) for match in found if match
    )
    return [sample for sample in samples if sample.metric in {*BILLED, SHARE}]


def history(page: list[PageSample], start: int) -> Iterator[str]:
    """Whatever a container holds it holds all the time that it is there."""
    shares = {sample.text: sample.value for sample in page if sample.metric == SHARE}
    (node,) = {sample.labels["node"] for sample in page}
    for at in range(0, HOURS * HOUR + 1, STEP):
        stamp = (start + at) * 1000
        for sample in page:
            begins, ends = sample.times
            is_there = begins <= at < ends or ends == HOURS * HOUR == at
            value = sample.value
            if sample.metric == ALLOCATED:
                value = shares[sample.text] * (min(at, ends) - begins)
            elif sample.metric in METERS:
                value += at * WATTS
            if is_there or (sample.metric != SHARE and begins <= at <= ends + GRACE):
                yield f"{sample.metric}{{{sample.text}}} {value} {stamp}"
            if sample.metric == SHARE and begins <= at:
                pod = re.sub(r'(node|gpu|uuid|mig)="[^"]*",?', "", sample.text).strip(",")
                yield f"kube_pod_container_status_running{{{pod}}} {int(is_there)} {stamp}"
                # By this OpenCost learns which node the pod is on.
                yield f'container_cpu_allocation{{{pod},node="{node}"}} 1 {stamp}'
        labels = f'node="{node}",instance="{node}",instance_type="dgx",provider_id="{node}",region="",arch="amd64"'
        for name in ("node_cpu_hourly_cost", "node_ram_hourly_cost", "node_total_hourly_cost"):
            yield f"{name}{{{labels}}} 0.01 {stamp}"
        yield f'kube_node_info{{node="{node}"}} 1 {stamp}'
        yield f'kube_node_status_capacity_cpu_cores{{node="{node}"}} 64 {stamp}'
        yield f'kube_node_status_capacity_memory_bytes{{node="{node}"}} 1e12 {stamp}'


@contextmanager
def stored(page: list[PageSample], start: int, folder: Path) -> Iterator[str]:
    """The history, and what the recording rules make of it: they are evaluated over the past, and then loaded."""
    configuration = folder / "prometheus.yml"
    configuration.write_text("scrape_configs: []\n")
    prometheus.keep(dict.fromkeys(history(page, start)), folder)
    for rule in RULES:
        with prometheus.started(configuration, folder) as server:
            times = [f"--start={start}", f"--end={start + HOURS * HOUR}", f"--output-dir={folder / 'data'}"]
            make = ["promtool", "tsdb", "create-blocks-from", "rules", f"--url={server.url}", *times]
            subprocess.run([*make, "--eval-interval=60s", str(rule)], check=True, capture_output=True)
    with prometheus.started(configuration, folder) as server:
        yield server.url


@contextmanager
def opencost(store: str, folder: Path) -> Iterator[str]:
    """OpenCost with its nodes from a file in place of a Kubernetes API server."""
    assert OPENCOST
    with socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    node: dict[str, Any] = {
        "metadata": {"name": "n", "labels": {"topology.kubernetes.io/region": "here"}},
        "spec": {"providerID": "n"},
        "status": {"capacity": {"cpu": "1"}},
    }
    (folder / "cluster-cache.json").write_text(json.dumps({"nodes": [node]}))
    (folder / "cluster-info.json").write_text("{}")
    (folder / "default.json").write_text((ROOT / "deploy/opencost/pricing.json").read_text())
    context = {"name": "none", "context": {"cluster": "none", "user": "none"}}
    server = {"name": "none", "cluster": {"server": "http://127.0.0.1:9"}}
    kubeconfig = {"apiVersion": "v1", "kind": "Config", "clusters": [server], "contexts": [context]}
    user = {"name": "none", "user": {}}
    (folder / "kubeconfig").write_text(json.dumps({**kubeconfig, "users": [user], "current-context": "none"}))
    environment = {
        "API_PORT": str(port),
        "CACHE_WARMING_ENABLED": "false",
        "CLUSTER_CACHE_FILE_ENABLED": "true",
        "CLUSTER_ID": "default",
        "CLUSTER_INFO_FILE_ENABLED": "true",
        "CONFIG_PATH": str(folder),
        "KUBECONFIG": str(folder / "kubeconfig"),
        "KUBECOST_NAMESPACE": "opencost",
        "KUBERNETES_PORT": "given",  # it reads allocations only where it believes to be in a cluster
        "PROMETHEUS_SERVER_ENDPOINT": store,
        "PROM_CLUSTER_ID_LABEL": "cluster",
        "USE_CUSTOM_PROVIDER": "true",
    }
    with patch.dict(os.environ, environment), running([OPENCOST], folder / "opencost.log"):
        url = f"http://127.0.0.1:{port}"
        eventually(lambda: _is_up(url))
        yield url


def _is_up(url: str) -> bool:
    try:
        return get(f"{url}/healthz").status == HTTPStatus.OK
    except OSError:
        return False


def iso(at: float) -> str:
    return datetime.fromtimestamp(at, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


@dataclass(frozen=True)
class Setup:
    store: str
    opencost: str
    start: int
    page: list[PageSample]
    folder: Path

    def allocations(self, begins: int, ends: int, *more: str) -> dict[str, Any]:
        words = [f"window={iso(begins)},{iso(ends)}", f"step={ends - begins}s", f"resolution={STEP}s", *more]
        answer = get(f"{self.opencost}/allocation?{'&'.join(words)}").json()
        assert answer["code"] == HTTPStatus.OK, answer
        (found,) = answer["data"]
        return dict(found)

    def bill(self, capsys: pytest.CaptureFixture[str], begins: int, ends: int) -> list[dict[str, Any]]:
        prices = self.folder / "prices.yaml"
        prices.write_text(f"currency: XXX\ngpu_hour: {{'*': {PRICE}}}\n")
        words = [f"--from={iso(begins)}", f"--to={iso(ends)}", "--by=pod", f"--price={prices}", "-o=json"]
        code = main(["report", f"--prometheus.url={self.store}", *words])
        printed = capsys.readouterr()
        assert code == 0, printed.err
        return list(json.loads(printed.out)["rows"])


@pytest.fixture(scope="module")
def setup(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Setup]:
    folder = tmp_path_factory.mktemp("opencost")
    page = page_of_demo(folder)
    start = (int(time.time()) // HOUR - HOURS - 1) * HOUR
    with stored(page, start, folder) as store, opencost(store, folder) as url:
        yield Setup(store, url, start, page, folder)


def shared_pods(page: list[PageSample]) -> set[str]:
    return {sample.labels["pod"] for sample in page if sample.metric == SHARE and 0 < sample.value < 1}


@pytest.mark.parametrize("hour", range(HOURS))
def test_the_gpu_hours_of_every_pod_are_those_of_the_report(
    hour: int, setup: Setup, capsys: pytest.CaptureFixture[str]
) -> None:
    begins = setup.start + hour * HOUR
    theirs = setup.allocations(begins, begins + HOUR, "aggregate=namespace,pod")
    rows = [row for row in setup.bill(capsys, begins, begins + HOUR) if row["row"] == "group"]
    ours = {f"{row['namespace']}/{row['pod']}": row for row in rows if row["namespace"] and row["gpu_hours"]}
    assert {name for name, found in theirs.items() if found["gpuHours"]} == ours.keys()
    assert len(shared_pods(setup.page) & {row["pod"] for row in rows}) >= 8
    for name, row in ours.items():
        assert theirs[name]["gpuHours"] == pytest.approx(row["gpu_hours"], rel=0.01), name
        assert theirs[name]["gpuCost"] == pytest.approx(row["gpu_hours"] * PRICE, rel=0.01), name


def test_idle_gpus_are_the_free_ones_of_the_report(setup: Setup, capsys: pytest.CaptureFixture[str]) -> None:
    ends = setup.start + HOURS * HOUR
    found = setup.allocations(setup.start, ends, "aggregate=namespace", "includeIdle=true")
    (free,) = [row for row in setup.bill(capsys, setup.start, ends) if row["row"] == "free"]
    assert found["__idle__"]["gpuCost"] == pytest.approx(free["gpu_hours"] * PRICE, rel=0.01)
