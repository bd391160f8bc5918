"""The rows and columns of `podgpu idle`."""

from argparse import Namespace
from collections.abc import Iterator, Sequence

from podgpu.cli._output import FOR_PEOPLE
from podgpu.insight.idle import IdlePods, IdleRow
from podgpu.model import Cluster
from podgpu.model.kube import total
from podgpu.numbers import age, gib, gpu_number, moment, money
from podgpu.views.json import plain
from podgpu.views.row_table import Column, RowTable, fields_of
from podgpu.views.text import line

_TOTAL = "total"


def idle_table(found: IdlePods, cluster: Cluster, currency: str, arguments: Namespace) -> RowTable[IdleRow]:
    has_total = arguments.output in FOR_PEOPLE and found.rows
    head = {
        "taken_at": cluster.taken_at,
        "demo": cluster.demo,
        **({"currency": currency} if currency else {}),
        "unknown": found.unknown,
        "unread": found.unread,
        "unseen": found.unseen,
        "unpriced": found.unpriced,
        "waste": plain(found.waste),
    }
    has_nodes = len(cluster.nodes) > 1
    return RowTable(
        fields_of(IdleRow),
        [*found.rows, _idle_total(found.rows)] if has_total else found.rows,
        [column for column in _idle_columns(currency) if has_nodes or column.title != "NODE"],
        head,
        "no pod was found that holds a GPU without using it",
    )


def _idle_columns(currency: str) -> Iterator[Column[IdleRow]]:
    yield Column("NAMESPACE/POD", lambda row: line(f"{row.namespace}/{row.pod}" if row.namespace else row.pod))
    yield Column("WORKLOAD", _workload, wide=True)
    yield Column("NODE", lambda row: line(row.node))
    yield Column("GPU", lambda row: ",".join(row.gpus))
    yield Column("MODEL", lambda row: line(row.model).removeprefix("NVIDIA "), wide=True)
    yield Column("HELD", lambda row: gpu_number(row.held_gpus), number=True)
    yield Column("MEM GiB", lambda row: "" if row.pod == _TOTAL else gib(row.memory_used_bytes), number=True)
    # The total has no GPUs of its own.
    yield Column("IDLE", lambda row: age(row.idle_seconds) if row.gpus else "", number=True)
    yield Column("SINCE", lambda row: moment(row.idle_since) if row.gpus else "", wide=True)
    yield Column("USED", _ever_used)
    if currency:
        yield Column(f"{currency}/H", lambda row: money(row.cost_per_hour), number=True)
        yield Column(currency, lambda row: money(row.cost), number=True)


def _workload(row: IdleRow) -> str:
    return line(f"{row.workload_kind}/{row.workload_name}") if row.workload_name else ""


def _ever_used(row: IdleRow) -> str:
    """Say `never` if no use was seen since the pod started. If it is older than the watch, say since when."""
    if not row.gpus:
        return ""
    if row.watched_since is not None:
        return f"not since {moment(row.watched_since)}"
    return "before" if row.ever_used else "never"


def _idle_total(rows: Sequence[IdleRow]) -> IdleRow:
    return IdleRow(
        namespace="",
        pod=_TOTAL,
        held_gpus=total(row.held_gpus for row in rows),
        cost_per_hour=total(row.cost_per_hour for row in rows),
        cost=total(row.cost for row in rows),
    )
