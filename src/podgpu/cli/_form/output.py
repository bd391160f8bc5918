"""Prints a sheet of rows in the form that the user chose."""

import csv
import os
import shutil
import sys
from argparse import Namespace
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from io import StringIO
from typing import Any, Generic, TypeVar

import msgspec

from podgpu.cli._form.column import Column, lines
from podgpu.views.text import printable

R = TypeVar("R", bound=msgspec.Struct)
SCHEMA = 1


@dataclass(frozen=True)
class Sheet(Generic[R]):
    """`kind` is the type of the rows: CSV has a header even if there are none. `head` goes before the rows in JSON."""

    kind: type[R]
    rows: Sequence[R]
    columns: Sequence[Column[R]]
    head: Mapping[str, Any] = field(default_factory=dict)
    empty: str = "nothing found"


def show(sheet: Sheet[R], arguments: Namespace) -> None:
    """Print in the form of `-o`. That nothing was found is said on stderr, as kubectl does."""
    print(_FORMS[arguments.output](sheet, arguments), end="")
    if not sheet.rows and arguments.output in ("table", "wide"):
        print(sheet.empty, file=sys.stderr)


def has_colour() -> bool:
    return sys.stdout.isatty() and not os.environ.get("NO_COLOR")


def _table(sheet: Sheet[R], arguments: Namespace) -> str:
    if not sheet.rows:
        return ""
    is_wide = arguments.output == "wide"
    columns = [one for one in sheet.columns if is_wide or not one.wide]
    # A program that reads the table gets whole names.
    width = shutil.get_terminal_size().columns if sys.stdout.isatty() and not is_wide else None
    found = lines(sheet.rows, columns, width, headers=not arguments.no_headers)
    return "\n".join(found) + "\n"


def _document(sheet: Sheet[R]) -> dict[str, Any]:
    return {"schema": SCHEMA, **sheet.head, "rows": [_known(row) for row in sheet.rows]}


def _known(row: msgspec.Struct) -> dict[str, Any]:
    """Leave out what is unknown, as everywhere."""
    return {name: value for name, value in msgspec.structs.asdict(row).items() if value is not None}


def _json(sheet: Sheet[R], _: Namespace) -> str:
    return msgspec.json.format(msgspec.json.encode(_document(sheet))).decode() + "\n"


def _yaml(sheet: Sheet[R], _: Namespace) -> str:
    import yaml

    text: str = yaml.safe_dump(
        msgspec.to_builtins(_document(sheet)), sort_keys=False, allow_unicode=True, width=10_000
    )
    return text


def _csv(sheet: Sheet[R], arguments: Namespace) -> str:
    out = StringIO()
    writer = csv.writer(out, lineterminator="\n")
    names = sheet.kind.__struct_fields__
    if not arguments.no_headers:
        writer.writerow(names)
    for row in sheet.rows:
        writer.writerow([_cell(getattr(row, name)) for name in names])
    return out.getvalue()


def _markdown(sheet: Sheet[R], _: Namespace) -> str:
    """A table for a document: what a person would see, with whole names."""
    heads = [column.title for column in sheet.columns]
    ruler = ["---:" if column.number else "---" for column in sheet.columns]
    table = [[printable(column.text(row)) for column in sheet.columns] for row in sheet.rows]
    escaped = ([cell.replace("|", r"\|") for cell in cells] for cells in (heads, ruler, *table))
    return "".join(f"| {' | '.join(cells)} |\n" for cells in escaped)


def _cell(value: object) -> object:
    """Write text so that no spreadsheet takes it for a formula, and no terminal for a command."""
    if isinstance(value, tuple):
        value = " ".join(map(str, value))
    if isinstance(value, str):
        value = printable(value)
    if isinstance(value, str) and value.startswith(("=", "+", "-", "@")):
        return f"'{value}"
    return "" if value is None else value


_FORMS: Mapping[str, Callable[[Sheet[Any], Namespace], str]] = {
    "table": _table,
    "wide": _table,
    "json": _json,
    "yaml": _yaml,
    "csv": _csv,
    "markdown": _markdown,
}
FORMS = tuple(_FORMS)
