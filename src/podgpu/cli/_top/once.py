"""The rows of `podgpu top` printed, for a pipe or a script."""

import sys
from argparse import Namespace

from podgpu.cli._form import Sheet, show
from podgpu.cli._top.board import ordered
from podgpu.cli._top.columns import HEADINGS, SORTED_BY
from podgpu.cli._view import View
from podgpu.model import Cluster
from podgpu.views.cluster.rows.listing import VIEWS
from podgpu.views.cluster.rows.row import Row
from podgpu.views.cluster.rows.wrong import wrongs
from podgpu.views.cluster.selection import Selection

_WAIT_SECONDS = 5.0


def once(view: View, chosen: Selection, arguments: Namespace) -> None:
    """Print once, or with --watch again whenever something changes."""
    seen = view.cluster
    _print(seen, chosen, arguments)
    while arguments.watch:
        newest = view.changed(seen, _WAIT_SECONDS)
        if newest is not seen:
            seen = newest
            print("\n" * (arguments.output in ("table", "wide")), end="")
            _print(seen, chosen, arguments)


def _print(cluster: Cluster, chosen: Selection, arguments: Namespace) -> None:
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
