"""What the user has chosen on the screen, and what each key and click changes."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace

from podgpu.cli._top.columns import COLUMNS, SORTED_BY

VIEWS = tuple(COLUMNS)
HELP, WRONG = "help", "wrong"


@dataclass(frozen=True, slots=True)
class TopState:
    """`line` is where the cursor is among the lines of the body; `opened` are the rows with evidence below, by view."""

    view: str = VIEWS[0]
    sorts: Mapping[str, str] = field(default_factory=lambda: SORTED_BY)
    reversed_views: frozenset[str] = frozenset()  # views that are sorted the other way round
    words: str = ""  # the filter: rows must have all of them
    typing: bool = False
    only_idle: bool = False
    line: int = 0
    follows: tuple[str, int] | None = None  # the row and the line of it where the cursor stays, wherever it moves
    opened: frozenset[tuple[str, str]] = frozenset()
    paused: bool = False
    has_meters: bool = True  # whether GPUs are shown above the rows
    message: str = ""  # what the last key did, until the next
    overlay: str = ""  # shown instead of the rows: HELP or WRONG
    quits: bool = False


Change = Callable[[TopState, int], TopState]


def press(state: TopState, key: str, page: int) -> TopState:
    """Return the state after a key. `page` is how many lines the screen shows."""
    state = replace(state, message="", follows=None)
    if state.typing:
        return _type(state, key)
    change = _KEYS.get(key)
    return change(state, page) if change else state


def _type(state: TopState, key: str) -> TopState:
    """The filter works while it is typed. Escape drops it."""
    if key in ("enter", "down", "up"):
        return replace(state, typing=False)
    if key == "escape":
        return replace(state, typing=False, words="", line=0)
    if key == "backspace":
        return replace(state, words=state.words[:-1], line=0)
    return replace(state, words=state.words + key, line=0) if len(key) == 1 and key.isprintable() else state


def choose_view(view: str) -> Change:
    return lambda state, _: replace(state, view=view, line=0, overlay="")


def _turn_view(by: int) -> Change:
    def turned(state: TopState, _: int) -> TopState:
        return replace(state, view=VIEWS[(VIEWS.index(state.view) + by) % len(VIEWS)], line=0, overlay="")

    return turned


def _sort(by: int) -> Change:
    def sorted_by(state: TopState, page: int) -> TopState:
        titles = [column.title for column in COLUMNS[state.view]]
        return sort_by(titles[(titles.index(state.sorts[state.view]) + by) % len(titles)])(state, page)

    return sorted_by


def sort_by(title: str) -> Change:
    """Sort by a column, or the other way round if that is the case already."""

    def chosen(state: TopState, _: int) -> TopState:
        is_same = state.sorts[state.view] == title
        turned = state.reversed_views ^ {state.view} if is_same else state.reversed_views - {state.view}
        return replace(state, sorts={**state.sorts, state.view: title}, reversed_views=turned, line=0)

    return chosen


def _move(lines: int) -> Change:
    return lambda state, _: replace(state, line=max(state.line + lines, 0))


def _escape(state: TopState, _: int) -> TopState:
    if state.overlay:
        return replace(state, overlay="")
    return replace(state, words="", only_idle=False)


def _show_overlay(name: str) -> Change:
    return lambda state, _: replace(state, overlay="" if state.overlay == name else name)


@dataclass(frozen=True, slots=True)
class Click:
    """Of the first button, counted from the upper left cell."""

    column: int
    row: int


@dataclass(frozen=True, slots=True)
class Zone:
    """Cells of one line, from `left` to before `right`."""

    row: int
    left: int
    right: int
    change: Change

    def has(self, click: Click) -> bool:
        return click.row == self.row and self.left <= click.column < self.right

    def below(self, rows: int) -> "Zone":
        return replace(self, row=self.row + rows)


def opened(view: str, key: str) -> Change:
    """Go to the view and open that row alone."""
    return lambda state, _: replace(state, view=view, opened=frozenset({(view, key)}), follows=(key, 0), overlay="")


def toggled(state: TopState, key: str) -> TopState:
    """Open a row, or close it."""
    return replace(state, opened=state.opened ^ {(state.view, key)})


_END = 1 << 30
_WHEEL = 3  # lines
_KEYS: Mapping[str, Change] = {
    "q": lambda state, _: replace(state, quits=True),
    "down": _move(1),
    "j": _move(1),
    "up": _move(-1),
    "k": _move(-1),
    "page down": lambda state, page: _move(page)(state, page),
    "page up": lambda state, page: _move(-page)(state, page),
    "home": _move(-_END),
    "g": _move(-_END),
    "end": _move(_END),
    "G": _move(_END),
    "tab": _turn_view(1),
    "back tab": _turn_view(-1),
    "/": lambda state, _: replace(state, typing=True, overlay=""),
    "s": _sort(1),
    ">": _sort(1),
    "<": _sort(-1),
    "r": lambda state, _: replace(state, reversed_views=state.reversed_views ^ {state.view}, line=0),
    "m": lambda state, _: replace(state, has_meters=not state.has_meters),
    "wheel up": _move(-_WHEEL),
    "wheel down": _move(_WHEEL),
    "i": lambda state, _: replace(state, only_idle=not state.only_idle, line=0),
    " ": lambda state, _: replace(state, paused=not state.paused),
    "?": _show_overlay(HELP),
    "h": _show_overlay(HELP),
    "w": _show_overlay(WRONG),
    "escape": _escape,
    **{str(number): choose_view(view) for number, view in enumerate(VIEWS, 1)},
}
