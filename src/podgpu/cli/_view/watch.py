"""Shows a cluster once, or again whenever it changes."""

import sys
from argparse import ArgumentParser, Namespace
from collections.abc import Callable

from podgpu.cli._view import View
from podgpu.model import Cluster

_WAIT_SECONDS = 5.0


def add_watch(parser: ArgumentParser) -> None:
    parser.add_argument(
        "-w", "--watch", action="store_true", help="print it again whenever something changes"
    )


def watched(view: View, show: Callable[[Cluster], int], arguments: Namespace) -> int:
    """Print with `show`, and with --watch again and again until the user has seen enough. Return its last exit code."""
    seen = view.cluster
    code = show(seen)
    try:
        while arguments.watch:
            newest = view.changed(seen, _WAIT_SECONDS)
            if newest is not seen:
                seen = newest
                print("\n" * (arguments.output in ("table", "wide")), end="")
                code = show(seen)
            sys.stdout.flush()
    except KeyboardInterrupt:
        pass
    return code
