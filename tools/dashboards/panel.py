"""A panel is one call: a title, what it shows in words, a unit, and its queries.

Queries name their filters in angle brackets, so that all panels filter alike: `podgpu_gpu_up{<node>}`.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

Json = dict[str, Any]

DATASOURCE: Json = {"type": "prometheus", "uid": "${datasource}"}

FILTERS: Mapping[str, str] = {
    "<cluster>": 'cluster=~"$cluster"',
    "<node>": 'cluster=~"$cluster", node=~"$node"',
    "<namespace>": 'cluster=~"$cluster", node=~"$node", namespace=~"$namespace"',
    "<pod>": 'cluster=~"$cluster", node=~"$node", namespace=~"$namespace", pod=~"$pod"',
    # Series of recording rules belong to no node.
    "<team>": 'cluster=~"$cluster", namespace=~"$namespace"',
}

# The lowest value at which a colour begins.
Thresholds = tuple[tuple[float | None, str], ...]
PLAIN: Thresholds = ((None, "blue"),)
BAD_ABOVE_ZERO: Thresholds = ((None, "green"), (1, "red"))
FULL: Thresholds = ((None, "green"), (0.85, "orange"), (0.95, "red"))


@dataclass(frozen=True)
class Query:
    """`legend` is the name of a series, or of a table's column of numbers: without a name it is not shown."""

    expr: str
    legend: str = ""
    unit: str = ""

    @property
    def promql(self) -> str:
        text = self.expr
        for name, filters in FILTERS.items():
            text = text.replace(name, filters)
        return text


@dataclass(frozen=True)
class Panel:
    kind: str
    title: str
    description: str
    unit: str
    queries: tuple[Query, ...]
    width: int
    height: int
    thresholds: Thresholds = PLAIN
    most: float | None = None
    stacked: bool = False
    hidden: tuple[str, ...] = ()
    links: Mapping[str, str] = field(default_factory=dict)

    @property
    def instant(self) -> bool:
        return self.kind in {"stat", "table", "bargauge"}


@dataclass(frozen=True)
class Section:
    title: str
    panels: tuple[Panel, ...]


def lines(
    title: str, description: str, unit: str, *queries: Query, width: int = 8, most: float | None = None
) -> Panel:
    return Panel("timeseries", title, description, unit, queries, width, 8, most=most)


def areas(title: str, description: str, unit: str, *queries: Query, width: int = 8) -> Panel:
    """Lines that add up to something."""
    return Panel("timeseries", title, description, unit, queries, width, 8, stacked=True)


def stat(
    title: str, description: str, unit: str, expr: str, *, thresholds: Thresholds = PLAIN, width: int = 4
) -> Panel:
    return Panel("stat", title, description, unit, (Query(expr),), width, 4, thresholds)


def bars(title: str, description: str, unit: str, query: Query, *, width: int = 8) -> Panel:
    return Panel("bargauge", title, description, unit, (query,), width, 9)


def states(title: str, description: str, query: Query, *, width: int = 12) -> Panel:
    """Whether something works, over time: 1 is well, 0 is not."""
    return Panel("state-timeline", title, description, "bool_on_off", (query,), width, 8)


def table(
    title: str,
    description: str,
    *columns: Query,
    width: int = 24,
    hidden: tuple[str, ...] = (),
    links: Mapping[str, str] | None = None,
) -> Panel:
    """One query for each column of numbers; rows are joined by their labels. `links` lead from a label's column."""
    return Panel("table", title, description, "short", columns, width, 9, hidden=hidden, links=links or {})
