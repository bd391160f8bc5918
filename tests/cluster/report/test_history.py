"""How a period is divided into windows that a store is asked about."""

import pytest

from podgpu.cluster.report.history import CounterHistory
from podgpu.cluster.store.response import Point, Series

HOUR = 3600.0


class Questions:
    """A store without samples that keeps the ends of the windows it is asked about."""

    def __init__(self) -> None:
        self.ends: dict[float, None] = {}

    def select(self, metric: str, *more: str) -> str:
        return metric

    async def points(self, query: str, at: float) -> list[Point]:
        self.ends[at] = None
        return []

    async def series(self, query: str, at: float) -> list[Series]:
        return []


@pytest.mark.parametrize(
    ("hours", "ends"),
    [(6.0, [6.0]), (9.0, [9.0]), (9.1, [6.0, 9.1]), (15.0, [6.0, 15.0]), (16.0, [6.0, 12.0, 16.0])],
)
async def test_a_last_window_is_rather_longer_than_tiny(hours: float, ends: list[float]) -> None:
    store = Questions()
    found = [part.until async for part in CounterHistory(store).read(0.0, hours * HOUR)]
    assert found == [end * HOUR for end in ends]
    assert list(store.ends) == found
