"""A real Prometheus with all rules scrapes the demo, and every query is answered or rightly silent."""

import re
import shlex
import subprocess
import sys
from collections.abc import Iterator, Mapping
from math import isfinite
from pathlib import Path

import pytest
import yaml

from tests.deploy.watching.promql import Selector, selectors
from tests.deploy.watching.rulebook import ALERTS, FILES, RECORDINGS, RULES, Rule
from tests.deploy.watching.test_dashboards import PANELS, chosen
from tests.deploy.watching.test_rules import RUNBOOK
from tests.e2e.prometheus import PROGRAM, Job, Prometheus, prometheus
from tests.e2e.rig import Demo, demo
from tools.dashboards.dashboard import Dashboard
from tools.dashboards.panel import Panel

pytestmark = pytest.mark.skipif(PROGRAM is None, reason="prometheus is not installed")

# The metrics that the demo has no series of, and why that is right.
SILENT: Mapping[str, str] = {
    "podgpu_gpu_problem": "every card of the demo answers",
    "podgpu_container_unknown_share_seconds_total": "every share of the demo is known",
    "podgpu_unplaced_seconds_total": "every card of the demo is known",
    "podgpu_container_not_given": "every pod of the demo uses what it was given",
    "podgpu_guest_gpu_info": "the demo gives no card to virtual machines",
    "podgpu_source_problem": "every source of the demo works",
    "podgpu_series_dropped_total": "the demo stays below the series limit",
    "podgpu_gpu_retired_pages_pending": "only cards before Ampere have it",
    "kube_pod_status_phase": "kube-state-metrics is not there",
    "kube_pod_container_resource_requests": "kube-state-metrics is not there",
    "kube_node_status_allocatable": "kube-state-metrics is not there",
    "podgpu_cluster_build_info": "podgpu cluster is not there",
    "podgpu_cluster_dark_nodes": "podgpu cluster is not there",
    "podgpu_cluster_dark_critical_nodes": "podgpu cluster is not there",
    "ALERTS_FOR_STATE": "no alert waits",
    "podgpu:node_gpus:count": "it counts no GPUs that are made up",
    "podgpu:gpu_xid_errors:increase1h": "it counts no XIDs that are made up",
    "ALERTS": "no alert lasts long enough to fire",
}

# Selectors that find nothing although the metric is there.
RARE: Mapping[str, str] = {
    'podgpu_container_allocated_seconds_total{exported_namespace!=""}': "the demo's labels are kept",
}

# What keeps every alert from being about a demo.
MADE_UP = re.compile(r"unless on \([a-z, ]+\) (?:last_over_time\()?podgpu_build_info{demo=\"true\"}(?:\[\w+\]\))?")

# The alerts that would fire if the demo were real and went on.
SEEN: Mapping[str, str] = {
    "PodgpuPodIdle": "notebooks hold cards and do nothing",
    "PodgpuForeignProcess": "a process of the host is on a card",
    "PodgpuPodNearMemoryLimit": "a pod has nearly all that it may use",
}

# Queries that the demo answers with nothing, by panel and place: the first of a timeline has what failed.
UNEVENTFUL: Mapping[tuple[str, int], str] = {
    ("GPUs", 0): "no card fails",
    ("Sources", 0): "no source fails",
    ("Uncertain", 0): "the first minute may not be over",
}

# What the runbooks have operators type, as far as it asks an agent or Prometheus. A POST would end the demo's readings.
COMMANDS = sorted(
    {
        line
        for block in re.findall(r"```sh\n(.*?)```", RUNBOOK.read_text(), re.DOTALL)
        for line in block.splitlines()
        if line.startswith(("curl ", "kubectl -n podgpu exec $AGENT -- podgpu ")) and "POST" not in line
    }
)
QUERIES_OF_RUNBOOKS = sorted(
    {
        line
        for block in re.findall(r"```promql\n(.*?)```", RUNBOOK.read_text(), re.DOTALL)
        for line in block.splitlines()
        if not line.startswith("#")
    }
)
QUERIES = [(board, panel, query) for board, panel in PANELS for query in panel.queries]


@pytest.fixture(scope="module")
def node(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Demo]:
    with demo(["native"], tmp_path_factory.mktemp("demo") / "demo.log", "--interval=1s") as node:
        yield node


@pytest.fixture(scope="module")
def scraper(node: Demo, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Prometheus]:
    folder = tmp_path_factory.mktemp("prometheus")
    rules = list(hurried(folder))
    job = Job("podgpu", f"{node.urls['native']}/metrics")
    with prometheus([job], folder, rules) as here:
        yield here.when(
            "count_over_time(podgpu:workload_cost:increase5m[1m]) > 5",
            "podgpu_container_sampling_error_ratio",  # after sixteen comparisons
            "podgpu_up == 1",
        )


@pytest.fixture(scope="module")
def place(node: Demo) -> Mapping[str, str]:
    """What an alert's labels would be."""
    found = node.snapshot()
    container = node.tenants()[0]["container"]
    return {
        "NODE": found["node"],
        "UUID": found["cards"][0]["gpu"]["uuid"],
        "NAMESPACE": container["namespace"],
        "POD": container["pod"],
    }


def filled(written: str, place: Mapping[str, str]) -> str:
    return re.sub(r"\b(NODE|UUID|NAMESPACE|POD)\b", lambda word: place[word[0]], written)


def hurried(folder: Path) -> Iterator[Path]:
    """Copy the rules without their intervals, so that all are evaluated each second."""
    for path in FILES:
        content = yaml.safe_load(path.read_text())
        for group in content["groups"]:
            group.pop("interval", None)
        copy = folder / path.name
        copy.write_text(yaml.safe_dump(content))
        yield copy


def _is_silent(expression: str) -> bool:
    return any(selector.metric in SILENT for selector in selectors(expression))


@pytest.mark.parametrize(
    ("board", "panel", "place"),
    [(board, panel, place) for board, panel in PANELS for place in range(len(panel.queries))],
    ids=lambda value: (
        value.uid if isinstance(value, Dashboard) else value.title if isinstance(value, Panel) else str(value)
    ),
)
def test_a_query_of_a_dashboard_is_answered(scraper: Prometheus, board: Dashboard, panel: Panel, place: int) -> None:
    query = chosen(panel.queries[place].limited(panel.most_series))
    answer = scraper.query(query)
    assert answer or _is_silent(query) or (panel.title, place) in UNEVENTFUL
    assert [value for _, value in answer if not isfinite(value)] == []
    if panel.whole:
        assert [value for _, value in answer if value != int(value)] == []
    if panel.kind == "table":
        # Whatever else the answer had would be a column without a heading.
        assert {name for labels, _ in answer for name in labels} <= {column.label for column in panel.columns}


def test_the_first_xid_of_a_kind_is_counted(scraper: Prometheus) -> None:
    """The demo raises one. Its counter appears with it, so that increase() alone would see none."""
    (query,) = [query for _, panel, query in QUERIES if panel.title == "XIDs raised"]
    assert scraper.query("sum(podgpu_gpu_xid_errors_total)")[0][1] == 1
    assert scraper.query(chosen(query.promql))[0][1] == 1
    assert scraper.query("sum(increase(podgpu_gpu_xid_errors_total[1m]))")[0][1] == 0


@pytest.mark.parametrize("rule", RECORDINGS, ids=lambda rule: rule.name)
def test_a_recording_rule_records(scraper: Prometheus, rule: Rule) -> None:
    assert bool(scraper.query(rule.name)) != (rule.name in SILENT)


@pytest.mark.parametrize("rule", ALERTS, ids=lambda rule: rule.name)
def test_an_alert_sees_what_is_there_and_nothing_else(scraper: Prometheus, rule: Rule) -> None:
    assert bool(scraper.query(MADE_UP.sub("", rule.expr))) == (rule.name in SEEN)
    assert scraper.query(rule.expr) == []


@pytest.mark.parametrize("query", QUERIES_OF_RUNBOOKS)
def test_a_query_of_a_runbook_can_be_asked(scraper: Prometheus, place: Mapping[str, str], query: str) -> None:
    scraper.query(filled(query, place))


@pytest.mark.parametrize("command", COMMANDS)
def test_a_command_of_a_runbook_works(node: Demo, place: Mapping[str, str], command: str) -> None:
    """As it is written, but for where the agent is."""
    written = filled(command, place).replace(
        "kubectl -n podgpu exec $AGENT -- podgpu", f"{shlex.quote(sys.executable)} -m podgpu"
    )
    written = written.replace("http://127.0.0.1:19400", node.urls["native"])
    done = subprocess.run(["bash", "-o", "pipefail", "-c", written], capture_output=True, text=True, check=False)
    # podgpu doctor ends with 1 where it has found something.
    assert done.returncode == 0 or (" doctor " in command and done.returncode == 1), done.stderr
    assert done.stdout


@pytest.mark.parametrize(
    "selector", sorted({selector for rule in RULES for selector in selectors(rule.expr)}, key=str), ids=str
)
def test_what_rules_select_is_there(scraper: Prometheus, selector: Selector) -> None:
    found = bool(scraper.query(str(selector)))
    assert found != (selector.metric in SILENT or str(selector) in RARE)


def test_the_list_of_the_silent_is_true_and_needed(scraper: Prometheus) -> None:
    asked = {selector.metric for rule in RULES for selector in selectors(rule.expr)}
    asked |= {selector.metric for _, _, query in QUERIES for selector in selectors(chosen(query.promql))}
    assert SILENT.keys() <= asked
    loud = [name for name in SILENT if name != "ALERTS" and scraper.query(name)]
    assert loud == []


def test_no_rule_fails(scraper: Prometheus) -> None:
    assert [fault for fault in scraper.rule_faults().values() if fault] == []
    assert scraper.rule_faults().keys() == {rule.name for rule in RULES}
