"""Rows as a file: JSON, CSV, or the lines of CSV one by one, so that a page can save just those that it shows."""

from collections.abc import Callable, Iterable, Mapping
from typing import Any, NamedTuple

import msgspec

from podgpu.insight import rows
from podgpu.insight.idle import IdleRow, idle_pods
from podgpu.insight.pending import PendingRow, pending_pods
from podgpu.insight.problem_rows import keyed_problems
from podgpu.insight.rows import SummaryRow
from podgpu.insight.selection import EVERYTHING
from podgpu.model import Cluster, ClusterNode, Problem
from podgpu.views.json import IDLE, PENDING, PROBLEMS, ROWS_SCHEMA, for_rows, plain, rows_document
from podgpu.views.row_table import Fields, RowTable, csv_text, fields_of

JSON, CSV, LINES = "json", "csv", "lines"


class RowsQuery(NamedTuple):
    """The kind of rows, one of ROW_KINDS, and the form, one of ROW_FORMS."""

    by: str
    form: str = JSON

    @property
    def content_type(self) -> str:
        return "text/csv; charset=utf-8" if self.form == CSV else "application/json"


def rows_written(cluster: Cluster, query: RowsQuery, nodes: Iterable[ClusterNode] | None = None) -> bytes:
    """`nodes` are those of the cluster, where it does not hold them itself. They are read one by one.

    Only what rows need of each is kept: all of them would take much memory.
    """
    if nodes is not None and query.by != PROBLEMS:
        cluster, nodes = for_rows(cluster, nodes), None
    return _WRITERS[query.form](cluster, query.by, cluster.nodes if nodes is None else nodes)


def _table(cluster: Cluster, by: str, nodes: Iterable[ClusterNode]) -> RowTable[Any]:
    """The rows in the order of the JSON document, each with its key."""
    fields: Fields[Any] = fields_of(SummaryRow)
    keyed: list[tuple[str, Any]]
    if by == IDLE:
        fields = fields_of(IdleRow)
        keyed = [(f"{row.node} {_id(row.namespace, row.pod)}", row) for row in idle_pods(cluster).rows]
    elif by == PENDING:
        fields = fields_of(PendingRow)
        keyed = [(_id(row.namespace, row.name), row) for row in pending_pods(cluster).rows]
    elif by == PROBLEMS:
        fields = fields_of(Problem)
        keyed = [*keyed_problems(cluster, nodes)]
    else:
        keyed = [(item.key, item.row) for item in rows.VIEWS[by](cluster, EVERYTHING)]
    cells = {name: _of_row(read) for name, read in fields.items()}
    return RowTable(cells, keyed, ())


def _of_row(read: Callable[[Any], Any]) -> Callable[[tuple[str, Any]], Any]:
    return lambda keyed: read(keyed[1])


def _id(namespace: str, name: str) -> str:
    return f"{namespace}/{name}" if namespace else name


def _csv(cluster: Cluster, by: str, nodes: Iterable[ClusterNode]) -> bytes:
    return csv_text(_table(cluster, by, nodes)).encode()


def _lines(cluster: Cluster, by: str, nodes: Iterable[ClusterNode]) -> bytes:
    """No cell has a newline: each line is a row."""
    table = _table(cluster, by, nodes)
    head, *lines = csv_text(table).splitlines(keepends=True)
    keyed = [[plain(key), line] for (key, _), line in zip(table.rows, lines, strict=True)]
    found = {"schema": ROWS_SCHEMA, "taken_at": cluster.taken_at, "by": by, "head": head, "lines": keyed}
    return msgspec.json.encode(found)


_WRITERS: Mapping[str, Callable[[Cluster, str, Iterable[ClusterNode]], bytes]] = {
    JSON: rows_document,
    CSV: _csv,
    LINES: _lines,
}
ROW_FORMS = tuple(_WRITERS)
