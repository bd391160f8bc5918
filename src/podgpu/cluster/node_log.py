"""Logs which nodes go and which come back. Where many do, one line a minute counts them."""

import time
from collections import Counter

from podgpu import log

WINDOW_SECONDS = 60.0
MOST_LINES = 20  # in a window; a thousand agents that come and go would write thousands
NAMED = 3


class NodeLog:
    def __init__(self) -> None:
        self._ends = 0.0
        self._lines = 0
        self._lost: Counter[str] = Counter()  # by reason
        self._back = 0
        self._names: dict[str, None] = {}

    def lost(self, node: str, reason: str, detail: str) -> None:
        if self._has_room(node):
            log.warning("a node cannot be read", node=node, reason=reason, detail=detail)
        else:
            self._lost[reason] += 1

    def back(self, node: str) -> None:
        if self._has_room(node):
            log.info("a node is back", node=node)
        else:
            self._back += 1

    def sum_up(self) -> None:
        """Count what had no line of its own, once the window is over. Comes once in each interval."""
        if time.monotonic() < self._ends:
            return
        if self._lost or self._back:
            reasons = ",".join(f"{reason}:{count}" for reason, count in self._lost.most_common())
            such_as = ",".join(list(self._names)[:NAMED])
            log.warning(
                "many nodes come and go",
                lost=self._lost.total(),
                back=self._back,
                reasons=reasons,
                such_as=such_as,
            )
        self._ends, self._lines, self._back = 0.0, 0, 0
        self._lost.clear()
        self._names.clear()

    def _has_room(self, node: str) -> bool:
        if not self._ends:
            self._ends = time.monotonic() + WINDOW_SECONDS
        self._lines += 1
        if self._lines <= MOST_LINES:
            return True
        if len(self._names) < NAMED:
            self._names[node] = None
        return False
