"""The screen of `podgpu top` as lines."""

import time
from dataclasses import replace as replace_state
from itertools import pairwise

import pytest
from msgspec.structs import replace

from podgpu.cli._top.columns import COLUMNS, NOUNS
from podgpu.cli._top.keys import VIEWS, Click, TopState, press
from podgpu.cli._top.layout import render
from podgpu.cli._top.rows import TopRows
from podgpu.cli._top.styled import Line, bar, width_of
from podgpu.insight import reconclude
from podgpu.insight.rows import SummaryItem
from podgpu.insight.selection import EVERYTHING, PodSelection
from podgpu.model import Cluster, ClusterNode, Fault, PartStatus, PendingPod, Use
from tests.tree import SETTINGS
from tests.views.quirks import SNAPSHOT

NODE = ClusterNode(name=SNAPSHOT.node, state="fresh", origin="agent", snapshot=SNAPSHOT)
SILENT = ClusterNode(name="silent", state="failed", reason="deadline", detail="no answer within 5 s")
CLUSTER = reconclude(
    Cluster(
        taken_at=SNAPSHOT.taken_at,
        version="1",
        nodes=(NODE, SILENT),
        pending=(PendingPod(namespace="ml", name="waits", asks={"nvidia.com/gpu": "4"}),),
    ),
    SETTINGS,
)
ROWS = TopRows(CLUSTER, EVERYTHING)


def as_text(lines: list[Line]) -> list[str]:
    return ["".join(text for text, _ in line).rstrip() for line in lines]


def screen(state: TopState, width: int = 120, height: int = 40) -> list[str]:
    return as_text(render(ROWS, state, width, height).lines)


def pressed(*keys: str) -> TopState:
    state = TopState()
    for key in keys:
        state = press(state, key, 10)
    return state


@pytest.mark.parametrize("view", VIEWS)
@pytest.mark.parametrize("width", [20, 40, 80, 120, 200])
def test_no_name_is_too_long_or_too_odd_for_the_screen(view: str, width: int) -> None:
    opened = frozenset((view, entry.key) for entry in ROWS.all(view))
    lines = render(ROWS, TopState(view=view, opened=opened), width, 60).lines
    assert len(lines) == 60
    assert all(width_of(line) <= width for line in lines)
    assert all(text.isprintable() for line in lines for text, _ in line)


def test_what_is_wrong_comes_first() -> None:
    assert screen(TopState())[0].startswith("! silent is dark: deadline. It has never given numbers.")
    assert "more: w" in screen(TopState())[0]
    assert any("gpu-node-1: GPU 2 cannot be read: timeout in nvmlDevice" in line for line in screen(pressed("w")))


def test_a_view_that_is_cut_off_says_so_before_all_else() -> None:
    fault = Fault(reason="unreachable", detail="http://gpu-1 refuses the connection")
    cut_off = reconclude(replace(CLUSTER, parts=(PartStatus(name="view", up=False, fault=fault),)), SETTINGS)
    lines = as_text(render(TopRows(cut_off, EVERYTHING), TopState(), 80, 20).lines)
    assert lines[0].startswith("! http://gpu-1 refuses the connection")
    assert "cut off since 08:53:20 UTC" in lines[0]
    assert any("llama-0" in line for line in lines)


def test_a_node_that_does_not_answer_keeps_its_row() -> None:
    (row,) = [line for line in screen(TopState(view="nodes")) if line.startswith("silent")]
    assert row.split()[-1] == "dark"


def test_a_pending_pod_has_a_row_without_numbers_and_says_what_it_asks_for() -> None:
    state = TopState(words="waits")
    entry = ROWS.shown(state)[0]
    lines = screen(TopState(words="waits", opened=frozenset({("pods", entry.key)})))
    at = next(number for number, line in enumerate(lines) if line.startswith("ml/waits"))
    assert lines[at].split()[-1] == "pending" and lines[at + 1].strip() == "4 nvidia.com/gpu"


def test_rows_are_sorted_by_any_column_and_the_unknown_is_last() -> None:
    state = TopState()
    for _ in range(10):
        state = press(state, "s", 10)
        rows = [entry.row for entry in ROWS.shown(state)]
        if state.sorts["pods"] == "MEM GiB":
            known = [row.memory_used_bytes for row in rows]
            assert known == sorted(known, key=lambda value: (value is None, -(value or 0)))
            turned = [entry.row.memory_used_bytes for entry in ROWS.shown(press(state, "r", 10))]
            assert turned[-1] is None and all(a <= b for a, b in pairwise(turned) if a and b)
            return
    pytest.fail("no column has the memory")


def test_the_filter_works_while_it_is_typed() -> None:
    typed = pressed("/", "l", "l", "a", "m", "x", "backspace")
    assert typed.words == "llam" and typed.typing
    assert {entry.row.name for entry in ROWS.shown(typed)} == {"llama-0"}
    assert pressed("/", "q").quits is False
    assert pressed("/", "q", "escape").words == ""


@pytest.mark.parametrize("view", VIEWS)
def test_a_selection_without_any_node_leaves_the_screen_standing(view: str) -> None:
    rows = TopRows(CLUSTER, PodSelection(namespace="nosuch"))
    shown = as_text(render(rows, TopState(view=view), 120, 40).lines)
    assert len(shown) == 40
    assert f"No {NOUNS[view]} found." in shown


def test_a_node_that_gives_no_numbers_has_dashes_and_no_zeros() -> None:
    (silent,) = [line for line in screen(TopState(view="nodes")) if line.startswith("silent")]
    assert "0" not in silent and silent.split()[1:5] == ["-"] * 4


def test_the_help_fits_a_screen_of_24_lines() -> None:
    assert "  ? goes back" in screen(pressed("?"), 80, 24)


def test_the_bar_shows_what_is_certain_and_what_is_in_doubt() -> None:
    assert "".join(text for text, _ in bar(Use(0.5), 8)) == "████····"
    assert "".join(text for text, _ in bar(Use(0.5, 0.25, 0.75), 8)) == "██▒▒▒▒··"
    assert "".join(text for text, _ in bar(Use(3.0), 4)) == "████"
    assert "".join(text for text, _ in bar(Use(None), 4)) == "    "


def test_10_000_pods_scroll_without_a_pause() -> None:
    rows = TopRows(CLUSTER, EVERYTHING)
    few = rows.all("pods")
    rows._entries["pods"] = [
        SummaryItem(item.row, f"{item.key}/{number}", item.order, item.places) for number in range(2000) for item in few
    ]
    assert len(rows.shown(TopState())) >= 10_000
    opened = frozenset({("pods", rows.shown(TopState())[7000].key)})
    assert min(seconds(rows, TopState(line=line, opened=opened)) for line in range(0, 10_000, 1000)) < 0.25


def seconds(rows: TopRows, state: TopState) -> float:
    begun = time.process_time()  # how busy the machine is makes no difference
    assert render(rows, state, 200, 50).cursor == state.line
    return time.process_time() - begun


@pytest.mark.parametrize("view", VIEWS)
@pytest.mark.parametrize("width", [40, 60, 80])
def test_the_column_that_sorts_keeps_its_place_and_its_arrow(view: str, width: int) -> None:
    state = TopState(view=view)
    for _ in COLUMNS[view]:
        state = press(state, "s", 10)
        assert sum("▼" in line or "▲" in line for line in screen(state, width)) == 1


def test_60_columns_keep_the_end_of_a_name() -> None:
    shown = "\n".join(screen(TopState(), 60))
    assert "-x2x7k" in shown and "-qqqqq" in shown


def test_the_cursor_stays_on_its_row_when_others_move() -> None:
    first = render(ROWS, TopState(line=2), 120, 40)
    state = TopState(line=2, follows=first.place, sorts={**TopState().sorts, "pods": "NAMESPACE/POD"})
    for turned in (state, press(state, "r", 10)):
        again = render(ROWS, replace_state(turned, follows=first.place), 120, 40)
        assert again.entry is not None and first.entry is not None and again.entry.key == first.entry.key


def test_several_nodes_have_a_cell_for_each_gpu_and_many_one_for_each_node() -> None:
    line = next(line for line in screen(TopState()) if line.startswith(SNAPSHOT.node))
    assert len(line.split()[1]) == len(SNAPSHOT.cards) and "✗" in line and "silent" in line
    many = tuple(replace(SILENT, name=f"node-{number}") for number in range(300))
    rows = TopRows(reconclude(replace(CLUSTER, nodes=(NODE, *many)), SETTINGS), EVERYTHING)
    shown = render(rows, TopState(), 120, 40)
    lines = as_text(shown.lines)
    at = next(number for number, line in enumerate(lines) if line.startswith("a cell is a node"))
    assert [len(line) for line in lines[at + 1 : at + 4]] == [120, 120, 61]
    (zone,) = [zone for zone in shown.zones if zone.has(Click(0, at + 1))]
    assert zone.change(TopState(), 10).view == "nodes"
