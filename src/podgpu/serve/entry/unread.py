"""Answers on their way to clients that do not read them."""

from collections import Counter
from typing import Protocol


class Holder(Protocol):
    address: str

    @property
    def stalled_since(self) -> float | None: ...

    def abort(self) -> None: ...


class Unread:
    """Bounds their memory: over `most_bytes`, the longest stalled client of the hungriest origin is cut.

    Many clients may hold the same page, which counts once.
    """

    def __init__(self, most_bytes: int) -> None:
        self._most_bytes = most_bytes
        self._held: dict[Holder, bytes] = {}
        self._holders: Counter[int] = Counter()
        self.total_bytes = 0

    def hold(self, holder: Holder, body: bytes) -> None:
        self.release(holder)
        self._held[holder] = body
        self._holders[id(body)] += 1
        if self._holders[id(body)] == 1:
            self.total_bytes += len(body)
        while self.total_bytes > self._most_bytes and (late := self._late(holder)) is not None:
            self.release(late)
            late.abort()

    def release(self, holder: Holder) -> None:
        body = self._held.pop(holder, None)
        if body is None:
            return
        self._holders[id(body)] -= 1
        if not self._holders[id(body)]:
            del self._holders[id(body)]
            self.total_bytes -= len(body)

    def _late(self, newcomer: Holder) -> Holder | None:
        sizes: Counter[str] = Counter()
        for one, body in self._held.items():
            sizes[one.address] += len(body) // self._holders[id(body)]
        others = [one for one in self._held if one is not newcomer]
        return min(others, key=lambda one: (-sizes[one.address], one.stalled_since or 0.0), default=None)
