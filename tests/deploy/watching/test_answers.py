"""A real Prometheus with all rules scrapes the demo, and every query is answered or rightly silent."""

from collections.abc import Iterator, Mapping
from math import isfinite
from pathlib import Path

import pytest
import yaml

from tests.deploy.watching.promql import Selector, selectors
from tests.deploy.watching.rulebook import ALERTS, FILES, RECORDINGS, RULES, Rule
from tests.deploy.watching.test_dashboards import PANELS, chosen
from tests.e2e.prometheus import PROGRAM, Job, Prometheus, prometheus
from tests.e2e.rig import demo, eventually
from tools.dashboards.dashboard import Dashboard
from tools.dashboards.panel import Panel

pytestmark = pytest.mark.skipif(PROGRAM is None, reason="prometheus is not installed")

# The metrics that the demo has no series of, and why that is right.
SILENT: Mapping[str, str] = {
    "podgpu_gpu_problem": "every card of the demo answers",
    "podgpu_source_problem": "every source of the demo works",
    "podgpu_series_dropped_total": "the demo stays below the series limit",
    "podgpu_gpu_retired_pages_pending": "only cards before Ampere have it",
    "kube_pod_status_phase": "kube-state-metrics is not there",
    "kube_pod_container_resource_requests": "kube-state-metrics is not there",
    "kube_node_status_allocatable": "kube-state-metrics is not there",
    "ALERTS": "no alert lasts long enough to fire",
}

# Selectors that find nothing although the metric is there.
RARE: Mapping[str, str] = {
    'podgpu_container_allocated_seconds_total{exported_namespace!=""}': "the demo's labels are kept",
}

# Metrics of which the demo shows one kind, while rules select each.
ONE_KIND = {"podgpu:gpu_xid_errors:increase1h"}

# The alerts that see something in the demo, and would fire if it went on.
SEEN: Mapping[str, str] = {
    "PodgpuPodIdle": "notebooks hold cards and do nothing",
    "PodgpuForeignProcess": "a process of the host is on a card",
    "PodgpuPodNearMemoryLimit": "a pod has nearly all that it may use",
    "PodgpuXidApplication": "a card raises an XID soon after the start",
}

# Queries that the demo answers with nothing, by panel and place: the first of a timeline has what failed.
UNEVENTFUL: Mapping[tuple[str, int], str] = {
    ("GPUs", 0): "no card fails",
    ("Sources", 0): "no source fails",
}

QUERIES = [(board, panel, query) for board, panel in PANELS for query in panel.queries]


@pytest.fixture(scope="module")
def scraper(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Prometheus]:
    folder = tmp_path_factory.mktemp("prometheus")
    rules = list(hurried(folder))
    with demo(["native"], folder / "demo.log", "--interval=1s") as node:
        job = Job("podgpu", f"{node.urls['native']}/metrics")
        with prometheus([job], folder, rules) as here:
            eventually(lambda: here.query("count_over_time(podgpu:workload_cost:increase5m[1m]) > 5"))
            eventually(lambda: here.query("podgpu_container_sampling_evasion_ratio"))  # after twenty samples
            yield here


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
    return any(one.metric in SILENT for one in selectors(expression))


@pytest.mark.parametrize(
    ("board", "panel", "place"),
    [(board, panel, place) for board, panel in PANELS for place in range(len(panel.queries))],
    ids=lambda one: (
        one.uid if isinstance(one, Dashboard) else one.title if isinstance(one, Panel) else str(one)
    ),
)
def test_a_query_of_a_dashboard_is_answered(
    scraper: Prometheus, board: Dashboard, panel: Panel, place: int
) -> None:
    query = chosen(panel.queries[place].promql)
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
    (query,) = [query for _, panel, query in QUERIES if panel.title == "XIDs in the chosen time"]
    assert scraper.query("sum(podgpu_gpu_xid_errors_total)")[0][1] == 1
    assert scraper.query(chosen(query.promql))[0][1] == 1
    assert scraper.query("sum(increase(podgpu_gpu_xid_errors_total[1m]))")[0][1] == 0


@pytest.mark.parametrize("rule", RECORDINGS, ids=lambda one: one.name)
def test_a_recording_rule_records(scraper: Prometheus, rule: Rule) -> None:
    assert bool(scraper.query(rule.name)) != (rule.name in SILENT)


@pytest.mark.parametrize("rule", ALERTS, ids=lambda one: one.name)
def test_an_alert_sees_what_is_there_and_nothing_else(scraper: Prometheus, rule: Rule) -> None:
    assert bool(scraper.query(rule.expr)) == (rule.name in SEEN)


@pytest.mark.parametrize(
    "selector", sorted({one for rule in RULES for one in selectors(rule.expr)}, key=str), ids=str
)
def test_what_rules_select_is_there(scraper: Prometheus, selector: Selector) -> None:
    wanted = selector.metric if selector.metric in ONE_KIND else str(selector)
    found = bool(scraper.query(wanted))
    assert found != (selector.metric in SILENT or str(selector) in RARE)


def test_the_list_of_the_silent_is_true_and_needed(scraper: Prometheus) -> None:
    asked = {one.metric for rule in RULES for one in selectors(rule.expr)}
    asked |= {one.metric for _, _, query in QUERIES for one in selectors(chosen(query.promql))}
    assert SILENT.keys() <= asked
    loud = [name for name in SILENT if name != "ALERTS" and scraper.query(name)]
    assert loud == []


def test_no_rule_fails(scraper: Prometheus) -> None:
    assert [fault for fault in scraper.rule_faults().values() if fault] == []
    assert scraper.rule_faults().keys() == {one.name for one in RULES}
