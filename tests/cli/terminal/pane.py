"""A real terminal of any size, by tmux: the test presses its keys and reads its screen."""

import shlex
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from shutil import which

import pytest

from tests.patience import PATIENCE, wait_until

KEYS = {"enter": "Enter", "tab": "Tab", "escape": "Escape", "space": "Space", "down": "Down", "up": "Up"}

needs_tmux = pytest.mark.skipif(not which("tmux"), reason="needs tmux")


class Pane:
    def __init__(self, socket: Path) -> None:
        self._tmux = ["tmux", "-S", str(socket), "-f", "/dev/null"]
        self.log = socket.with_suffix(".log")  # all that was written to the terminal

    def run(self, *arguments: str) -> str:
        done = subprocess.run([*self._tmux, *arguments], capture_output=True, text=True, check=True)
        return done.stdout

    @property
    def lines(self) -> list[str]:
        return self.run("capture-pane", "-p").splitlines()

    @property
    def text(self) -> str:
        return "\n".join(self.lines)

    def has_shown(self, words: str) -> None:
        """Wait until the words have been on the screen, however briefly."""
        wait_until(lambda: words in self.log.read_text(errors="replace"))

    def press(self, *keys: str) -> None:
        for key in keys:
            self.run("send-keys", *([KEYS[key]] if key in KEYS else ["-l", key]))

    def click(self, row: int, column: int) -> None:
        """Press and release the first button on a cell, as a terminal reports it."""
        for end in "Mm":
            self.run("send-keys", "-l", f"\x1b[<0;{column + 1};{row + 1}{end}")

    @property
    def mouse_is_on(self) -> bool:
        return self.run("display-message", "-p", "#{mouse_standard_flag}#{mouse_sgr_flag}").strip() == "11"

    def shows(self, good: str | Callable[[list[str]], bool]) -> list[str]:
        """Wait until the screen has the words, or is as it should be. Return its lines."""
        until = time.monotonic() + PATIENCE
        while True:
            lines = self.lines
            if good in "\n".join(lines) if isinstance(good, str) else good(lines):
                return lines
            assert time.monotonic() < until, f"{good!r} is not to be seen:\n" + "\n".join(lines)
            time.sleep(0.05)


@contextmanager
def pane(folder: Path, width: int, height: int, *arguments: str, environment: str = "") -> Iterator[Pane]:
    """Run a command of podgpu. After its end the screen shows its exit code."""
    opened = Pane(folder / f"tmux-{width}")
    command = f"{environment} {shlex.quote(sys.executable)} -m podgpu {' '.join(arguments)}; echo code $?; exec cat"
    opened.run(
        "start-server",
        ";",
        "set",
        "-g",
        "set-clipboard",
        "on",
        ";",
        "new-session",
        "-d",
        "-x",
        str(width),
        "-y",
        str(height),
        f"exec sh -c {shlex.quote(command)}",
        ";",
        "pipe-pane",
        f"cat >{shlex.quote(str(opened.log))}",
    )
    try:
        yield opened
    finally:
        opened.run("kill-server")
