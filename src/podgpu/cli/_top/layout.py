"""The whole screen as lines, for the present rows and choices. Only rows that fit are written."""

import textwrap
from collections.abc import Sequence
from dataclasses import dataclass

from podgpu.cli._top.columns import COLUMNS, STATE, USE, TopColumn, column_of, state_of
from podgpu.cli._top.evidence import evidence
from podgpu.cli._top.keys import HELP, VIEWS, TopState
from podgpu.cli._top.rows import TopRows
from podgpu.cli._top.styled import BOLD, CYAN, DIM, MARKED, PLAIN, RED, YELLOW, Line, bar, clipped, spread
from podgpu.insight.rows import PENDING, SummaryItem, SummaryRow
from podgpu.insight.tenants import IDLE
from podgpu.model import Sums, Use
from podgpu.numbers import UNKNOWN, count, gpu_number, integer, moment
from podgpu.views.text import fitted, line, shortened

HEAD, FOOT = 4, 1
LEAST_NAMES = {"pods": 20, "workloads": 20, "namespaces": 16, "gpus": 16, "nodes": 16}
MOST_NAME = 64
_GAP = 2
_HINTS = "q quit  / filter  s sort  enter open  i idle  w wrong  space pause  ? help"

_KEYS = (
    ("1 … 5, tab", "pods, workloads, namespaces, GPUs, nodes"),
    ("↑ ↓, j k, page keys, g G", "move"),
    ("enter", "open the row: its GPUs, claims and processes; again closes it"),
    ("/", "show only rows with these words; escape drops them"),
    ("s, < >", "sort by the next or the previous column"),
    ("r", "sort the other way round"),
    ("i", "show only pods that hold a GPU and do not use it"),
    ("space", "pause, and go on"),
    ("+ -", "faster, slower: a replay only"),
    ("w", "everything that is wrong"),
    ("q", "quit"),
)
_WORDS = (
    ("USE", "mean over the cards it is on. 23% (12–34) is an estimate: at least 12, at most 34."),
    ("HELD", "GPUs allocated to it, used or not."),
    ("idle 3h", "it holds a GPU and has not used it for three hours; podgpu idle lists them."),
    ("waiting", "it has held a GPU for a short time, and has not used it yet."),
    ("unknown", "whether it uses what it holds is not known; podgpu why says why not."),
)
_KEY_WIDTH = 28


@dataclass(frozen=True, slots=True)
class RenderedScreen:
    """`line` is where the cursor is in the body, `first` the line at the top of it; `key` names the row there."""

    lines: list[Line]
    line: int
    first: int
    key: str


def render(
    rows: TopRows, state: TopState, width: int, height: int, first: int = 0, mode: str = ""
) -> RenderedScreen:
    """`mode` is said before all else, such as REPLAY and its time."""
    room = max(height - HEAD - FOOT, 1)
    top = [_first_problem(rows, width), _summary(rows, mode, width), _tabs(state, width)]
    foot = clipped(_foot(state), width)
    if state.overlay:
        shown = [clipped(text, width) for text in _overlay(state.overlay, rows.problems, width)[: room + 1]]
        return RenderedScreen([*top, *shown, *_blank(room + 1 - len(shown)), foot], 0, 0, "")
    layout = _ColumnLayout(state, width, has_nodes=len(rows.cluster.nodes) > 1)
    body = _Body(rows.shown(state), state, layout)
    at = min(state.line, max(len(body) - 1, 0))
    first = min(max(first, at - room + 1, 0), at, max(len(body) - room, 0)) if len(body) > room else 0
    shown = [
        body.line(number, is_marked=number == at) for number in range(first, min(first + room, len(body)))
    ]
    if not shown:
        shown = [[(_empty(state), DIM)]]
    return RenderedScreen(
        [*top, layout.head(), *shown, *_blank(room - len(shown)), foot], at, first, body.key(at)
    )


def _blank(count: int) -> list[Line]:
    return [[] for _ in range(count)]


def _first_problem(rows: TopRows, width: int) -> Line:
    clock: Line = [] if rows.cluster.replayed else [(moment(rows.cluster.taken_at), DIM)]
    if not rows.problems:
        return spread([("Nothing is wrong.", DIM)], clock, width)
    more = f"  +{integer(len(rows.problems) - 1)} more: w" if len(rows.problems) > 1 else ""
    return spread([(f"! {rows.problems[0]}", RED)], [(more, RED), ("  ", PLAIN), *clock], width)


def _summary(rows: TopRows, mode: str, width: int) -> Line:
    cluster = rows.cluster
    sums = cluster.insight.sums if cluster.insight else Sums()
    name = line(cluster.name) or (line(cluster.nodes[0].name) if len(cluster.nodes) == 1 else "")
    words = [count(len(cluster.nodes), "node")] * (len(cluster.nodes) != 1) + [count(sums.gpus, "GPU")]
    words += [f"{gpu_number(sums.busy_gpus)} busy"] * (sums.busy_gpus is not None)
    words += [f"{gpu_number(sums.allocated_gpus)} held", count(sums.pods, "pod")]
    words += [f"{integer(len(cluster.pending))} pending"] * bool(cluster.pending)
    idle = f"{gpu_number(sums.unused_gpus)} idle in {count(sums.unused_pods, 'pod')}"
    marks: Line = [(f" {mark} ", MARKED) for mark in (mode, "DEMO" if cluster.demo else "") if mark]
    known = sums.gpus - sums.lost_gpus - sums.unknown_busy
    whole = Use(sums.busy_gpus / known if sums.busy_gpus is not None and known > 0 else None)
    return clipped(
        [
            *[piece for mark in marks for piece in (mark, (" ", PLAIN))],
            (f"{name}  " if name else "", BOLD),
            *bar(whole, 8),
            ("  " + "  ".join(words), PLAIN),
            (f"  {idle}" if sums.unused_pods else "", YELLOW),
        ],
        width,
    )


def _tabs(state: TopState, width: int) -> Line:
    tabs: Line = []
    for number, view in enumerate(VIEWS, 1):
        tabs += [
            (
                f" {number} {'GPUs' if view == 'gpus' else view.capitalize()} ",
                MARKED if view == state.view else PLAIN,
            ),
            (" ", PLAIN),
        ]
    marks = [f"filter {state.words}"] * bool(state.words and not state.typing)
    marks += ["idle only"] * state.only_idle + ["PAUSED"] * state.paused
    return spread(tabs, [("  ".join(marks), YELLOW)], width)


def _foot(state: TopState) -> Line:
    if state.typing:
        return [("/", BOLD), (state.words, PLAIN), ("▏", CYAN), ("   enter keeps it, escape drops it", DIM)]
    return [(_HINTS, DIM)]


def _empty(state: TopState) -> str:
    if state.words or state.only_idle:
        return f"No {state.view} match; escape shows all of them."
    return f"No {state.view} on a GPU."


class _Body:
    """The rows, and below those that are opened their evidence, as one list of lines that is never written whole."""

    def __init__(self, entries: Sequence[SummaryItem], state: TopState, layout: "_ColumnLayout") -> None:
        self._entries = entries
        self._layout = layout
        opened = {key for view, key in state.opened if view == state.view}
        found = [number for number, entry in enumerate(entries) if entry.key in opened] if opened else []
        self._below = {number: evidence(state.view, entries[number]) for number in found}

    def __len__(self) -> int:
        return len(self._entries) + sum(map(len, self._below.values()))

    def line(self, number: int, *, is_marked: bool) -> Line:
        index, child = self._at(number)
        if child < 0:
            return self._layout.row(self._entries[index].row, is_marked=is_marked)
        below = clipped(self._below[index][child], self._layout.width)
        return [(text, MARKED if is_marked else style) for text, style in below]

    def key(self, number: int) -> str:
        return self._entries[self._at(number)[0]].key if self._entries else ""

    def _at(self, number: int) -> tuple[int, int]:
        """Return the row of a line, and which line of its evidence it is; -1 for the row itself."""
        for index, lines in self._below.items():
            if number <= index:
                break
            if number <= index + len(lines):
                return index, number - index - 1
            number -= len(lines)
        return number, -1


class _ColumnLayout:
    """Fixed columns, so that numbers stay where they are; the name takes what is left."""

    def __init__(self, state: TopState, width: int, *, has_nodes: bool) -> None:
        self.width = width
        self._sorted_by = column_of(state.view, state.sorts[state.view])
        self._is_down = self._sorted_by.ascending == (state.view in state.reversed_views)
        name, *others = COLUMNS[state.view]
        if not has_nodes:
            others = [column for column in others if column.title != "NODE"]
        self._name, self._others = name, others
        self._bar = 8
        while self._left() < LEAST_NAMES[state.view] and any(column.worth < 8 for column in self._others):
            self._others.remove(min(self._others, key=lambda column: column.worth))
        self._bar += min(max(self._left() - 44, 0), 16)
        self._size = max(min(self._left(), MOST_NAME), 8)

    def head(self) -> Line:
        cells: Line = [(fitted(self._title(self._name), self._size), self._tone(self._name))]
        for column in self._others:
            cells.append((" " * _GAP, PLAIN))
            size = column.size + (self._bar + 1 if column.title == USE else 0)
            cells.append((fitted(self._title(column), size, right=column.number), self._tone(column)))
        return clipped(cells, self.width)

    def row(self, row: SummaryRow, *, is_marked: bool) -> Line:
        cells: Line = [(fitted(shortened(line(row.title), self._size), self._size), _name_tone(row))]
        for column in self._others:
            cells.append((" " * _GAP, PLAIN))
            if column.title == USE:
                cells += [*bar(row.use, self._bar), (" ", PLAIN)]
            text = column.text(row) if column.number else shortened(column.text(row), column.size)
            cells.append((fitted(text, column.size, right=column.number), _tone(row, column)))
        if is_marked:
            cells = [(text, MARKED) for text, _ in cells]
        return clipped(cells, self.width)

    def _left(self) -> int:
        return self.width - sum(column.size + _GAP for column in self._others) - self._bar - 1

    def _title(self, column: TopColumn) -> str:
        return f"{column.title}{'▼' if self._is_down else '▲'}" if column is self._sorted_by else column.title

    def _tone(self, column: TopColumn) -> str:
        return CYAN if column is self._sorted_by else BOLD


def _name_tone(row: SummaryRow) -> str:
    return DIM if row.state == PENDING else YELLOW if row.state == IDLE else PLAIN


def _tone(row: SummaryRow, column: TopColumn) -> str:
    if column.title == STATE:
        return YELLOW if row.idle_pods or row.state == PENDING else RED if state_of(row) else PLAIN
    return DIM if column.text(row) == UNKNOWN else PLAIN


def _overlay(name: str, problems: Sequence[str], width: int) -> list[Line]:
    if name == HELP:
        keys = [[(f"  {key:<{_KEY_WIDTH}}", CYAN), (meaning, PLAIN)] for key, meaning in _KEYS]
        words = [[(f"  {word:<{_KEY_WIDTH}}", BOLD), (meaning, PLAIN)] for word, meaning in _WORDS]
        return [[], *keys, [], *words, [], [("  ? goes back", DIM)]]
    found: list[Line] = [[]]
    for problem in problems:
        first, *more = textwrap.wrap(problem, max(width - 6, 20)) or [""]
        found += [[("  ! ", RED), (first, PLAIN)], *([(f"    {text}", PLAIN)] for text in more)]
    return [*found, [], [("  w goes back", DIM)]] if problems else [[], [("  Nothing is wrong.", DIM)]]
