"""The rows of `podgpu top` printed, for a pipe or a script."""

import sys
from argparse import Namespace

from podgpu.cli._form import Sheet, show
from podgpu.cli._top.board import ordered
from podgpu.cli._top.columns import HEADINGS, SORTED_BY
from podgpu.insight.rows import VIEWS, SummaryRow
from podgpu.insight.selection import PodSelection
from podgpu.model import Cluster
from podgpu.views.format import problem_texts


def once(chosen: PodSelection, arguments: Namespace, cluster: Cluster) -> int:
    entries = VIEWS[arguments.view](cluster, chosen)
    rows = [entry.row for entry in ordered(entries, arguments.view, SORTED_BY[arguments.view])]
    problems = cluster.insight.problems if cluster.insight else ()
    found = problem_texts(problems, with_node=len(cluster.nodes) > 1)
    headings = HEADINGS[arguments.view]
    if len(cluster.nodes) <= 1:
        headings = tuple(one for one in headings if one.title != "NODE" or one is headings[0])
    head = {"view": arguments.view, "taken_at": cluster.taken_at, "demo": cluster.demo, "wrong": found}
    sheet = Sheet(
        SummaryRow, rows, [one.column for one in headings], head, f"no {arguments.view} on a GPU were found"
    )
    show(sheet, arguments)
    sys.stdout.flush()
    if arguments.output in ("table", "wide"):
        for wrong in found:
            print(f"! {wrong}", file=sys.stderr)
    return 0
