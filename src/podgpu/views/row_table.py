"""Rows of a command or a document, and how they are written as JSON and CSV.

A row is a struct with raw values in base units. Columns say how a person reads them.
"""

import csv
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from io import StringIO
from typing import Any, Generic, TypeVar

import msgspec

from podgpu.views.text import printable, shortened

R = TypeVar("R", bound=msgspec.Struct)
T = TypeVar("T")
SCHEMA = 1


@dataclass(frozen=True)
class Column(Generic[R]):
    """`number` columns are aligned right; `wide` columns show only with -o wide. `cut` makes the first one narrower."""

    title: str
    text: Callable[[R], str]
    number: bool = False
    wide: bool = False
    cut: Callable[[str, int], str] = shortened


@dataclass(frozen=True)
class RowTable(Generic[R]):
    """`row_type` names the fields of CSV even if there are no rows. `head` goes before the rows in JSON."""

    row_type: type[R]
    rows: Sequence[R]
    columns: Sequence[Column[R]]
    head: Mapping[str, Any] = field(default_factory=dict)
    empty: str = "nothing found"


def known(facts: Mapping[str, T]) -> dict[str, T]:
    """Leave out what is unknown."""
    return {name: value for name, value in facts.items() if value is not None}


def as_document(table: RowTable[R]) -> dict[str, Any]:
    return {
        "schema": SCHEMA,
        **table.head,
        "rows": [known(msgspec.structs.asdict(row)) for row in table.rows],
    }


def json_text(table: RowTable[R]) -> str:
    return msgspec.json.format(msgspec.json.encode(as_document(table))).decode() + "\n"


def csv_text(table: RowTable[R], *, headers: bool = True) -> str:
    out = StringIO()
    writer = csv.writer(out, lineterminator="\n")
    names = table.row_type.__struct_fields__
    if headers:
        writer.writerow(names)
    writer.writerows([csv_cell(getattr(row, name)) for name in names] for row in table.rows)
    return out.getvalue()


def csv_cell(value: object) -> object:
    """Write text so that no spreadsheet takes it for a formula, and no terminal for a command."""
    if isinstance(value, tuple):
        value = " ".join(map(str, value))
    if isinstance(value, str):
        value = printable(value)
        return f"'{value}" if value.startswith(("=", "+", "-", "@")) else value
    return "" if value is None else value
