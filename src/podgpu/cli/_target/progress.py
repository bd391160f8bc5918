"""A line on the terminal that says what a command waits for."""

import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from podgpu.numbers import duration, percent

QUIET_SECONDS = 0.6  # what is quicker needs no progress line
_STEP_SECONDS = 0.2


def show_progress(text: str) -> None:
    """Replace the progress line, on a terminal only. An empty text removes it."""
    if sys.stderr.isatty():
        print(f"\r\x1b[K{text}", end="", file=sys.stderr, flush=True)


def show_store_progress(part: float) -> None:
    """Show how much of a store has been read."""
    show_progress(f"reading the store: {percent(part)}" if part < 1 else "")


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
