import sys
from argparse import ArgumentParser, Namespace
from contextlib import suppress
from functools import partial

from podgpu.cli._output import add_selection, add_table_output, print_problems, print_table, selection
from podgpu.cli._target import TARGET_OPTIONS, Target, check_node, open_target
from podgpu.cli._terminal import add_watch, can_draw, print_and_watch
from podgpu.cli._top.columns import COLUMNS, NOUNS, SORTED_BY
from podgpu.cli._top.keys import VIEWS, TopState
from podgpu.cli._top.rows import TopRows, ordered
from podgpu.config import Config
from podgpu.insight.rows import SummaryRow
from podgpu.insight.selection import PodSelection
from podgpu.model import Cluster
from podgpu.option.value import OneOf
from podgpu.views.row_table import Column, RowTable, fields_of

HELP = "Watch who uses the GPUs of a node or a cluster."
OPTIONS = TARGET_OPTIONS


def arguments(parser: ArgumentParser) -> None:
    parser.add_argument(
        "view",
        nargs="?",
        metavar=f"[{'|'.join(VIEWS)}]",
        type=OneOf(VIEWS),
        choices=VIEWS,
        default=VIEWS[0],
        help="what to begin with; pods if nothing is given",
    )
    add_selection(parser)
    add_table_output(parser)
    parser.add_argument("--once", action="store_true", help="print the rows once, as without a terminal")
    add_watch(parser)


def run(config: Config, arguments: Namespace) -> int:
    chosen = selection(arguments)
    is_live = sys.stdin.isatty() and can_draw() and arguments.output == "table"
    with open_target(config) as target, suppress(KeyboardInterrupt):  # one way to leave it
        check_node(target.cluster, chosen.node)
        if is_live and not arguments.once and not arguments.watch:
            _run_screen(config, target, chosen, arguments.view)
        else:
            print_and_watch(target, partial(print_rows, chosen, arguments), arguments)
    return 0


def _run_screen(config: Config, target: Target, chosen: PodSelection, view: str) -> None:
    from podgpu.cli._top.kubectl import Kubectl
    from podgpu.cli._top.live import Controls, live
    from podgpu.cli._top.screen import opened

    kubectl = Kubectl(str(config.kube_kubeconfig or ""), config.kube_context or "")
    with opened() as screen:
        live(Controls(screen, target, kubectl), chosen, TopState(view=view))


def print_rows(chosen: PodSelection, arguments: Namespace, cluster: Cluster) -> int:
    """Print the rows, for a pipe or a script."""
    view, rows = arguments.view, TopRows(cluster, chosen)
    first, *others = COLUMNS[view]
    if len(cluster.nodes) <= 1:
        others = [column for column in others if column.title != "NODE"]
    table = RowTable(
        fields_of(SummaryRow),
        [entry.row for entry in ordered(rows.all(view), view, SORTED_BY[view])],
        [Column(column.title, column.text, number=column.number, wide=column.worth < 5) for column in (first, *others)],
        {"view": view, "taken_at": cluster.taken_at, "demo": cluster.demo, "wrong": rows.problems},
        f"no {NOUNS[view]} found",
    )
    print_table(table, arguments)
    sys.stdout.flush()
    if arguments.output in ("table", "wide"):
        print_problems(rows.problems)
    return 0
