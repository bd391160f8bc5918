"""A panel is one call: a title, what it shows in words, a unit, and its queries.

Queries name their filters in angle brackets, so that all panels filter alike: `podgpu_gpu_up{<node>}`.
"""

import re
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
MOST_SERIES = 20
PLAIN: Thresholds = ((None, "blue"),)
BAD_ABOVE_ZERO: Thresholds = ((None, "green"), (1, "red"))
OVER: Thresholds = ((None, "green"), (1, "red"))
FULL: Thresholds = ((None, "green"), (0.85, "orange"), (0.95, "red"))


@dataclass(frozen=True)
class State:
    """What a number stands for, and a colour that no other state of the panel has."""

    value: int
    text: str
    color: str


WORKS = (State(0, "fails", "red"), State(1, "works", "green"))
# Of cards: what is known of one that is not seen is what was last heard.
PRESENCE = (*WORKS, State(-1, "not seen", "dark-red"), State(-2, "not seen, failed before", "purple"))
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


# A selector and its range.
_SELECTOR = re.compile(r"([a-z_:]+\{[^}]*\})(\[[^]]*\])?")


def _over_range(found: re.Match[str]) -> str:
    over = f"{found[1]}[$__range] @ end()"
    return over if found[2] else f"max_over_time({over})"


@dataclass(frozen=True)
class Query:
    """`legend` is the name of a series, or of a table's column of numbers: without a name it is not shown.

    `thresholds` colour the numbers of a table. `order` says why a query compares without concluding anything, such as
    to put some first: see `conclusions`.
    """

    expr: str
    legend: str = ""
    unit: str = ""
    states: tuple[State, ...] = ()
    width: int = 110
    thresholds: Thresholds = ()
    order: str = ""

    @property
    def is_many(self) -> bool:
        """Whether it may answer with any number of series."""
        return "{{" in self.legend

    @property
    def promql(self) -> str:
        return self.limited(0)

    def limited(self, most: int) -> str:
        """Ask for `most` series, if not 0: those that were highest in the chosen time, or lowest, if so ordered."""
        text = self.expr
        if most and self.is_many:
            choose = "bottomk" if self.order == "lowest" else "topk"
            text = f"({text}) and {choose}({most}, {_SELECTOR.sub(_over_range, text)})"
        for name, filters in FILTERS.items():
            text = text.replace(name, filters)
        return text


@dataclass(frozen=True)
class Column:
    """A label as a column of a table: its heading, its least width in pixels, and where its values lead.

    `colors` are a value, what is shown for it, and its colour.
    """

    label: str
    title: str
    width: int = 110
    link: str = ""
    colors: tuple[tuple[str, str, str], ...] = ()


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
    def most_series(self) -> int:
        """How many series each query may show; 0 where that is not limited."""
        many = sum(query.is_many for query in self.queries)
        return MOST_SERIES // many if self.kind == "timeseries" and many else 0

    @property
    def told(self) -> str:
        """The description, and what is left out."""
        if not self.most_series:
            return self.description
        which = "lowest" if any(query.order == "lowest" for query in self.queries) else "top"
        return f"{self.description} Shows the {which} {MOST_SERIES} of the chosen time."

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
    thresholds: Thresholds = PLAIN,
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
        thresholds=thresholds,
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
    legend: str = "",
    order: str = "",
    width: int = 4,
    absent: str = "",
) -> Panel:
    return Panel(
        "stat", title, description, unit, (Query(expr, legend, order=order),), width, 4, thresholds, absent=absent
    )


def bars(title: str, description: str, unit: str, query: Query, *, width: int = 12) -> Panel:
    return Panel("bargauge", title, description, unit, (query,), width, 8)


def works(
    title: str,
    description: str,
    state: str,
    worst: str,
    by: str,
    legend: str,
    *,
    states: tuple[State, ...] = WORKS,
    absent: str = "",
) -> Panel:
    """Whether each of many things works, over time: 1 is well, less is not. What failed in the chosen time is on top.

    `worst` is the lowest that `state`, a query, was in the chosen time.
    """
    shown, failed = f"max by ({by}) ({state})", f"min by ({by}) ({worst}) < 1"
    return Panel(
        "state-timeline",
        title,
        description,
        "none",
        (
            Query(f"{shown} and on ({by}) ({failed})", legend, order="failed first"),
            Query(f"{shown} unless on ({by}) ({failed})", legend, order="failed first"),
        ),
        24,
        12,
        states=states,
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
