"""The rows and columns of `podgpu report` and `podgpu idle`."""

from argparse import Namespace
from collections.abc import Callable, Iterator, Sequence
from datetime import UTC, datetime
from typing import Any

import msgspec

from podgpu.cli._output import FOR_PEOPLE, Column, RowTable
from podgpu.insight.idle import IdlePods, IdleRow
from podgpu.model import Cluster, Statement, StatementLine
from podgpu.model.quantity import total
from podgpu.numbers import UNKNOWN, age, column, gib, gpu_number, moment, money, percent
from podgpu.views.text import line

# The rows of a report that stand for no group, and what they mean.
OTHERS = {
    "unattributed": ("(unattributed)", "booked to no container"),
    "unbooked": ("(not booked)", "used while no agent was there to book it"),
    "free": ("(free)", "time in which no pod held it"),
    "total": ("total", ""),
}
# For people, and as the counters say it: the second add up to the last digit.
_NUMBERS = ("gpu_hours", "busy_hours", "energy_kwh", "cost", "gpu_seconds", "busy_seconds", "energy_joules")
_TOTAL = "total"


def report_table(statement: Statement, arguments: Namespace) -> RowTable[Any]:
    """Other programs get the rows alone: they add up. People get the total below them."""
    row_type = msgspec.defstruct(
        "ReportRow",
        [(name, str) for name in (*statement.by, "row")] + [(name, float | None, None) for name in _NUMBERS],
        frozen=True,
    )
    has_total = arguments.output in FOR_PEOPLE and statement.lines
    shown = (*statement.lines, statement.total) if has_total else statement.lines
    rows = [
        row_type(**{name: each.group.get(name, "") for name in statement.by}, row=each.kind, **_numbers(each))
        for each in shown
    ]
    empty = "the store has no counters of podgpu in this time; check --prometheus.url, --from and --to"
    return RowTable(row_type, rows, _report_columns(statement), _report_head(statement), empty)


def report_notes(statement: Statement) -> list[str]:
    """Say what the rows in brackets mean, for a person who sees them for the first time."""
    kinds = {each.kind for each in statement.lines}
    return [f"{name}: {text}." for kind, (name, text) in OTHERS.items() if kind in kinds]


def _numbers(sums: StatementLine) -> dict[str, float | None]:
    hours = (sums.gpu_hours, sums.busy_hours, sums.energy_kwh, sums.cost)
    # An integer of the books, divided once: its shortest decimal is that integer exactly.
    exact = ((sums.held_us, 1_000_000), (sums.busy_us, 1_000_000), (sums.energy_mj, 1_000))
    values = (
        *(None if value is None else round(value, 6) for value in hours),
        *(None if value is None else value / unit for value, unit in exact),
    )
    return dict(zip(_NUMBERS, values, strict=True))


def _report_head(statement: Statement) -> dict[str, Any]:
    head = {
        "from": _iso(statement.start),
        "to": _iso(statement.end),
        "by": statement.by,
        "gpus": statement.gpus,
        "currency": statement.currency or None,
        "complete": not (statement.notices or statement.unpriced),
        "notices": statement.notices,
        "unpriced": statement.unpriced,
        "total": {name: value for name, value in _numbers(statement.total).items() if value is not None},
    }
    return {name: value for name, value in head.items() if value is not None}


def _report_columns(statement: Statement) -> tuple[Column[Any], ...]:
    title = "/".join(name.removeprefix("label_").removeprefix("workload_") for name in statement.by)
    sums = statement.total
    costs: Column[Any] = Column(f"COST {statement.currency}", lambda row: money(row.cost), number=True)
    return (
        Column(title.upper(), _group_name(statement.by)),
        Column("GPU-HOURS", lambda row: column("gpu hours", row.gpu_hours, sums.gpu_hours), number=True),
        Column("BUSY-HOURS", lambda row: column("gpu hours", row.busy_hours, sums.busy_hours), number=True),
        Column("USE", _use, number=True),
        Column("KWH", lambda row: column("kilowatt hours", row.energy_kwh, sums.energy_kwh), number=True),
        *((costs,) if statement.currency else ()),
    )


def _group_name(by: Sequence[str]) -> Callable[[Any], str]:
    def name_of(row: Any) -> str:
        if row.row in OTHERS:
            return OTHERS[row.row][0]
        return "/".join(line(getattr(row, name)) or UNKNOWN for name in by)

    return name_of


def _use(row: Any) -> str:
    known = row.row in ("group", "total") and row.busy_hours is not None and row.gpu_hours
    return percent(row.busy_hours / row.gpu_hours) if known else UNKNOWN


def _iso(at: float) -> str:
    return datetime.fromtimestamp(at, UTC).isoformat(timespec="seconds").replace("+00:00", "Z")


def idle_table(found: IdlePods, cluster: Cluster, currency: str, arguments: Namespace) -> RowTable[IdleRow]:
    has_total = arguments.output in FOR_PEOPLE and found.rows
    head = {
        "taken_at": cluster.taken_at,
        "demo": cluster.demo,
        **({"currency": currency} if currency else {}),
        "unknown": found.unknown,
        "unread": found.unread,
        "unpriced": found.unpriced,
    }
    has_nodes = len(cluster.nodes) > 1
    return RowTable(
        IdleRow,
        [*found.rows, _idle_total(found.rows)] if has_total else found.rows,
        [each for each in _idle_columns(currency) if has_nodes or each.title != "NODE"],
        head,
        "every pod that holds a GPU uses it",
    )


def _idle_columns(currency: str) -> Iterator[Column[IdleRow]]:
    yield Column(
        "NAMESPACE/POD", lambda row: line(f"{row.namespace}/{row.pod}" if row.namespace else row.pod)
    )
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
    """Say `never` if no use is known: then the time counts from the start of the pod."""
    if not row.gpus:
        return ""
    return "before" if row.ever_used else "never"


def _idle_total(rows: Sequence[IdleRow]) -> IdleRow:
    return IdleRow(
        namespace="",
        pod=_TOTAL,
        held_gpus=total(row.held_gpus for row in rows),
        cost_per_hour=total(row.cost_per_hour for row in rows),
        cost=total(row.cost for row in rows),
    )
