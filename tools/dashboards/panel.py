"""A panel is one call: a title, what it shows in words, a unit, and its queries.

Queries name their filters in angle brackets, so that all panels filter alike: `podgpu_gpu_up{<node>}`.
"""

from collections.abc import Mapping
from dataclasses import dataclass
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

# What a panel says instead of "No data", by the filter of its queries: short where there is little room, and long.
# The words must hold too where no agent reports anything at all.
_ABSENT: Mapping[str, tuple[str, str]] = {
    "<team>": ("no rules", "No series of the recording rules: docs/alerts.md says how to load them"),
    "<pod>": ("none", "No container reports it"),
    "<namespace>": ("none", "No container reports it"),
    "": ("not reported", "No node reports it"),
}

# The lowest value at which a colour begins.
Thresholds = tuple[tuple[float | None, str], ...]
PLAIN: Thresholds = ((None, "blue"),)
BAD_ABOVE_ZERO: Thresholds = ((None, "green"), (1, "red"))
FULL: Thresholds = ((None, "green"), (0.85, "orange"), (0.95, "red"))


@dataclass(frozen=True)
class State:
    """What a number stands for, and a colour that no other state of the panel has."""

    value: int
    text: str
    color: str


WORKS = (State(0, "fails", "red"), State(1, "works", "green"))
RECOVERY = (
    State(0, "nothing", "green"),
    State(1, "reset the GPU", "red"),
    State(2, "reboot the node", "dark-red"),
    State(3, "drain peer-to-peer traffic", "yellow"),
    State(4, "drain and reset", "orange"),
    State(5, "recover the IMEX domain", "purple"),
    State(6, "reset the bus", "dark-orange"),
    State(7, "reboot all", "dark-purple"),
)


@dataclass(frozen=True)
class Query:
    """`legend` is the name of a series, or of a table's column of numbers: without a name it is not shown."""

    expr: str
    legend: str = ""
    unit: str = ""
    states: tuple[State, ...] = ()
    width: int = 110

    @property
    def promql(self) -> str:
        text = self.expr
        for name, filters in FILTERS.items():
            text = text.replace(name, filters)
        return text


@dataclass(frozen=True)
class Column:
    """A label as a column of a table: its heading, its least width in pixels, and where its values lead."""

    label: str
    title: str
    width: int = 110
    link: str = ""


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
    least: float | None = 0
    most: float | None = None
    whole: bool = False
    stacked: bool = False
    states: tuple[State, ...] = ()
    columns: tuple[Column, ...] = ()
    sort: str = ""
    absent: str = ""

    @property
    def instant(self) -> bool:
        return self.kind in {"stat", "table", "bargauge"}

    @property
    def no_value(self) -> str:
        """What is shown where no query has an answer."""
        text = " ".join(query.expr for query in self.queries)
        short, long = next(words for filters, words in _ABSENT.items() if filters in text)
        return self.absent or (short if self.kind == "stat" else long)


@dataclass(frozen=True)
class Section:
    title: str
    panels: tuple[Panel, ...]


def lines(
    title: str,
    description: str,
    unit: str,
    *queries: Query,
    width: int = 12,
    least: float | None = 0,
    most: float | None = None,
    whole: bool = False,
    absent: str = "",
) -> Panel:
    """`most` is for ratios that cannot exceed it; `whole` for counts, whose queries must answer without decimals.

    The panel has no `decimals`: between whole numbers, Grafana would mark the axis with the words for an empty panel.
    """
    return Panel(
        "timeseries",
        title,
        description,
        unit,
        queries,
        width,
        8,
        least=least,
        most=most,
        whole=whole,
        absent=absent,
    )


def areas(title: str, description: str, unit: str, *queries: Query, width: int = 12, absent: str = "") -> Panel:
    """Lines that add up to something."""
    return Panel("timeseries", title, description, unit, queries, width, 8, stacked=True, absent=absent)


def stat(
    title: str,
    description: str,
    unit: str,
    expr: str,
    *,
    thresholds: Thresholds = PLAIN,
    width: int = 4,
    absent: str = "",
) -> Panel:
    return Panel("stat", title, description, unit, (Query(expr),), width, 4, thresholds, absent=absent)


def bars(title: str, description: str, unit: str, query: Query, *, width: int = 12) -> Panel:
    return Panel("bargauge", title, description, unit, (query,), width, 8)


def works(title: str, description: str, metric: str, by: str, legend: str, *, absent: str = "") -> Panel:
    """Whether each of many things works, over time: 1 is well, 0 is not. What failed in the chosen time is on top."""
    failed = f"min_over_time({metric}{{<node>}}[$__range] @ end()) == 0"
    return Panel(
        "state-timeline",
        title,
        description,
        "none",
        (
            Query(f"max by ({by}) ({metric}{{<node>}}) and on ({by}) ({failed})", legend),
            Query(f"max by ({by}) ({metric}{{<node>}}) unless on ({by}) ({failed})", legend),
        ),
        24,
        12,
        states=WORKS,
        absent=absent,
    )


def table(
    title: str,
    description: str,
    columns: tuple[Column, ...],
    *numbers: Query,
    sort: str = "",
    width: int = 24,
    height: int = 8,
    absent: str = "",
) -> Panel:
    """One query for each column of numbers; rows are joined by their labels, which are `columns` from the left.

    Rows are sorted by the column with the heading `sort`: numbers from the highest, labels from A. The first column
    sorts unless another is named.
    """
    return Panel(
        "table",
        title,
        description,
        "short",
        numbers,
        width,
        height,
        columns=columns,
        sort=sort or columns[0].title,
        absent=absent,
    )
