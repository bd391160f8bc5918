"""Draws on the terminal, reads its keys and its mouse, by curses. Leaves the terminal as it was, whatever happens."""

import curses
import os
import re
import signal
import sys
from base64 import b64encode
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from types import FrameType

from podgpu.cli._top.keys import Click
from podgpu.cli._top.styled import BOLD, CYAN, DIM, LOADS, MARKED, RED, YELLOW, Line
from podgpu.errors import UserError
from podgpu.views.plain import plain

KEY_WAIT_MS = 100
_ESCAPE_MS = 25
_REPORT_MS = 500  # for the rest of a sequence: over a slow line it comes in pieces
_PLAIN_TERMINALS = ("xterm-256color", "xterm", "vt100")
_MOUSE_ON, _MOUSE_OFF = "\x1b[?1000h\x1b[?1006h", "\x1b[?1006l\x1b[?1000l"
_ENDINGS = (signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT)
_REPORT = re.compile(r"(\d+);(\d+);(\d+)")
_LONGEST_REPORT = 16
_FINAL = re.compile(r"[@-~]")
_WHEEL = {64: "wheel up", 65: "wheel down"}
# From low to high: shades that show on dark and on light backgrounds, and the nearest of eight colours.
_LOAD_SHADES = (31, 37, 35, 34)
_LOAD_COLOURS = (curses.COLOR_CYAN, curses.COLOR_CYAN, curses.COLOR_GREEN, curses.COLOR_GREEN)
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
        self._is_plain = sys.stdout.encoding == "ascii"
        window.timeout(KEY_WAIT_MS)
        window.keypad(True)  # noqa: FBT003
        with suppress(curses.error):  # not every terminal can
            curses.curs_set(0)

    @property
    def size(self) -> tuple[int, int]:
        """Width and height."""
        height, width = self._window.getmaxyx()
        return width, height

    def key(self) -> str | Click:
        """Return the name of a key, or a click, or nothing if there is none soon."""
        try:
            found = self._window.get_wch()
        except curses.error:
            return ""
        except KeyboardInterrupt:
            return "q"
        if found == curses.KEY_MOUSE:  # the terminal's description knows how a report begins
            return self._mouse()
        if found == "\x1b":
            return self._escaped()
        return _NAMES.get(found, found if isinstance(found, str) else "")

    def _escaped(self) -> str | Click:
        """Return what an escape begins: a report of the mouse, an unknown key, or nothing but itself."""
        found = self._next(_ESCAPE_MS)
        if found != "[":
            if found:  # a key that was pressed right after
                curses.unget_wch(found)
            return "escape"
        found = self._next(_REPORT_MS)
        if found == "<":
            return self._mouse()
        while found and not _FINAL.fullmatch(found):
            found = self._next(_REPORT_MS)
        return ""

    def _mouse(self) -> str | Click:
        """Read the rest of a report in SGR form: `0;12;5M` is the first button, pressed."""
        text = ""
        while (found := self._next(_REPORT_MS)) and found not in "Mm" and len(text) < _LONGEST_REPORT:
            text += found
        report = _REPORT.fullmatch(text)
        if report is None or found != "M":
            return ""
        button, column, row = map(int, report.groups())
        return Click(column - 1, row - 1) if button == 0 else _WHEEL.get(button, "")

    def _next(self, within_ms: int) -> str:
        """Return a character that comes with the one before; nothing if none does."""
        self._window.timeout(within_ms)
        try:
            found = self._window.get_wch()
        except curses.error:
            return ""
        finally:
            self._window.timeout(KEY_WAIT_MS)
        return found if isinstance(found, str) else ""

    def copy(self, text: str) -> None:
        """Put text on the clipboard of the terminal, wherever that runs."""
        _send(f"\x1b]52;c;{b64encode(text.encode()).decode()}\x07")

    @contextmanager
    def suspended(self) -> Iterator[None]:
        """Give the terminal back for a while."""
        leave()
        try:
            yield
        finally:
            self._window.clear()
            self._window.refresh()
            _send(_MOUSE_ON)

    def stop(self) -> None:
        """Stop until the shell continues us, with the terminal as it was."""
        with self.suspended():
            handler = signal.signal(signal.SIGTSTP, signal.SIG_DFL)
            os.kill(os.getpid(), signal.SIGTSTP)
            signal.signal(signal.SIGTSTP, handler)

    def draw(self, lines: list[Line]) -> None:
        """Write every line; curses sends only what differs from what is there."""
        self._window.erase()
        for row, line in enumerate(lines[: self._window.getmaxyx()[0]]):
            # Writing the last cell of the screen fails, after it was written.
            with suppress(curses.error):
                self._window.move(row, 0)
                for text, style in line:
                    self._window.addstr(plain(text) if self._is_plain else text, self._styles.get(style, 0))
        self._window.refresh()


@contextmanager
def opened() -> Iterator[Screen]:
    _set_terminal_type()
    for name in ("COLUMNS", "LINES"):  # curses would believe them, and miss that the window was resized
        os.environ.pop(name, None)
    before = {number: signal.signal(number, _end) for number in _ENDINGS}
    window = curses.initscr()
    try:
        curses.noecho()
        curses.cbreak()
        curses.set_escdelay(_ESCAPE_MS)
        screen = Screen(window)
        before[signal.SIGTSTP] = signal.signal(signal.SIGTSTP, lambda *_: screen.stop())
        _send(_MOUSE_ON)
        yield screen
    finally:
        window.keypad(False)  # noqa: FBT003
        curses.nocbreak()
        curses.echo()
        leave()
        for number, handler in before.items():
            signal.signal(number, handler)


def leave() -> None:
    _send(_MOUSE_OFF)
    curses.endwin()


def _send(codes: str) -> None:
    """Send codes that curses does not know."""
    sys.stdout.write(codes)
    sys.stdout.flush()


def _end(number: int, _: FrameType | None) -> None:
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
        loads = _LOAD_SHADES if curses.COLORS >= 256 else _LOAD_COLOURS
        colours = {RED: curses.COLOR_RED, YELLOW: curses.COLOR_YELLOW, CYAN: curses.COLOR_CYAN}
        for number, (name, colour) in enumerate((colours | dict(zip(LOADS, loads, strict=True))).items(), 1):
            curses.init_pair(number, colour, -1)
            styles[name] = curses.color_pair(number)
    return styles
