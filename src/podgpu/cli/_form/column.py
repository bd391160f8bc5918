"""A column of a table, and the table as text."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

from podgpu.views.text import fitted, printable

R = TypeVar("R")
GAP = 2
LEAST_NAME = 16


@dataclass(frozen=True)
class Column(Generic[R]):
    """`number` columns are set right; `wide` ones show with -o wide alone."""

    title: str
    text: Callable[[R], str]
    number: bool = False
    wide: bool = False


def lines(rows: Sequence[R], columns: Sequence[Column[R]], width: int | None, *, headers: bool) -> list[str]:
    """Write each column as wide as it must be. Only the first gives way if the lines are wider than `width`."""
    table = [[printable(column.text(row)) for column in columns] for row in rows]
    heads = [column.title for column in columns]
    shown = [heads, *table] if headers else table
    sizes = [max((len(line[number]) for line in shown), default=0) for number in range(len(columns))]
    if width is not None and sum(sizes) + GAP * (len(sizes) - 1) > width:
        sizes[0] = max(width - sum(sizes[1:]) - GAP * (len(sizes) - 1), min(LEAST_NAME, sizes[0]))
    gap = " " * GAP
    return [
        gap.join(
            fitted(cell, size, right=column.number)
            for cell, size, column in zip(line, sizes, columns, strict=True)
        ).rstrip()
        for line in shown
    ]
