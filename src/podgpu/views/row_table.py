"""Rows of a command or a document, and how they are written as JSON and CSV.

A row has fields with raw values in base units. Columns say how a person reads them.
"""

import csv
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from io import StringIO
from operator import attrgetter
from typing import Any, Generic, TypeVar

import msgspec
from msgspec.structs import replace

from podgpu.views.text import printable, shortened

R = TypeVar("R")
S = TypeVar("S", bound=msgspec.Struct)
T = TypeVar("T")
SCHEMA = 1

Fields = Mapping[str, Callable[[R], Any]]


@dataclass(frozen=True)
class Column(Generic[R]):
    """`number` columns are aligned right; `wide` columns show only with -o wide. `cut` shortens the first column."""

    title: str
    text: Callable[[R], str]
    number: bool = False
    wide: bool = False
    cut: Callable[[str, int], str] = shortened


@dataclass(frozen=True)
class RowTable(Generic[R]):
    """`fields` are what programs read of a row, by name. `head` goes before the rows in JSON."""

    fields: Fields[R]
    rows: Sequence[R]
    columns: Sequence[Column[R]]
    head: Mapping[str, Any] = field(default_factory=dict)
    empty: str = "nothing found"


def known(facts: Mapping[str, T]) -> dict[str, T]:
    """Leave out what is unknown."""
    return {name: value for name, value in facts.items() if value is not None}


def rounded(row: S, **places: int) -> S:
    """Round fields that are known, each to its number of decimals."""
    values = {name: getattr(row, name) for name in places}
    return replace(row, **{name: round(value, places[name]) for name, value in known(values).items()})


def fields_of(row_type: type[S]) -> Fields[S]:
    return {name: attrgetter(name) for name in row_type.__struct_fields__}


def as_document(table: RowTable[R]) -> dict[str, Any]:
    rows = [known({name: value(row) for name, value in table.fields.items()}) for row in table.rows]
    return {"schema": SCHEMA, **table.head, "rows": rows}


def json_text(table: RowTable[R]) -> str:
    return msgspec.json.format(msgspec.json.encode(as_document(table))).decode() + "\n"


def csv_text(table: RowTable[R], *, headers: bool = True) -> str:
    out = StringIO()
    writer = csv.writer(out, lineterminator="\n")
    if headers:
        writer.writerow(table.fields)
    writer.writerows([csv_cell(value(row)) for value in table.fields.values()] for row in table.rows)
    return out.getvalue()


def csv_cell(value: object) -> object:
    """Write text so that no spreadsheet takes it for a formula, and no terminal for a command."""
    if isinstance(value, tuple):
        value = " ".join(map(str, value))
    if isinstance(value, str):
        value = printable(value)
        return f"'{value}" if value.startswith(("=", "+", "-", "@")) else value
    return "" if value is None else value
