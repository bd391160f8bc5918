"""The rows that the user wants to see, in order. Computed once for each cluster and each choice."""

from collections.abc import Iterable
from functools import cached_property
from typing import Self

from podgpu.cli._top.columns import COLUMNS, column_of
from podgpu.cli._top.keys import TopState
from podgpu.insight.idle import idle_pods
from podgpu.insight.part_problems import VIEW
from podgpu.insight.rows import VIEWS, SummaryItem
from podgpu.insight.selection import PodSelection
from podgpu.model import Cluster
from podgpu.views.format import problem_text

MOST_READINGS = 120  # more than a sparkline has cells
_UNKNOWN = 255
_FULL = 200  # a ratio of 1; a byte each keeps the histories of 8,000 GPUs small


class UseHistory:
    """How busy GPUs and pods were since the screen was opened, by view and row. A row that is gone is forgotten."""

    def __init__(self) -> None:
        self._values: dict[str, dict[str, bytes]] = {}
        self._taken_at: dict[str, float] = {}

    def add(self, view: str, taken_at: float, items: Iterable[SummaryItem]) -> None:
        """Add the use of each row, unless this reading was added before."""
        if self._taken_at.get(view) == taken_at:
            return
        self._taken_at[view] = taken_at
        before = self._values.get(view, {})
        # Put in place as a whole: another thread draws.
        self._values[view] = {
            item.key: before.get(item.key, b"")[1 - MOST_READINGS :] + _byte(item.row.use_ratio) for item in items
        }

    def of(self, view: str, key: str) -> list[float | None]:
        """Return the ratios, the oldest first."""
        values = self._values.get(view, {}).get(key, b"")
        return [None if value == _UNKNOWN else value / _FULL for value in values]


class TopRows:
    """Draws nothing. What does not depend on the keys is computed once for a cluster."""

    def __init__(self, cluster: Cluster, chosen: PodSelection, history: UseHistory | None = None) -> None:
        self.cluster = cluster
        self.history = history or UseHistory()
        self._chosen = chosen
        self._entries: dict[str, list[SummaryItem]] = {}
        self._ordered: tuple[tuple[object, ...], list[SummaryItem]] | None = None
        self._longest: tuple[list[SummaryItem], int] | None = None

    def prepare(self, view: str) -> Self:
        """Compute what the next frame needs: for a large cluster that takes a while."""
        meters = () if self.has_many_nodes else ("gpus",)
        for needed in dict.fromkeys(("nodes", "pods", view, *meters)):
            self.history.add(needed, self.cluster.taken_at, self.all(needed))
        _ = self.problems
        return self

    @property
    def has_many_nodes(self) -> bool:
        return len(self.cluster.nodes) > 1

    @property
    def is_cut_off(self) -> bool:
        """Whether the server no longer answers, so that all of this is old."""
        return any(part.name == VIEW and not part.up for part in self.cluster.parts)

    @cached_property
    def problems(self) -> list[str]:
        found = self.cluster.insight.problems if self.cluster.insight else ()
        return [problem_text(problem, with_node=self.has_many_nodes) for problem in found]

    @cached_property
    def waste(self) -> list[str]:
        """Who holds GPUs without using them, as the page says it."""
        return [row.text for row in idle_pods(self.cluster).waste]

    def all(self, view: str) -> list[SummaryItem]:
        if view not in self._entries:
            self._entries[view] = VIEWS[view](self.cluster, self._chosen)
        return self._entries[view]

    def shown(self, state: TopState) -> list[SummaryItem]:
        view = state.view
        choice = (view, state.sorts[view], view in state.reversed_views, state.words, state.only_idle)
        if self._ordered is None or self._ordered[0] != choice:
            self._ordered = choice, self._arranged(state)
        return self._ordered[1]

    def longest_name(self, state: TopState) -> int:
        """Of the rows that are shown, in characters."""
        shown = self.shown(state)
        if self._longest is None or self._longest[0] is not shown:
            self._longest = shown, max((len(entry.row.title) for entry in shown), default=0)
        return self._longest[1]

    def _arranged(self, state: TopState) -> list[SummaryItem]:
        words = state.words.lower().split()
        found = [entry for entry in self.all(state.view) if _has(entry, words)]
        if state.only_idle:
            found = [entry for entry in found if entry.row.idle_pods]
        return ordered(found, state.view, state.sorts[state.view], is_reversed=state.view in state.reversed_views)


def ordered(entries: list[SummaryItem], view: str, title: str, *, is_reversed: bool = False) -> list[SummaryItem]:
    """Sort by a column, then by name. What is unknown comes last, either way."""
    by = column_of(view, title)
    if by is COLUMNS[view][0]:
        return sorted(entries, key=lambda entry: entry.order, reverse=is_reversed)
    entries = sorted(entries, key=lambda entry: entry.order)
    known = [(value, entry) for entry in entries if (value := by.value(entry.row)) not in (None, "")]
    known.sort(key=lambda pair: pair[0], reverse=by.ascending == is_reversed)
    # Rows with equal values stay in the order of their names, in both directions.
    return [entry for _, entry in known] + [entry for entry in entries if by.value(entry.row) in (None, "")]


def _has(entry: SummaryItem, words: list[str]) -> bool:
    row = entry.row
    text = f"{row.title} {row.node} {row.kind} {row.model} {row.state}".lower() if words else ""
    return all(word in text for word in words)


def _byte(ratio: float | None) -> bytes:
    return bytes((_UNKNOWN if ratio is None else round(min(max(ratio, 0.0), 1.0) * _FULL),))
