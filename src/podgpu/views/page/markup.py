"""Bits of HTML that all rows are made of."""

from collections.abc import Sequence
from html import escape

from podgpu.model import Fault
from podgpu.numbers import UNKNOWN, percent
from podgpu.views.advice import next_step
from podgpu.views.glance import Use, problem
from podgpu.views.text import line

COLUMNS = ("Utilisation", "Memory GiB", "Power", "Temperature", "SM", "Tensor", "DRAM", "Processes")
EMPTY = '<td class="empty"></td>'


def text(value: str) -> str:
    return escape(line(value))


def pill(word: str, look: str) -> str:
    """`look` is good or bad."""
    return f'<span class="pill {look}">{word}</span>'


def bar(ratio: float | None, whisker: str = "") -> str:
    if ratio is None:
        return ""
    # SVG has widths as attributes: a style would need a weaker policy.
    return f'<svg class="bar" aria-hidden="true"><rect width="{_width(ratio)}"/>{whisker}</svg>'


def use_cell(use: Use) -> str:
    """A bar, with a whisker where there is a doubt. The numbers are text: they are read aloud and printed too."""
    if not use.bounds or use.least is None or use.most is None:
        return f"{use}{bar(use.ratio)}"
    spoken = f'<span class="spoken">, at least and at most {use.bounds.replace("–", " to ")} percent</span>'
    whisker = _whisker(_width(use.least), _width(use.most))
    written = f'{percent(use.ratio)} <span class="bounds" aria-hidden="true">({use.bounds})</span>'
    return f"{written}{spoken}{bar(use.ratio, whisker)}"


def _whisker(start: str, end: str) -> str:
    ends = "".join(f'<line x1="{at}" x2="{at}" y1="-2" y2="7"/>' for at in (start, end))
    return f'<line x1="{start}" x2="{end}" y1="2.5" y2="2.5"/>{ends}'


def _width(ratio: float) -> str:
    return percent(min(max(ratio, 0.0), 1.0))


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
