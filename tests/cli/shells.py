"""Real shells at a terminal: a user types a line, presses Tab and then Enter."""

import os
import pty
import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from podgpu.cli.completion import SCRIPTS
from tests.patience import wait_until

STARTS = {
    "bash": ["bash", "--noprofile", "--norc", "-i"],
    "zsh": ["zsh", "-f", "-i"],
    "fish": ["fish", "--no-config", "-i"],
}
LOADS = {
    "bash": "source <(podgpu completion bash)",
    "zsh": "autoload -U compinit; compinit -D -u; source <(podgpu completion zsh)",
    "fish": "podgpu completion fish | source",
}
# A program that offers what a file says, and writes down the words that it was run with.
PROGRAM = """#!/bin/sh
case "$1$3" in
completion--) cat "$HOME/offered"; : > "$HOME/asked" ;;
completion) cat "$HOME/script" ;;
*) printf '%s\\0' "$@" > "$HOME/part"; mv "$HOME/part" "$HOME/ran" ;;
esac
"""


class Shell:
    def __init__(self, home: Path, terminal: int) -> None:
        self._home = home
        self._terminal = terminal

    def words_after_tab(self, line: str) -> list[str]:
        """Type the line, press Tab and Enter, and return the words that the program was run with."""
        self._type(f"{line}\t")
        wait_until((self._home / "asked").exists)
        self._type("\r")
        wait_until((self._home / "ran").exists)
        return (self._home / "ran").read_text().split("\0")[:-1]

    def run(self, line: str) -> None:
        """Run a line, and wait until the shell is done with it."""
        self._type(f"{line}\r")
        self._type("echo > done\r")
        wait_until((self._home / "done").exists)

    def _type(self, text: str) -> None:
        os.write(self._terminal, text.encode())


@contextmanager
def at_a_terminal(shell: str, home: Path, offered: str) -> Iterator[Shell]:
    """Start a shell in a folder, which has completion by a program that offers these lines."""
    program = home / "podgpu"
    program.write_text(PROGRAM)
    program.chmod(0o755)
    (home / "script").write_text(SCRIPTS[shell])
    (home / "offered").write_text(f"{offered}\n")
    terminal, other = pty.openpty()
    environment = {"HOME": str(home), "PATH": f"{home}:{os.environ['PATH']}", "TERM": "vt100", "LC_ALL": "C.UTF-8"}
    # With the terminal as its own: fish waits for that.
    command = ["setsid", "--ctty", *STARTS[shell]]
    process = subprocess.Popen(command, stdin=other, stdout=other, stderr=other, cwd=home, env=environment)
    os.close(other)
    reading = threading.Thread(target=_read_all, args=(terminal,), daemon=True)  # it would block on a full terminal
    reading.start()
    try:
        found = Shell(home, terminal)
        found.run(LOADS[shell])
        yield found
    finally:
        process.kill()
        process.wait()
        os.close(terminal)


def _read_all(terminal: int) -> None:
    with suppress(OSError):
        while os.read(terminal, 1 << 16):
            pass
