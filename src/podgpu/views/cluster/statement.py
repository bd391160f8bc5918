"""A statement for a terminal, a spreadsheet, a program and a document."""

import csv
import json
from collections.abc import Sequence
from datetime import UTC, datetime
from io import StringIO
from typing import Any

from podgpu.model import Statement, StatementLine
from podgpu.views.glance import UNKNOWN, percent
from podgpu.views.text import line, shortened

NAMES = {
    "unattributed": "(unattributed)",
    "unbooked": "(not booked)",
    "free": "(free)",
    "total": "total",
}
MEANINGS = {
    "unattributed": "(unattributed): podgpu booked it to no container.",
    "unbooked": "(not booked): the GPUs used it while no agent was there to book it.",
    "free": "(free): time that nobody held.",
}
_GAP = "  "
_LEAST_NAME = 8


def table(statement: Statement, width: int, *, headers: bool = True) -> str:
    """Fit into the width: names are shortened, numbers never are."""
    heads = [*(name.upper() for name in statement.by), *_heads(statement)]
    rows = [_cells(one, statement) for one in (*statement.lines, statement.total)]
    names = len(statement.by)
    widths = [max(len(cell) for cell in column) for column in zip(heads, *rows, strict=True)]
    left = width - sum(widths[names:]) - len(_GAP) * (len(widths) - 1)
    widths[:names] = _narrowed(widths[:names], left)
    shown = [heads, *rows] if headers else rows
    return "".join(_row(cells, widths, names) + "\n" for cells in shown)


def footer(statement: Statement) -> str:
    """What the rows in brackets mean, for a person who sees them the first time."""
    kinds = [one.kind for one in statement.lines]
    return "".join(f"{text}\n" for kind, text in MEANINGS.items() if kind in kinds)


def markdown(statement: Statement) -> str:
    heads = [*statement.by, *_heads(statement)]
    rows = [_cells(one, statement) for one in (*statement.lines, statement.total)]
    ruler = ["---" if at < len(statement.by) else "---:" for at in range(len(heads))]
    lines = [_piped(cells) for cells in (heads, ruler, *rows)]
    start, end = (_moment(at) for at in (statement.start, statement.end))
    return "\n".join([f"GPU use from {start} to {end}, {statement.gpus} GPUs", "", *lines]) + "\n"


def as_csv(statement: Statement, *, headers: bool = True) -> str:
    """The rows alone, without a total: they add up to it."""
    out = StringIO()
    writer = csv.writer(out, lineterminator="\n")
    if headers:
        writer.writerow([*statement.by, "kind", *_NUMBERS, "currency"])
    for one in statement.lines:
        numbers = _numbers(one)
        names = (one.group.get(name, "") for name in statement.by)
        shown = ("" if numbers[name] is None else numbers[name] for name in _NUMBERS)
        writer.writerow([*names, one.kind, *shown, statement.currency if one.cost is not None else ""])
    return out.getvalue()


def as_json(statement: Statement) -> str:
    document = {
        "from": _moment(statement.start),
        "to": _moment(statement.end),
        "by": list(statement.by),
        "currency": statement.currency or None,
        "gpus": statement.gpus,
        "rows": [{**one.group, "kind": one.kind, **_exact(one)} for one in statement.lines],
        "total": _exact(statement.total),
        "unpriced": list(statement.unpriced),
        "notices": list(statement.notices),
        "complete": not statement.notices,
    }
    return json.dumps({key: value for key, value in document.items() if value is not None}, indent=2) + "\n"


_NUMBERS = ("gpu_hours", "busy_hours", "energy_kwh", "cost")


def _numbers(one: StatementLine) -> dict[str, float | None]:
    values = (one.gpu_hours, one.busy_hours, one.energy_kwh, one.cost)
    return {
        name: None if value is None else round(value, 9) for name, value in zip(_NUMBERS, values, strict=True)
    }


def _exact(one: StatementLine) -> dict[str, Any]:
    """Rounded for people, and as the counters say it: these add up to the last digit."""
    counters = {
        "gpu_seconds": one.held_us and one.held_us / 1e6,
        "busy_seconds": one.busy_us and one.busy_us / 1e6,
        "energy_joules": one.energy_mj and one.energy_mj / 1e3,
    }
    return {name: value for name, value in {**_numbers(one), **counters}.items() if value is not None}


def _heads(statement: Statement) -> list[str]:
    money = [f"COST {statement.currency}"] if statement.currency else []
    return ["GPU-HOURS", "BUSY-HOURS", "USE", "KWH", *money]


def _cells(one: StatementLine, statement: Statement) -> list[str]:
    empty = [""] * (len(statement.by) - 1)
    names = [line(one.group[name]) or UNKNOWN for name in statement.by] if one.group else []
    used = (
        one.busy_us / one.held_us if one.kind == "group" and one.busy_us is not None and one.held_us else None
    )
    money = [_amount(one.cost, cents=True)] if statement.currency else []
    return [
        *(names or [NAMES[one.kind], *empty]),
        _amount(one.gpu_hours),
        _amount(one.busy_hours),
        percent(used),
        _amount(one.energy_kwh),
        *money,
    ]


def _amount(value: float | None, *, cents: bool = False) -> str:
    """Two digits behind the point, and for less than that three digits that count."""
    if value is None:
        return UNKNOWN
    return f"{value:.2f}" if cents or value == 0 or abs(value) >= 1 else f"{value:.3g}"


def _narrowed(widths: Sequence[int], room: int) -> list[int]:
    """Take room from the widest name first."""
    narrowed = list(widths)
    while sum(narrowed) > room and max(narrowed) > _LEAST_NAME:
        narrowed[narrowed.index(max(narrowed))] -= 1
    return narrowed


def _row(cells: Sequence[str], widths: Sequence[int], names: int) -> str:
    parts = (
        shortened(cell, size).ljust(size) if at < names else cell.rjust(size)
        for at, (cell, size) in enumerate(zip(cells, widths, strict=True))
    )
    return _GAP.join(parts).rstrip()


def _piped(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in cells)} |"


def _moment(at: float) -> str:
    return datetime.fromtimestamp(at, UTC).isoformat(timespec="seconds").replace("+00:00", "Z")
