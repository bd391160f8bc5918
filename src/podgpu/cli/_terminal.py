"""What a person at a terminal gets besides the output: colour, and the output again when it changes."""

import os
import shutil
import sys
from argparse import ArgumentParser, Namespace
from collections.abc import Callable
from typing import TextIO

from podgpu.cli._target import Target
from podgpu.model import Cluster
from podgpu.views.text import NO_LIMIT

_CHANGE_SECONDS = 5.0


def columns(stream: TextIO | None = None) -> int:
    """How wide the output may be, or what is written to another stream. A program that reads it gets whole names."""
    return shutil.get_terminal_size().columns if (stream or sys.stdout).isatty() else NO_LIMIT


def can_draw() -> bool:
    """Whether the output is a terminal that understands more than text."""
    return sys.stdout.isatty() and os.environ.get("TERM") != "dumb"


def has_colour() -> bool:
    return can_draw() and not os.environ.get("NO_COLOR")


def add_watch(parser: ArgumentParser) -> None:
    parser.add_argument("-w", "--watch", action="store_true", help="print it again whenever something changes")


def print_and_watch(target: Target, show: Callable[[Cluster], int], arguments: Namespace) -> int:
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
