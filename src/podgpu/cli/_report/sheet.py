"""A statement as rows and columns."""

from argparse import Namespace
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from typing import Any

import msgspec

from podgpu.cli._form import Column, Sheet
from podgpu.model import Statement, StatementLine
from podgpu.numbers import UNKNOWN, column, money, percent
from podgpu.views.text import line

# The rows that are not of a group, and what they mean.
OTHERS = {
    "unattributed": ("(unattributed)", "booked to no container"),
    "unbooked": ("(not booked)", "used while no agent was there to book it"),
    "free": ("(free)", "time that nobody held"),
    "total": ("total", ""),
}
# For people, and as the counters say it: the second add up to the last digit.
_NUMBERS = ("gpu_hours", "busy_hours", "energy_kwh", "cost", "gpu_seconds", "busy_seconds", "energy_joules")


def sheet(statement: Statement, arguments: Namespace) -> Sheet[Any]:
    """Other programs get the rows alone: they add up. People get the total below them."""
    kind = msgspec.defstruct(
        "ReportRow",
        [(name, str) for name in statement.by]
        + [("row", str)]
        + [(name, float | None, None) for name in _NUMBERS],
        frozen=True,
    )
    is_for_people = arguments.output in ("table", "wide", "markdown")
    shown = (*statement.lines, statement.total) if is_for_people and statement.lines else statement.lines
    return Sheet(
        kind,
        [_row(kind, one, statement.by) for one in shown],
        list(_columns(statement)),
        _head(statement),
        "the store has no counters of podgpu in this time; check --prometheus.url, --from and --to",
    )


def notes(statement: Statement) -> list[str]:
    """What the rows in brackets mean, for a person who sees them for the first time."""
    kinds = {one.kind for one in statement.lines}
    return [f"{name}: {text}." for kind, (name, text) in OTHERS.items() if kind in kinds]


def _row(kind: type[Any], one: StatementLine, by: Sequence[str]) -> Any:
    names = {name: one.group.get(name, "") for name in by}
    return kind(**names, row=one.kind, **_numbers(one))


def _numbers(one: StatementLine) -> dict[str, float | None]:
    values = (
        _rounded(one.gpu_hours),
        _rounded(one.busy_hours),
        _rounded(one.energy_kwh),
        _rounded(one.cost),
        _over(one.held_us, 1_000_000),
        _over(one.busy_us, 1_000_000),
        _over(one.energy_mj, 1_000),
    )
    return dict(zip(_NUMBERS, values, strict=True))


def _rounded(value: float | None) -> float | None:
    return None if value is None else round(value, 6)


def _over(value: int | None, unit: int) -> float | None:
    """An integer of the books, divided once: its shortest decimal is that integer exactly."""
    return None if value is None else value / unit


def _head(statement: Statement) -> dict[str, Any]:
    head = {
        "from": _instant(statement.start),
        "to": _instant(statement.end),
        "by": statement.by,
        "gpus": statement.gpus,
        "currency": statement.currency or None,
        "complete": not (statement.notices or statement.unpriced),
        "notices": statement.notices,
        "unpriced": statement.unpriced,
        "total": {name: value for name, value in _numbers(statement.total).items() if value is not None},
    }
    return {name: value for name, value in head.items() if value is not None}


def _columns(statement: Statement) -> tuple[Column[Any], ...]:
    title = "/".join(name.removeprefix("label_").removeprefix("workload_") for name in statement.by)
    total = statement.total
    costs: Column[Any] = Column(f"COST {statement.currency}", lambda row: money(row.cost), number=True)
    return (
        Column(title.upper(), _title(statement.by)),
        Column("GPU-HOURS", lambda row: column("gpu hours", row.gpu_hours, total.gpu_hours), number=True),
        Column("BUSY-HOURS", lambda row: column("gpu hours", row.busy_hours, total.busy_hours), number=True),
        Column("USE", _use, number=True),
        Column("KWH", lambda row: column("kilowatt hours", row.energy_kwh, total.energy_kwh), number=True),
        *((costs,) if statement.currency else ()),
    )


def _title(by: Sequence[str]) -> Callable[[Any], str]:
    def title(row: Any) -> str:
        if row.row in OTHERS:
            return OTHERS[row.row][0]
        return "/".join(line(getattr(row, name)) or UNKNOWN for name in by)

    return title


def _use(row: Any) -> str:
    known = row.row in ("group", "total") and row.busy_hours is not None and row.gpu_hours
    return percent(row.busy_hours / row.gpu_hours) if known else UNKNOWN


def _instant(at: float) -> str:
    """For other programs."""
    return datetime.fromtimestamp(at, UTC).isoformat(timespec="seconds").replace("+00:00", "Z")
