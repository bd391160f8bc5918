"""Those who do not use what they hold, as rows and columns."""

from argparse import Namespace
from collections.abc import Iterable

from podgpu.cli._form import Column, Sheet
from podgpu.insight.idle import IdlePods, IdleRow
from podgpu.model import Cluster
from podgpu.model.quantity import total
from podgpu.numbers import age, gib, gpu_number, moment, money
from podgpu.views.text import line

TOTAL = "total"


def sheet(found: IdlePods, cluster: Cluster, currency: str, arguments: Namespace) -> Sheet[IdleRow]:
    is_for_people = arguments.output in ("table", "wide", "markdown")
    rows = [*found.rows, _total(found.rows)] if is_for_people and found.rows else found.rows
    head = {
        "taken_at": cluster.taken_at,
        "demo": cluster.demo,
        **({"currency": currency} if currency else {}),
        "unknown": found.unknown,
        "unread": found.unread,
        "unpriced": found.unpriced,
    }
    many = len(cluster.nodes) > 1
    columns = [one for one in _columns(currency) if many or one.title != "NODE"]
    return Sheet(IdleRow, rows, columns, head, "everybody who holds a GPU uses it")


def _columns(currency: str) -> Iterable[Column[IdleRow]]:
    yield Column(
        "NAMESPACE/POD", lambda row: line(f"{row.namespace}/{row.pod}" if row.namespace else row.pod)
    )
    yield Column("WORKLOAD", _workload, wide=True)
    yield Column("NODE", lambda row: line(row.node))
    yield Column("GPU", lambda row: ",".join(row.gpus))
    yield Column("MODEL", lambda row: line(row.model).removeprefix("NVIDIA "), wide=True)
    yield Column("HELD", lambda row: gpu_number(row.held_gpus), number=True)
    yield Column("MEM GiB", lambda row: "" if row.pod == TOTAL else gib(row.memory_used_bytes), number=True)
    yield Column("IDLE", _idle, number=True)
    yield Column("SINCE", _since, wide=True)
    yield Column("USED", _used)
    if currency:
        yield Column(f"{currency}/H", lambda row: money(row.cost_per_hour), number=True)
        yield Column(currency, lambda row: money(row.cost), number=True)


def _workload(row: IdleRow) -> str:
    return line(f"{row.workload_kind}/{row.workload_name}") if row.workload_name else ""


def _idle(row: IdleRow) -> str:
    return age(row.idle_seconds) if row.gpus else ""


def _since(row: IdleRow) -> str:
    return moment(row.idle_since) if row.gpus else ""


def _used(row: IdleRow) -> str:
    """`never` is as far as anybody knows: then the time counts from the start of the pod."""
    if not row.gpus:
        return ""
    return "before" if row.ever_used else "never"


def _total(rows: Iterable[IdleRow]) -> IdleRow:
    all_rows = list(rows)
    return IdleRow(
        namespace="",
        pod=TOTAL,
        held_gpus=total(row.held_gpus for row in all_rows),
        cost_per_hour=total(row.cost_per_hour for row in all_rows),
        cost=total(row.cost for row in all_rows),
    )
