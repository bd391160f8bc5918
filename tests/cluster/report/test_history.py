"""How a period is divided into windows that a store is asked about."""

from collections.abc import Callable
from typing import TypeVar

import msgspec
import pytest

from podgpu.cluster.report.history import CounterHistory
from podgpu.cluster.store.response import Point, Series

HOUR = 3600.0
K = TypeVar("K")


class Questions:
    """A store without samples that keeps the ends of the windows it is asked about."""

    def __init__(self) -> None:
        self.ends: dict[float, None] = {}

    def select(self, metric: str, *more: str) -> str:
        return metric

    async def points(self, query: str, at: float) -> list[Point]:
        self.ends[at] = None
        return []

    async def values(self, query: str, at: float, key: Callable[[bytes], K | None]) -> list[tuple[K, float]]:
        found = [
            (key(msgspec.json.encode(point.labels)), point.value) for point in await self.points(query, at)
        ]
        return [(known, value) for known, value in found if known is not None]

    async def series(self, query: str, at: float) -> list[Series]:
        return []


@pytest.mark.parametrize(
    ("hours", "ends"),
    [(6.0, [6.0]), (9.0, [9.0]), (9.1, [6.0, 9.1]), (15.0, [6.0, 15.0]), (16.0, [6.0, 12.0, 16.0])],
)
async def test_a_last_window_is_rather_longer_than_tiny(hours: float, ends: list[float]) -> None:
    store = Questions()
    found = [part.until async for part in CounterHistory(store, longest=6 * HOUR).read(0.0, hours * HOUR)]
    assert found == [end * HOUR for end in ends]
    assert list(store.ends) == found


class OneCard(Questions):
    """A store with a single card, which is scraped so often in each window."""

    def __init__(self, *counts: int) -> None:
        super().__init__()
        self._counts = {(at + 1) * 6 * HOUR: count for at, count in enumerate(counts)}
        self.fetched: set[float] = set()

    async def points(self, query: str, at: float) -> list[Point]:
        labels = {"node": "alpha", "uuid": "GPU-1"}
        if query.startswith("count_over_time"):
            return [Point(labels, self._counts[at])]
        if query.startswith(("last_over_time(podgpu_gpu_b", "timestamp")):
            return [Point(labels, at)]
        return []

    async def series(self, query: str, at: float) -> list[Series]:
        self.fetched.add(at)
        samples = [(at - number * 300.0, 0.0) for number in reversed(range(10))]
        return [Series({"node": "alpha", "uuid": "GPU-1"}, samples)] if "booked" in query else []


async def test_the_only_card_is_looked_at_closely_when_it_was_scraped_too_seldom() -> None:
    store = OneCard(74, 74, 58, 74)
    history = CounterHistory(store, longest=6 * HOUR)
    async for _ in history.read(0.0, 24 * HOUR):
        pass
    assert store.fetched == {6 * HOUR, 18 * HOUR}  # in the first window it is new
