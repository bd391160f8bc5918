"""What a person at a terminal sees besides the output: colour, progress, and the output again when it changes."""

import os
import sys
import threading
import time
from argparse import ArgumentParser, Namespace
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from podgpu.numbers import duration

if TYPE_CHECKING:
    from podgpu.cli._target import Target
    from podgpu.model import Cluster

QUIET_SECONDS = 0.6  # what is quicker needs no progress line
_STEP_SECONDS = 0.2
_CHANGE_SECONDS = 5.0


def has_colour() -> bool:
    return sys.stdout.isatty() and not os.environ.get("NO_COLOR")


def show_progress(text: str) -> None:
    """Replace the progress line, on a terminal only. An empty text removes it."""
    if sys.stderr.isatty():
        print(f"\r\x1b[K{text}", end="", file=sys.stderr, flush=True)


@contextmanager
def waiting(describe: Callable[[], str]) -> Iterator[None]:
    """Show what is waited for, and for how long, until the block ends."""
    if not sys.stderr.isatty():
        yield
        return
    done = threading.Event()
    thread = threading.Thread(target=_show_until, args=(describe, done), daemon=True)
    thread.start()
    try:
        yield
    finally:
        done.set()
        thread.join()


def _show_until(describe: Callable[[], str], done: threading.Event) -> None:
    begun = time.monotonic()
    if done.wait(QUIET_SECONDS):
        return
    while not done.wait(_STEP_SECONDS):
        show_progress(f"{describe()}, {duration(time.monotonic() - begun)}")
    show_progress("")


def add_watch(parser: ArgumentParser) -> None:
    parser.add_argument(
        "-w", "--watch", action="store_true", help="print it again whenever something changes"
    )


def print_and_watch(target: "Target", show: Callable[["Cluster"], int], arguments: Namespace) -> int:
    """Print with `show`, and with --watch after every change until Ctrl-C. Return its last exit code."""
    seen = target.cluster
    code = show(seen)
    try:
        while arguments.watch:
            newest = target.changed(seen, _CHANGE_SECONDS)
            if newest is not seen:
                seen = newest
                print("\n" * (arguments.output in ("table", "wide")), end="")
                code = show(seen)
            sys.stdout.flush()
    except KeyboardInterrupt:
        pass
    return code
