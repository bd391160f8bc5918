"""The dashboards: fresh, complete for Grafana, and about metrics that exist."""

import json
import re
from dataclasses import replace
from itertools import combinations, groupby
from pathlib import Path
from typing import Any

import pytest
from grafana_foundation_sdk.cog.encoder import JSONEncoder
from grafana_foundation_sdk.cog.plugins import register_default_plugins
from grafana_foundation_sdk.models.dashboard import Dashboard as GrafanaDashboard

from tests.deploy.watching.test_rules import needs_promtool, promtool
from tests.deploy.watching.vocabulary import mistakes
from tools.dashboards import __main__ as commands
from tools.dashboards import conclusions, layout
from tools.dashboards.__main__ import DASHBOARDS, ROOT, main, path_of
from tools.dashboards.dashboard import Dashboard
from tools.dashboards.glance import counted
from tools.dashboards.panel import (
    MOST_SERIES,
    PRESENCE,
    RECOVERY,
    WORKS,
    Column,
    Panel,
    Query,
    Section,
    State,
    lines,
    stat,
    table,
)

PANELS = [(board, panel) for board in DASHBOARDS for panel in board.panels]
FILES = {dashboard.uid: json.loads((ROOT / path_of(dashboard)).read_text()) for dashboard in DASHBOARDS}

# What stands for a choice in the dashboard: everything, and a range.
CHOICES = {
    "$__rate_interval": "15s",
    "$__range_ms": "60000",
    "$__range_s": "60",
    "$__range": "1m",
    "$__interval_ms": "1000",
    "$__interval": "1s",
    "$cluster": ".*",
    "$node": ".*",
    "$namespace": ".*",
    "$pod": ".*",
}

# Options that Grafana's model of our oldest version does not have yet. Older versions ignore them.
NEWER = re.compile(r"\.panels\[\d+\]\.options\.perPage")  # Grafana 11.2

TABLES = [(board, panel) for board, panel in PANELS if panel.kind == "table"]

each_dashboard = pytest.mark.parametrize("board", DASHBOARDS, ids=lambda board: board.uid)
each_panel = pytest.mark.parametrize(
    ("board", "panel"), PANELS, ids=lambda value: value.uid if isinstance(value, Dashboard) else value.title
)
each_table = pytest.mark.parametrize(
    ("board", "panel"), TABLES, ids=lambda value: value.uid if isinstance(value, Dashboard) else value.title
)


def chosen(promql: str, **choices: str) -> str:
    """The query as Grafana asks it. `choices` are values of variables other than all."""
    for name, value in choices.items():
        promql = promql.replace(f"${name}", value)
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
    assert [dashboard.uid for dashboard in DASHBOARDS] == [
        "podgpu-cluster",
        "podgpu-namespace",
        "podgpu-workload",
        "podgpu-bills",
        "podgpu-sharing",
        "podgpu-health",
        "podgpu-agent",
    ]


@each_dashboard
def test_grafana_understands_every_field(board: Dashboard) -> None:
    """What Grafana's own model does not know is lost when it reads a dashboard and writes it again."""
    register_default_plugins()
    there = GrafanaDashboard.from_json(FILES[board.uid])
    back = json.loads(JSONEncoder().encode(there))
    assert [name for name in _lost(FILES[board.uid], back) if not NEWER.fullmatch(name)] == []


@each_dashboard
def test_each_dashboard_has_the_choices(board: Dashboard) -> None:
    choices = {choice["name"]: choice for choice in FILES[board.uid]["templating"]["list"]}
    assert {"datasource", "cluster", "node", "namespace"} <= choices.keys()
    text = json.dumps(FILES[board.uid]["panels"])
    for name, choice in choices.items():
        assert f"${name}" in text or f"${{{name}" in text, f"{name} chooses nothing"
        # All of them is also all that lack the label.
        assert choice["type"] == "datasource" or (choice["allValue"], choice["current"]["value"]) == (".*", ["$__all"])


@each_dashboard
def test_the_choices_are_made_from_what_exists(board: Dashboard) -> None:
    for variable in board.variables:
        found = re.fullmatch(r"label_values\((.+), (\w+)\)", variable.query)
        assert found
        assert mistakes(chosen(f"sum by ({found[2]}) ({found[1]})")) == []


@each_dashboard
def test_no_data_source_is_fixed(board: Dashboard) -> None:
    places = re.findall(r'"datasource": \{"type": "(\w+)", "uid": "([^"]*)"', json.dumps(FILES[board.uid]))
    assert set(places) == {("prometheus", "${datasource}")}
    assert len(places) > len(board.panels)


@each_dashboard
def test_panels_fill_each_row_and_do_not_overlap(board: Dashboard) -> None:
    panels = FILES[board.uid]["panels"]
    places = [panel["gridPos"] for panel in panels]
    assert not [pair for pair in combinations(places, 2) if _overlap(*pair)]
    bottom = 0
    for top, row in groupby(places, lambda place: place["y"]):
        side_by_side = list(row)
        assert top == bottom, "no row is left empty"
        assert sum(place["w"] for place in side_by_side) == 24
        assert [place["x"] for place in side_by_side] == _starts(side_by_side)
        assert len({place["h"] for place in side_by_side}) == 1, "a step between neighbours"
        bottom = top + side_by_side[0]["h"]
    numbers = [panel["id"] for panel in panels]
    assert len(set(numbers)) == len(numbers)


@each_dashboard
def test_a_dashboard_is_changed_at_its_source_alone(board: Dashboard) -> None:
    assert FILES[board.uid]["editable"] is False


def test_the_words_for_an_empty_panel_are_not_on_its_axis() -> None:
    """With `decimals`, Grafana writes them there, between two whole numbers."""
    shown = [panel for file in FILES.values() for panel in file["panels"] if panel["type"] == "timeseries"]
    assert [panel["title"] for panel in shown if "decimals" in panel["fieldConfig"]["defaults"]] == []


@each_panel
def test_a_legend_of_containers_leaves_room_for_the_lines(board: Dashboard, panel: Panel) -> None:
    """A name of namespace, pod and container takes half of a window."""
    if panel.kind == "timeseries" and any("{{container}}" in query.legend for query in panel.queries):
        assert panel.width == 24


def _with(board: Dashboard, panel: Panel) -> Dashboard:
    """The dashboard with one panel more, above all others."""
    return replace(board, sections=(Section("Planted", (panel,)), *board.sections))


BOARD = DASHBOARDS[0]
LONG = "A title that takes more room than there is"


@pytest.mark.parametrize(
    ("panel", "complaint"),
    [
        (stat(LONG, "Words.", "short", "vector(1)"), f"{LONG}: its title is cut"),
        (lines("Narrow", "Words.", "short", Query("vector(1)"), width=8), "Narrow: its plot is narrower than half"),
        (table("Cut", "Words.", (Column("pod", "A long heading", 60),), Query("vector(1)")), "Cut: the heading A long"),
        (table("Wide", "Words.", (Column("pod", "Pod", 2000),), Query("vector(1)")), "Wide: its columns take 2000 of"),
        (table("High", "Words.", (Column("pod", "Pod"),), Query("vector(1)"), height=9), "Namespaces ends at row 24"),
    ],
    ids=["title", "plot", "heading", "columns", "first screen"],
)
def test_what_would_be_cut_or_below_the_first_screen_is_found(panel: Panel, complaint: str) -> None:
    assert [told for told in layout.complaints(_with(BOARD, panel)) if complaint in told]
    assert list(layout.complaints(BOARD)) == []


@pytest.mark.parametrize(
    ("expr", "complaint"),
    [
        ("rate(podgpu_container_busy_seconds_total{<namespace>}[15m]) < 0.001", "it compares with <"),
        ("podgpu_gpu_up{<node>} == 0", "it compares with =="),
        ("podgpu_container_info{<node>} unless podgpu_container_shared{<node>}", "it concludes from what is absent"),
        ("podgpu_gpu_info{<node>} and on (node) rate(podgpu_errors_total{<node>}[5m])", "it joins with what podgpu"),
        ("sum(podgpu_gpu_up{<node>}) / (sum(podgpu_series{<node>}) > 0)", ""),
        ("podgpu_container_info{<node>} and on (pod) podgpu_container_shared{<node>}", ""),
    ],
)
def test_a_query_that_concludes_something_itself_is_found(expr: str, complaint: str) -> None:
    planted = _with(BOARD, lines("Planted", "Words.", "short", Query(expr, "x")))
    found = list(conclusions.complaints(planted))
    assert [told.removeprefix("podgpu-cluster: Planted: ")[: len(complaint)] for told in found] == [complaint][
        : len(found)
    ]
    assert bool(found) == bool(complaint)


def test_an_excuse_that_is_not_needed_is_found() -> None:
    planted = _with(BOARD, lines("Planted", "Words.", "short", Query("podgpu_gpu_up", "x", order="failed first")))
    assert list(conclusions.complaints(planted)) == [
        "podgpu-cluster: Planted: nothing is compared there (failed first)"
    ]


def test_the_check_names_what_is_wrong(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    planted = _with(BOARD, lines("Planted", "Words.", "short", Query("podgpu_gpu_up > 1", "x"), width=8))
    monkeypatch.setattr(commands, "DASHBOARDS", (planted, *DASHBOARDS[1:]))
    assert main(["--check"]) == 1
    told = capsys.readouterr().err
    assert "podgpu-cluster: Planted: it compares with >" in told
    assert "podgpu-cluster: Planted: its plot is narrower" in told


@each_panel
def test_a_panel_shows_at_most_twenty_series_and_says_so(board: Dashboard, panel: Panel) -> None:
    if panel.kind == "timeseries":
        assert sum(panel.most_series for query in panel.queries if query.is_many) <= MOST_SERIES
        assert bool(panel.most_series) == any("{{" in query.legend for query in panel.queries)
        assert not panel.most_series or re.search(r"(top|lowest) 20", panel.told)


@pytest.mark.parametrize("states", [WORKS, PRESENCE, RECOVERY], ids=["works", "presence", "recovery"])
def test_each_state_has_a_colour_and_a_name_of_its_own(states: tuple[State, ...]) -> None:
    for values in ([state.value for state in states], [state.text for state in states]):
        assert len(set(values)) == len(states)
    assert len({state.color for state in states}) == len(states)


def test_timelines_show_the_colours_of_their_states() -> None:
    """Merged values, or colours by threshold, would draw 0 and 1 alike."""
    timelines = [panel for file in FILES.values() for panel in file["panels"] if panel["type"] == "state-timeline"]
    assert len(timelines) == 2
    known = {str(state.value): state.color for state in PRESENCE}
    for panel in timelines:
        (mapping,) = panel["fieldConfig"]["defaults"]["mappings"]
        colors = {value: state["color"] for value, state in mapping["options"].items()}
        assert colors.items() <= known.items()
        assert {"0": "red", "1": "green"}.items() <= colors.items()
        assert panel["options"]["mergeValues"] is False
        assert panel["options"]["legend"]["showLegend"] is False, "it would name the words for an empty panel"
        assert panel["fieldConfig"]["defaults"]["color"]["mode"] != "thresholds"
        # A grid row has 30 pixels and 8 between; title, axis and legend take about 90.
        assert (panel["gridPos"]["h"] * 38 - 90) / panel["options"]["perPage"] >= 20, "names would overlap"


def test_lines_can_be_read() -> None:
    """No fill that hides other lines, figures beside the names, and no axis up to 100 over nothing but zeros."""
    for panel in (panel for file in FILES.values() for panel in file["panels"] if panel["type"] == "timeseries"):
        custom, legend = panel["fieldConfig"]["defaults"]["custom"], panel["options"]["legend"]
        assert (custom["fillOpacity"] > 0) == (custom["stacking"]["mode"] == "normal"), panel["title"]
        assert (legend["placement"], legend["calcs"]) == ("bottom", ["last"]), "what has ended has no last value"
        assert 0 < custom["axisSoftMax"] <= 1


@each_panel
def test_only_a_ratio_has_a_highest_value_and_others_say_why_they_exceed_it(board: Dashboard, panel: Panel) -> None:
    assert panel.most is None or (panel.unit, panel.most) == ("percentunit", 1)
    if panel.kind == "timeseries" and panel.unit == "percentunit":
        assert panel.most == 1 or "100 %" in panel.description


@each_panel
def test_a_panel_without_an_answer_says_what_that_means(board: Dashboard, panel: Panel) -> None:
    files = {each["title"]: each for each in FILES[board.uid]["panels"] if each["type"] == panel.kind}
    assert files[panel.title]["fieldConfig"]["defaults"]["noValue"] == panel.no_value != ""
    # A stat has a font for a few characters.
    assert panel.kind != "stat" or len(panel.no_value) <= 12


@each_panel
def test_a_legend_names_the_namespace_of_a_pod(board: Dashboard, panel: Panel) -> None:
    for query in panel.queries:
        assert "{{pod}}" not in query.legend or "{{namespace}}/{{pod}}" in query.legend


@each_table
def test_a_table_has_headings_an_order_and_room(board: Dashboard, panel: Panel) -> None:
    numbers = [query for query in panel.queries if query.legend]
    headings = [column.title for column in panel.columns] + [query.legend for query in numbers]
    assert all(heading[0].isupper() or heading == "podgpu" for heading in headings)
    assert len(set(headings)) == len(headings)
    assert panel.sort in headings
    for column in panel.columns:
        # 36 characters and a prefix.
        assert column.label not in {"uuid", "mig"} or column.width >= 320


@needs_promtool
def test_errors_are_counted_in_whole_numbers(tmp_path: Path) -> None:
    """Eight errors, and four of which two came after a restart."""
    file = tmp_path / "test.yaml"
    series = {'errors{gpu="0"}': "0x5 3x2 8x10", 'errors{gpu="1"}': "5x4 7x3 0x3 1 2x8"}
    test = {
        "interval": "1m",
        "input_series": [{"series": name, "values": values} for name, values in series.items()],
        "promql_expr_test": [
            {
                "expr": counted("errors", "15m30s"),
                "eval_time": "18m",
                "exp_samples": [{"labels": '{gpu="0"}', "value": 8}, {"labels": '{gpu="1"}', "value": 4}],
            }
        ],
    }
    file.write_text(json.dumps({"tests": [test]}))
    promtool("test", "rules", str(file))


@each_panel
def test_each_panel_is_explained(board: Dashboard, panel: Panel) -> None:
    assert panel.title
    assert panel.description.endswith(".")
    assert panel.unit
    assert panel.queries
    # Only a table may have columns of labels alone.
    assert panel.kind in {"stat", "table"} or all(query.legend for query in panel.queries)


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
    choices = {
        dashboard.uid: {"datasource", *(choice.name for choice in dashboard.variables)} for dashboard in DASHBOARDS
    }
    for address in (column.link for column in panel.columns if column.link.startswith("/d/")):
        uid, _, rest = address.removeprefix("/d/").partition("?")
        set_to, kept = re.findall(r"var-(\w+)=", rest), re.findall(r"\$\{(\w+):queryparam\}", rest)
        assert {*set_to, *kept} <= choices[uid]
        assert {"datasource", "cluster", "node", "namespace"} <= {*set_to, *kept}, "a choice gets lost"


def test_all_dashboards_link_to_each_other() -> None:
    for file in FILES.values():
        links: list[dict[str, Any]] = file["links"]
        assert [(link["type"], link["tags"], link["includeVars"], link["asDropdown"]) for link in links] == [
            ("dashboards", ["podgpu"], True, True)
        ]
        assert "podgpu" in file["tags"]


def _lost(wanted: Any, found: Any, place: str = "") -> list[str]:
    """Name the fields that are not found again. An empty one may be left out."""
    if isinstance(wanted, dict) and isinstance(found, dict):
        pairs = [(f"{place}.{key}", value, found.get(key)) for key, value in wanted.items()]
    elif isinstance(wanted, list) and isinstance(found, list) and len(wanted) == len(found):
        pairs = [(f"{place}[{at}]", *both) for at, both in enumerate(zip(wanted, found, strict=True))]
    else:
        return [] if wanted == found or wanted in ([], {}, "") else [place]
    return [name for where, want, have in pairs for name in _lost(want, have, where)]


def _starts(places: list[dict[str, int]]) -> list[int]:
    return [sum(place["w"] for place in places[:count]) for count in range(len(places))]


def _overlap(left: dict[str, int], right: dict[str, int]) -> bool:
    apart = left["x"] + left["w"] <= right["x"] or right["x"] + right["w"] <= left["x"]
    return not apart and left["y"] < right["y"] + right["h"] and right["y"] < left["y"] + left["h"]
