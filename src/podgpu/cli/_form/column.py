"""A column of a table, and the table as text."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

from podgpu.views.text import printable, table_lines

R = TypeVar("R")


@dataclass(frozen=True)
class Column(Generic[R]):
    """`number` columns are set right; `wide` ones show with -o wide alone."""

    title: str
    text: Callable[[R], str]
    number: bool = False
    wide: bool = False


def lines(rows: Sequence[R], columns: Sequence[Column[R]], width: int | None, *, headers: bool) -> list[str]:
    """Write each column as wide as it must be. Only the first gives way if the lines are wider than `width`."""
    cells = [[printable(column.text(row)) for column in columns] for row in rows]
    shown = [[column.title for column in columns], *cells] if headers else cells
    return table_lines(shown, [number for number, column in enumerate(columns) if column.number], width)
