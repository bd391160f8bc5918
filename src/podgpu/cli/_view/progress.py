"""A line on the terminal while something takes long."""

import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from podgpu.numbers import duration

PATIENCE_SECONDS = 0.6  # what is quicker needs no word
_STEP_SECONDS = 0.2


@contextmanager
def waiting(words: Callable[[], str]) -> Iterator[None]:
    """Say on a terminal what is waited for, and for how long, until the block ends."""
    if not sys.stderr.isatty():
        yield
        return
    done = threading.Event()
    teller = threading.Thread(target=_tell, args=(words, done), daemon=True)
    teller.start()
    try:
        yield
    finally:
        done.set()
        teller.join()


def _tell(words: Callable[[], str], done: threading.Event) -> None:
    begun = time.monotonic()
    if done.wait(PATIENCE_SECONDS):
        return
    while not done.wait(_STEP_SECONDS):
        print(f"\r\x1b[K{words()}, {duration(time.monotonic() - begun)}", end="", file=sys.stderr, flush=True)
    print("\r\x1b[K", end="", file=sys.stderr, flush=True)
