"""Bits of HTML that all rows are made of."""

from collections.abc import Sequence
from html import escape

from podgpu.model import Fault
from podgpu.views.advice import next_step
from podgpu.views.glance import UNKNOWN, problem
from podgpu.views.text import line

COLUMNS = ("Utilisation", "Memory GiB", "Power", "Temperature", "SM", "Tensor", "DRAM", "Processes")
EMPTY = '<td class="empty"></td>'


def text(value: str) -> str:
    return escape(line(value))


def pill(word: str, look: str) -> str:
    """`look` is good or bad."""
    return f'<span class="pill {look}">{word}</span>'


def bar(ratio: float | None) -> str:
    if ratio is None:
        return ""
    return f'<span class="bar"><i style="width:{min(max(ratio, 0.0), 1.0) * 100:.0f}%"></i></span>'


def cells(values: Sequence[str]) -> str:
    """One value for each of the columns; a narrow screen leaves out what is unknown."""
    return "".join(
        f'<td data-label="{column}"{_hidden(value)}>{value}</td>'
        for column, value in zip(COLUMNS, values, strict=True)
    )


def why(fault: Fault, part: str = "") -> str:
    step = escape(next_step(fault, part))
    return f'{escape(problem(fault))}<br><span class="soft next">{step}</span>'


def _hidden(value: str) -> str:
    return ' class="empty"' if value in ("", UNKNOWN) else ""
