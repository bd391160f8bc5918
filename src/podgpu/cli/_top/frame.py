"""The whole screen as lines, for the present rows and choices. Only rows that fit are written."""

from collections.abc import Sequence
from dataclasses import dataclass

from podgpu.cli._top.board import Board
from podgpu.cli._top.columns import HEADINGS, STATE, USE, Heading, heading, state_of
from podgpu.cli._top.evidence import evidence
from podgpu.cli._top.line import BOLD, CYAN, DIM, MARKED, PLAIN, RED, YELLOW, Line, bar, clipped, spread
from podgpu.cli._top.sheet import sheet
from podgpu.cli._top.state import VIEWS, State
from podgpu.insight.rows import PENDING, SummaryItem, SummaryRow
from podgpu.insight.use import IDLE
from podgpu.model import Sums, Use
from podgpu.numbers import UNKNOWN, count, gpu_number, integer, moment
from podgpu.views.text import fitted, line, shortened

HEAD, FOOT = 4, 1
LEAST_NAMES = {"pods": 20, "workloads": 20, "namespaces": 16, "gpus": 16, "nodes": 16}
MOST_NAME = 64
_GAP = 2
_TITLES = {
    "pods": "Pods",
    "workloads": "Workloads",
    "namespaces": "Namespaces",
    "gpus": "GPUs",
    "nodes": "Nodes",
}
_HINTS = "q quit  / filter  s sort  enter open  i idle  w wrong  space pause  ? help"


@dataclass(frozen=True, slots=True)
class Frame:
    """`line` is where the cursor is in the body, `first` the line at the top of it; `key` names the row there."""

    lines: list[Line]
    line: int
    first: int
    key: str


def frame(board: Board, state: State, width: int, height: int, first: int = 0, mode: str = "") -> Frame:
    """`mode` is said before all else, such as REPLAY and its time."""
    room = max(height - HEAD - FOOT, 1)
    top = [_wrong(board, width), _summary(board, mode, width), _tabs(state, width)]
    foot = clipped(_foot(state), width)
    if state.sheet:
        shown = [clipped(one, width) for one in sheet(state.sheet, board.wrongs, width)[: room + 1]]
        return Frame([*top, *shown, *_blank(room + 1 - len(shown)), foot], 0, 0, "")
    grid = _Grid(state, width, has_nodes=len(board.cluster.nodes) > 1)
    body = _Body(board.rows(state), state, grid)
    at = min(state.line, max(len(body) - 1, 0))
    first = min(max(first, at - room + 1, 0), at, max(len(body) - room, 0)) if len(body) > room else 0
    shown = [
        body.line(number, is_marked=number == at) for number in range(first, min(first + room, len(body)))
    ]
    if not shown:
        shown = [[(_empty(state), DIM)]]
    return Frame([*top, grid.head(), *shown, *_blank(room - len(shown)), foot], at, first, body.key(at))


def _blank(count: int) -> list[Line]:
    return [[] for _ in range(count)]


def _wrong(board: Board, width: int) -> Line:
    clock: Line = [] if board.cluster.replayed else [(moment(board.cluster.taken_at), DIM)]
    if not board.wrongs:
        return spread([("Nothing is wrong.", DIM)], clock, width)
    more = f"  +{integer(len(board.wrongs) - 1)} more: w" if len(board.wrongs) > 1 else ""
    return spread([(f"! {board.wrongs[0]}", RED)], [(more, RED), ("  ", PLAIN), *clock], width)


def _summary(board: Board, mode: str, width: int) -> Line:
    cluster = board.cluster
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


def _tabs(state: State, width: int) -> Line:
    tabs: Line = []
    for number, view in enumerate(VIEWS, 1):
        tabs += [(f" {number} {_TITLES[view]} ", MARKED if view == state.view else PLAIN), (" ", PLAIN)]
    marks = [f"filter {state.words}"] * bool(state.words and not state.typing)
    marks += ["idle only"] * state.only_idle + ["PAUSED"] * state.paused
    return spread(tabs, [("  ".join(marks), YELLOW)], width)


def _foot(state: State) -> Line:
    if state.typing:
        return [("/", BOLD), (state.words, PLAIN), ("▏", CYAN), ("   enter keeps it, escape drops it", DIM)]
    return [(_HINTS, DIM)]


def _empty(state: State) -> str:
    if state.words or state.only_idle:
        return f"No {state.view} match; escape shows all of them."
    return f"No {state.view} on a GPU."


class _Body:
    """The rows, and below those that are opened their evidence, as one list of lines that is never written whole."""

    def __init__(self, entries: Sequence[SummaryItem], state: State, grid: "_Grid") -> None:
        self._entries = entries
        self._grid = grid
        opened = {key for view, key in state.opened if view == state.view}
        found = [number for number, entry in enumerate(entries) if entry.key in opened] if opened else []
        self._below = {number: evidence(state.view, entries[number]) for number in found}

    def __len__(self) -> int:
        return len(self._entries) + sum(map(len, self._below.values()))

    def line(self, number: int, *, is_marked: bool) -> Line:
        index, child = self._at(number)
        if child < 0:
            return self._grid.row(self._entries[index].row, is_marked=is_marked)
        below = clipped(self._below[index][child], self._grid.width)
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


class _Grid:
    """Fixed columns, so that numbers stay where they are; the name takes what is left."""

    def __init__(self, state: State, width: int, *, has_nodes: bool) -> None:
        self.width = width
        self._sorted_by = heading(state.view, state.sorts[state.view])
        self._is_down = self._sorted_by.ascending == (state.view in state.turned)
        name, *others = HEADINGS[state.view]
        if not has_nodes:
            others = [one for one in others if one.title != "NODE"]
        self._name, self._others = name, others
        self._bar = 8
        while self._left() < LEAST_NAMES[state.view] and any(one.worth < 8 for one in self._others):
            self._others.remove(min(self._others, key=lambda one: one.worth))
        self._bar += min(max(self._left() - 44, 0), 16)
        self._size = max(min(self._left(), MOST_NAME), 8)

    def head(self) -> Line:
        cells: Line = [(fitted(self._title(self._name), self._size), self._tone(self._name))]
        for one in self._others:
            cells.append((" " * _GAP, PLAIN))
            size = one.size + (self._bar + 1 if one.title == USE else 0)
            cells.append((fitted(self._title(one), size, right=one.number), self._tone(one)))
        return clipped(cells, self.width)

    def row(self, row: SummaryRow, *, is_marked: bool) -> Line:
        cells: Line = [(fitted(shortened(line(row.title), self._size), self._size), _name_tone(row))]
        for one in self._others:
            cells.append((" " * _GAP, PLAIN))
            if one.title == USE:
                cells += [*bar(row.use, self._bar), (" ", PLAIN)]
            text = one.text(row) if one.number else shortened(one.text(row), one.size)
            cells.append((fitted(text, one.size, right=one.number), _tone(row, one)))
        if is_marked:
            cells = [(text, MARKED) for text, _ in cells]
        return clipped(cells, self.width)

    def _left(self) -> int:
        return self.width - sum(one.size + _GAP for one in self._others) - self._bar - 1

    def _title(self, one: Heading) -> str:
        return f"{one.title}{'▼' if self._is_down else '▲'}" if one is self._sorted_by else one.title

    def _tone(self, one: Heading) -> str:
        return CYAN if one is self._sorted_by else BOLD


def _name_tone(row: SummaryRow) -> str:
    return DIM if row.state == PENDING else YELLOW if row.state == IDLE else PLAIN


def _tone(row: SummaryRow, one: Heading) -> str:
    if one.title == STATE:
        return YELLOW if row.idle_pods or row.state == PENDING else RED if state_of(row) else PLAIN
    return DIM if one.text(row) == UNKNOWN else PLAIN
