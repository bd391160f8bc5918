"""The rows of `podgpu top` printed, for a pipe or a script."""

import sys
from argparse import Namespace

from podgpu.cli._form import Sheet, show
from podgpu.cli._top.board import ordered
from podgpu.cli._top.columns import HEADINGS, SORTED_BY
from podgpu.model import Cluster
from podgpu.views.cluster.rows.listing import VIEWS
from podgpu.views.cluster.rows.row import Row
from podgpu.views.cluster.rows.wrong import wrongs
from podgpu.views.cluster.selection import Selection


def once(chosen: Selection, arguments: Namespace, cluster: Cluster) -> int:
    entries = VIEWS[arguments.view](cluster, chosen)
    rows = [entry.row for entry in ordered(entries, arguments.view, SORTED_BY[arguments.view])]
    found = wrongs(cluster)
    headings = HEADINGS[arguments.view]
    if len(cluster.nodes) <= 1:
        headings = tuple(one for one in headings if one.title != "NODE" or one is headings[0])
    head = {"view": arguments.view, "taken_at": cluster.taken_at, "demo": cluster.demo, "wrong": found}
    sheet = Sheet(
        Row, rows, [one.column for one in headings], head, f"no {arguments.view} on a GPU were found"
    )
    show(sheet, arguments)
    sys.stdout.flush()
    if arguments.output in ("table", "wide"):
        for wrong in found:
            print(f"! {wrong}", file=sys.stderr)
    return 0
