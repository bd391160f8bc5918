"""The dashboards: fresh, complete for Grafana, and about metrics that exist."""

import json
import re
from itertools import combinations
from pathlib import Path
from typing import Any

import pytest
from grafana_foundation_sdk.cog.encoder import JSONEncoder
from grafana_foundation_sdk.cog.plugins import register_default_plugins
from grafana_foundation_sdk.models.dashboard import Dashboard as GrafanaDashboard

from tests.deploy.watching.vocabulary import mistakes
from tools.dashboards.__main__ import DASHBOARDS, ROOT, main, path_of
from tools.dashboards.dashboard import Dashboard
from tools.dashboards.panel import Panel

PANELS = [(board, panel) for board in DASHBOARDS for panel in board.panels]
FILES = {one.uid: json.loads((ROOT / path_of(one)).read_text()) for one in DASHBOARDS}

# What stands for a choice in the dashboard: everything, and a range.
CHOICES = {
    "$__rate_interval": "15s",
    "$__range": "1m",
    "$cluster": ".*",
    "$node": ".*",
    "$namespace": ".*",
    "$pod": ".*",
}

each_dashboard = pytest.mark.parametrize("board", DASHBOARDS, ids=lambda one: one.uid)
each_panel = pytest.mark.parametrize(
    ("board", "panel"), PANELS, ids=lambda one: one.uid if isinstance(one, Dashboard) else one.title
)


def chosen(promql: str) -> str:
    for name, value in CHOICES.items():
        promql = promql.replace(name, value)
    return promql


def test_the_files_are_what_the_rows_say(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--check"]) == 0, capsys.readouterr().err


def test_a_stale_or_stray_file_is_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    main([], tmp_path)
    assert main(["--check"], tmp_path) == 0
    (tmp_path / path_of(DASHBOARDS[0])).write_text("{}")
    (tmp_path / "deploy/dashboards/old.json").write_text("{}")
    assert main(["--check"], tmp_path) == 1
    told = capsys.readouterr().err.splitlines()
    assert [line.partition(" ")[0] for line in told] == [
        "deploy/dashboards/old.json",
        "deploy/dashboards/podgpu-cluster.json",
    ]


def test_addresses_never_change() -> None:
    """Links, bookmarks and runbooks go by these."""
    assert [one.uid for one in DASHBOARDS] == [
        "podgpu-cluster",
        "podgpu-namespace",
        "podgpu-workload",
        "podgpu-health",
        "podgpu-agent",
    ]


@each_dashboard
def test_grafana_understands_every_field(board: Dashboard) -> None:
    """What Grafana's own model does not know is lost when it reads a dashboard and writes it again."""
    register_default_plugins()
    there = GrafanaDashboard.from_json(FILES[board.uid])
    back = json.loads(JSONEncoder().encode(there))
    assert _lost(FILES[board.uid], back) == []


@each_dashboard
def test_each_dashboard_has_the_choices(board: Dashboard) -> None:
    choices = {one["name"]: one for one in FILES[board.uid]["templating"]["list"]}
    assert {"datasource", "cluster", "node", "namespace"} <= choices.keys()
    text = json.dumps(FILES[board.uid]["panels"])
    for name, one in choices.items():
        assert f"${name}" in text or f"${{{name}" in text, f"{name} chooses nothing"
        # All of them is also all that lack the label.
        assert one["type"] == "datasource" or (one["allValue"], one["current"]["value"]) == (".*", ["$__all"])


@each_dashboard
def test_the_choices_are_made_from_what_exists(board: Dashboard) -> None:
    for one in board.variables:
        found = re.fullmatch(r"label_values\((.+), (\w+)\)", one.query)
        assert found
        assert mistakes(chosen(f"sum by ({found[2]}) ({found[1]})")) == []


@each_dashboard
def test_no_data_source_is_fixed(board: Dashboard) -> None:
    places = re.findall(r'"datasource": \{"type": "(\w+)", "uid": "([^"]*)"', json.dumps(FILES[board.uid]))
    assert set(places) == {("prometheus", "${datasource}")}
    assert len(places) > len(board.panels)


@each_dashboard
def test_panels_do_not_overlap_and_fit(board: Dashboard) -> None:
    places = [one["gridPos"] for one in FILES[board.uid]["panels"]]
    assert all(one["x"] + one["w"] <= 24 for one in places)
    assert not [pair for pair in combinations(places, 2) if _overlap(*pair)]
    numbers = [one["id"] for one in FILES[board.uid]["panels"]]
    assert len(set(numbers)) == len(numbers)


@each_panel
def test_each_panel_is_explained(board: Dashboard, panel: Panel) -> None:
    assert panel.title
    assert panel.description.endswith(".")
    assert panel.unit
    assert panel.queries
    # Only a table may have columns of labels alone.
    assert panel.kind in {"stat", "table"} or all(one.legend for one in panel.queries)


@each_panel
def test_each_query_names_only_metrics_and_labels_that_exist(board: Dashboard, panel: Panel) -> None:
    for query in panel.queries:
        assert "<" not in re.sub(r" < \d", "", query.promql), "an unknown filter"
        assert mistakes(chosen(query.promql)) == []


@each_panel
def test_a_legend_names_only_labels_that_the_query_keeps(board: Dashboard, panel: Panel) -> None:
    for query in panel.queries:
        for label in re.findall(r"\{\{(\w+)\}\}", query.legend):
            assert mistakes(f"sum by ({label}) ({chosen(query.promql)})") == []


@each_panel
def test_links_lead_to_dashboards_and_choices_that_exist(board: Dashboard, panel: Panel) -> None:
    choices = {one.uid: {"datasource", *(choice.name for choice in one.variables)} for one in DASHBOARDS}
    for address in panel.links.values():
        uid, _, rest = address.removeprefix("/d/").partition("?")
        assert set(re.findall(r"var-(\w+)=", rest)) <= choices[uid]


def test_all_dashboards_link_to_each_other() -> None:
    for one in FILES.values():
        links: list[dict[str, Any]] = one["links"]
        assert [(link["type"], link["tags"], link["includeVars"]) for link in links] == [
            ("dashboards", ["podgpu"], True)
        ]
        assert "podgpu" in one["tags"]


def _lost(wanted: Any, found: Any, place: str = "") -> list[str]:
    """Name the fields that are not found again. An empty one may be left out."""
    if isinstance(wanted, dict) and isinstance(found, dict):
        pairs = [(f"{place}.{key}", value, found.get(key)) for key, value in wanted.items()]
    elif isinstance(wanted, list) and isinstance(found, list) and len(wanted) == len(found):
        pairs = [(f"{place}[{at}]", *both) for at, both in enumerate(zip(wanted, found, strict=True))]
    else:
        return [] if wanted == found or wanted in ([], {}, "") else [place]
    return [name for where, one, other in pairs for name in _lost(one, other, where)]


def _overlap(one: dict[str, int], other: dict[str, int]) -> bool:
    apart = one["x"] + one["w"] <= other["x"] or other["x"] + other["w"] <= one["x"]
    return not apart and one["y"] < other["y"] + other["h"] and other["y"] < one["y"] + one["h"]
