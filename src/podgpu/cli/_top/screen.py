"""Draws on the terminal and reads its keys, by curses. Leaves the terminal as it was, whatever happens."""

import curses
import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from types import FrameType

from podgpu.cli._top.styled import BOLD, CYAN, DIM, MARKED, RED, YELLOW, Line
from podgpu.errors import UserError

KEY_WAIT_MS = 100
_ESCAPE_MS = 25
_PLAIN_TERMINALS = ("xterm-256color", "xterm", "vt100")
_NAMES = {
    "\n": "enter",
    "\r": "enter",
    "\t": "tab",
    "\x1b": "escape",
    "\x7f": "backspace",
    "\b": "backspace",
    "\x06": "page down",
    "\x02": "page up",
    "\x03": "q",
    curses.KEY_ENTER: "enter",
    curses.KEY_RIGHT: "enter",
    curses.KEY_DOWN: "down",
    curses.KEY_UP: "up",
    curses.KEY_NPAGE: "page down",
    curses.KEY_PPAGE: "page up",
    curses.KEY_HOME: "home",
    curses.KEY_END: "end",
    curses.KEY_BTAB: "back tab",
    curses.KEY_BACKSPACE: "backspace",
    curses.KEY_RESIZE: "resize",
}


class Screen:
    def __init__(self, window: "curses.window") -> None:
        self._window = window
        self._styles = _styles()
        window.timeout(KEY_WAIT_MS)
        window.keypad(True)  # noqa: FBT003
        with suppress(curses.error):  # not every terminal can
            curses.curs_set(0)

    @property
    def size(self) -> tuple[int, int]:
        """Width and height."""
        height, width = self._window.getmaxyx()
        return width, height

    def key(self) -> str:
        """Return the name of a key, or nothing if none is pressed soon."""
        try:
            found = self._window.get_wch()
        except curses.error:
            return ""
        except KeyboardInterrupt:
            return "q"
        return _NAMES.get(found, found if isinstance(found, str) else "")

    def draw(self, lines: list[Line]) -> None:
        """Write every line; curses sends only what differs from what is there."""
        self._window.erase()
        for row, line in enumerate(lines[: self._window.getmaxyx()[0]]):
            # Writing the last cell of the screen fails, after it was written.
            with suppress(curses.error):
                self._window.move(row, 0)
                for text, style in line:
                    self._window.addstr(text, self._styles.get(style, 0))
        self._window.refresh()


@contextmanager
def opened() -> Iterator[Screen]:
    _set_terminal_type()
    for name in ("COLUMNS", "LINES"):  # curses would believe them, and miss that the window was resized
        os.environ.pop(name, None)
    before = {number: signal.signal(number, _leave) for number in (signal.SIGTERM, signal.SIGHUP)}
    window = curses.initscr()
    try:
        curses.noecho()
        curses.cbreak()
        curses.set_escdelay(_ESCAPE_MS)
        yield Screen(window)
    finally:
        window.keypad(False)  # noqa: FBT003
        curses.nocbreak()
        curses.echo()
        curses.endwin()
        for number, handler in before.items():
            signal.signal(number, handler)


def _leave(number: int, _: FrameType | None) -> None:
    raise SystemExit(128 + number)


def _set_terminal_type() -> None:
    """Choose a terminal type that is known here. Most terminals understand the plain types too."""
    for name in (os.environ.get("TERM", ""), *_PLAIN_TERMINALS):
        try:
            curses.setupterm(name)
        except curses.error:
            continue
        os.environ["TERM"] = name
        return
    raise UserError("this terminal is not known here; use `podgpu top --once`, or install ncurses-term")


def _styles() -> dict[str, int]:
    """With NO_COLOR, or on a terminal without colours, only weight distinguishes cells."""
    styles = {BOLD: curses.A_BOLD, DIM: curses.A_DIM, MARKED: curses.A_REVERSE}
    styles |= {RED: curses.A_BOLD, YELLOW: curses.A_BOLD}
    if os.environ.get("NO_COLOR") or not curses.tigetnum("colors") > 7:
        return styles
    curses.start_color()
    with suppress(curses.error):
        curses.use_default_colors()
        for number, (name, colour) in enumerate(
            {RED: curses.COLOR_RED, YELLOW: curses.COLOR_YELLOW, CYAN: curses.COLOR_CYAN}.items(), 1
        ):
            curses.init_pair(number, colour, -1)
            styles[name] = curses.color_pair(number)
    return styles
