"""The rows of a view as lines, in columns that fit the screen."""

from podgpu.cli._top.columns import COLUMNS, NOUNS, STATE, USE, TopColumn, column_of, state_of
from podgpu.cli._top.evidence import evidence
from podgpu.cli._top.keys import TopState, Zone, sort_by
from podgpu.cli._top.rows import TopRows
from podgpu.cli._top.styled import BOLD, CYAN, DIM, MARKED, PLAIN, RED, YELLOW, Line, bar, clipped, dimmed, sparkline
from podgpu.insight.problem_kind import CRITICAL
from podgpu.insight.rows import PENDING, SummaryItem, SummaryRow
from podgpu.insight.tenants import IDLE
from podgpu.numbers import UNKNOWN
from podgpu.views.text import fitted, line, shortened

LEAST_NAMES = {"pods": 20, "workloads": 20, "namespaces": 16, "gpus": 16, "nodes": 16}
_LEAST_NAME = 8
_GAP = 2
_BAR, _WIDEST_BAR = 8, 24
_LEAST_TREND, _MOST_TREND = 10, 60
_TREND = "TREND"
_USUAL, _ALWAYS = 8, 9  # columns of this worth stay beside a short name, and always


class RowLines:
    """The rows, and below those that are opened their evidence, as one list of lines that is never written whole."""

    def __init__(self, rows: TopRows, state: TopState, width: int) -> None:
        self._rows = rows
        self._state = state
        self._entries = rows.shown(state)
        self.layout = _ColumnLayout(rows, state, width)
        opened = {key for view, key in state.opened if view == state.view}
        found = [number for number, entry in enumerate(self._entries) if entry.key in opened] if opened else []
        self._below = {number: evidence(state.view, self._entries[number]) for number in found}

    def __len__(self) -> int:
        return len(self._entries) + sum(map(len, self._below.values()))

    def line(self, number: int, *, is_marked: bool) -> Line:
        index, child = self._at(number)
        if child < 0:
            written = self.layout.row(self._entries[index])
        else:
            written = clipped(self._below[index][child], self.layout.width)
        if is_marked:
            return [(text, MARKED) for text, _ in written]
        return dimmed(written) if self._rows.is_cut_off or _is_old(self._entries[index]) else written

    def entry(self, number: int) -> SummaryItem | None:
        return self._entries[self._at(number)[0]] if self._entries else None

    def place(self, number: int) -> tuple[str, int] | None:
        """Return the row of a line, and which line of it that is."""
        index, child = self._at(number)
        return (self._entries[index].key, child + 1) if self._entries else None

    def cursor(self) -> int:
        """Return the line where the cursor is: it stays on its row when others move."""
        last = max(len(self) - 1, 0)
        if self._state.follows is None:
            return min(self._state.line, last)
        key, child = self._state.follows
        index = next((number for number, entry in enumerate(self._entries) if entry.key == key), None)
        if index is None:
            return min(self._state.line, last)
        above = sum(len(lines) for number, lines in self._below.items() if number < index)
        return index + above + min(child, len(self._below.get(index, ())))

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
    """Fixed columns, so that numbers stay where they are; the name takes what it needs, the trend what is left."""

    def __init__(self, rows: TopRows, state: TopState, width: int) -> None:
        self.width = width
        self._view, self._history = state.view, rows.history
        self._sorted_by = column_of(state.view, state.sorts[state.view])
        self._is_down = self._sorted_by.ascending == (state.view in state.reversed_views)
        name, *others = COLUMNS[state.view]
        if not rows.has_many_nodes:
            others = [column for column in others if column.title != "NODE"]
        self._name, self._others = name, others
        self._bar, self._trend = _BAR, 0
        longest = max(rows.longest_name(state), len(name.title) + 1)
        least = min(LEAST_NAMES[state.view], longest)
        self._leave_out(_USUAL, least)
        if self._left() < least:
            self._bar = 0
        self._leave_out(_ALWAYS, _LEAST_NAME)
        spare = self._left() - longest
        if spare >= _LEAST_TREND + _GAP:
            self._bar += min(max(spare - _LEAST_TREND - _GAP, 0) // 4, _WIDEST_BAR - _BAR)
            self._trend = min(self._left() - longest - _GAP, _MOST_TREND)
        self._size = max(min(self._left(), longest), _LEAST_NAME)

    def _leave_out(self, below: int, least: int) -> None:
        """Remove columns of less worth than that until the name has room. The column that sorts stays."""
        spare = [column for column in self._others if column.worth < below and column is not self._sorted_by]
        for column in sorted(spare, key=lambda column: column.worth):
            if self._left() < least:
                self._others.remove(column)

    def head(self) -> tuple[Line, list[Zone]]:
        """Return the headings, and where each of them is: a click sorts."""
        cells: Line = []
        zones, left = [], 0
        for column in (self._name, *self._others):
            right = left + self._column_size(column)
            zones.append(Zone(0, left, right, sort_by(column.title)))
            cells += [self._heading(column), (" " * _GAP, PLAIN)]
            left = right + _GAP
            if column.title == USE and self._trend:
                cells += [(fitted(_TREND, self._trend, right=True), BOLD), (" " * _GAP, PLAIN)]
                left += self._trend + _GAP
        return clipped(cells[:-1], self.width), zones

    def row(self, entry: SummaryItem) -> Line:
        row = entry.row
        cells: Line = [(fitted(shortened(line(row.title), self._size), self._size), _name_tone(row))]
        for column in self._others:
            cells.append((" " * _GAP, PLAIN))
            if column.title == USE and self._bar:
                cells += [*bar(row.use, self._bar), (" ", PLAIN)]
            text = column.text(row) if column.number else shortened(column.text(row), column.size)
            cells.append((fitted(text, column.size, right=column.number), _tone(row, column)))
            if column.title == USE and self._trend:
                trend = self._history.of(self._view, entry.key)
                cells += [(" " * _GAP, PLAIN), *sparkline(trend, self._trend)]
        return clipped(cells, self.width)

    def _column_size(self, column: TopColumn) -> int:
        if column is self._name:
            return self._size
        return column.size + (self._bar + 1 if column.title == USE and self._bar else 0)

    def _left(self) -> int:
        return self.width - sum(self._column_size(column) + _GAP for column in self._others)

    def _heading(self, column: TopColumn) -> tuple[str, str]:
        """Write an arrow behind the column that sorts, and cut its words before that."""
        size = self._column_size(column)
        if column is not self._sorted_by:
            return fitted(column.title, size, right=column.number), BOLD
        return fitted(column.title[: size - 1] + ("▼" if self._is_down else "▲"), size, right=column.number), CYAN


def _is_old(entry: SummaryItem) -> bool:
    """Whether its node no longer answers, so that its numbers are of the past."""
    nodes = [entry.node] if entry.node else [place.on.node for place in entry.places]
    return bool(nodes) and all(node is not None and node.is_dark for node in nodes)


def _name_tone(row: SummaryRow) -> str:
    return DIM if row.state == PENDING else YELLOW if row.state == IDLE else PLAIN


def _tone(row: SummaryRow, column: TopColumn) -> str:
    if column.title == STATE:
        if row.severity:
            return RED if row.severity == CRITICAL else YELLOW
        return YELLOW if row.idle_pods or row.state == PENDING else RED if state_of(row) else PLAIN
    return DIM if column.text(row) == UNKNOWN else PLAIN


def empty_text(state: TopState) -> str:
    if state.words or state.only_idle:
        return f"No {NOUNS[state.view]} match; escape shows all of them."
    return f"No {NOUNS[state.view]} found."
