"""The rows that the user wants to see, in order. Computed once for each cluster and each choice."""

from podgpu.cli._top.columns import HEADINGS, heading
from podgpu.cli._top.state import State
from podgpu.insight.rows import VIEWS, SummaryItem
from podgpu.insight.selection import PodSelection
from podgpu.model import Cluster
from podgpu.views.format import problem_texts


class Board:
    """Draws nothing. What does not depend on the keys is computed once for a cluster."""

    def __init__(self, cluster: Cluster, chosen: PodSelection) -> None:
        self.cluster = cluster
        self._chosen = chosen
        self._entries: dict[str, list[SummaryItem]] = {}
        self._wrongs: list[str] | None = None
        self._ordered: tuple[tuple[object, ...], list[SummaryItem]] | None = None

    def prepare(self, view: str) -> "Board":
        """Compute what the next frame needs: for a large cluster that takes a while."""
        for one in dict.fromkeys(("nodes", "pods", view)):
            self.all(one)
        _ = self.wrongs
        return self

    @property
    def wrongs(self) -> list[str]:
        if self._wrongs is None:
            found = self.cluster.insight.problems if self.cluster.insight else ()
            self._wrongs = problem_texts(found, with_node=len(self.cluster.nodes) > 1)
        return self._wrongs

    def all(self, view: str) -> list[SummaryItem]:
        if view not in self._entries:
            self._entries[view] = VIEWS[view](self.cluster, self._chosen)
        return self._entries[view]

    def rows(self, state: State) -> list[SummaryItem]:
        view = state.view
        choice = (view, state.sorts[view], view in state.turned, state.words, state.only_idle)
        if self._ordered is None or self._ordered[0] != choice:
            self._ordered = choice, self._arranged(state)
        return self._ordered[1]

    def _arranged(self, state: State) -> list[SummaryItem]:
        words = state.words.lower().split()
        found = [entry for entry in self.all(state.view) if _has(entry, words)]
        if state.only_idle:
            found = [entry for entry in found if entry.row.idle_pods]
        return ordered(found, state.view, state.sorts[state.view], turned=state.view in state.turned)


def ordered(entries: list[SummaryItem], view: str, title: str, *, turned: bool = False) -> list[SummaryItem]:
    """Sort by a column, then by name. What is unknown comes last, either way."""
    by = heading(view, title)
    if by is HEADINGS[view][0]:
        return sorted(entries, key=lambda entry: entry.order, reverse=turned)
    entries = sorted(entries, key=lambda entry: entry.order)
    known = [(value, entry) for entry in entries if (value := by.value(entry.row)) not in (None, "")]
    known.sort(key=lambda pair: pair[0], reverse=by.ascending == turned)
    # Sorting is stable, and downwards it must be so too.
    return [entry for _, entry in known] + [entry for entry in entries if by.value(entry.row) in (None, "")]


def _has(entry: SummaryItem, words: list[str]) -> bool:
    row = entry.row
    text = f"{row.title} {row.node} {row.kind} {row.model} {row.state}".lower() if words else ""
    return all(word in text for word in words)
