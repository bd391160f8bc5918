import sys
from argparse import ArgumentParser, Namespace

from podgpu.cli._view import LOOKING, View, open_view
from podgpu.config import Config
from podgpu.insight.selection import PodSelection

HELP = "Watch who uses the GPUs of a node or a cluster."
OPTIONS = LOOKING

VIEWS = ("pods", "workloads", "namespaces", "gpus", "nodes")


def arguments(parser: ArgumentParser) -> None:
    from podgpu.cli._form import add_output, add_selection
    from podgpu.cli._view.watch import add_watch

    parser.add_argument(
        "view",
        nargs="?",
        metavar=f"[{'|'.join(VIEWS)}]",
        choices=VIEWS,
        default=VIEWS[0],
        help="what to begin with; pods if nothing is given",
    )
    add_selection(parser)
    add_output(parser)
    parser.add_argument("--once", action="store_true", help="print the rows once, as without a terminal")
    add_watch(parser)


def run(config: Config, arguments: Namespace) -> int:
    from podgpu.cli._form import selection

    chosen = selection(arguments)
    view = open_view(config)
    try:
        _show(view, chosen, arguments)
    except KeyboardInterrupt:  # one way to leave it
        return 0
    finally:
        view.close()
    return 0


def _show(view: View, chosen: PodSelection, arguments: Namespace) -> None:
    is_live = sys.stdin.isatty() and sys.stdout.isatty() and arguments.output == "table"
    if is_live and not arguments.once and not arguments.watch:
        from podgpu.cli._top.live import live
        from podgpu.cli._top.screen import opened
        from podgpu.cli._top.state import State

        with opened() as screen:
            live(screen, view, chosen, State(view=arguments.view))
    else:
        from functools import partial

        from podgpu.cli._top.once import once
        from podgpu.cli._view.watch import watched

        watched(view, partial(once, chosen, arguments), arguments)
