"""How a period is divided into windows that a store is asked about."""

from collections.abc import Callable
from typing import ClassVar, TypeVar

import msgspec
import pytest

from podgpu.cluster.report.counter_reader import CounterReader
from podgpu.cluster.store.client import Store
from podgpu.cluster.store.options import StoreOptions
from podgpu.cluster.store.response import DecodeBudget, Point, Series

HOUR, DAY = 3600.0, 86_400.0
K = TypeVar("K")


class Questions(Store):
    """A store without samples that keeps the ends of the windows it is asked about."""

    def __init__(self) -> None:
        super().__init__(StoreOptions(url="http://127.0.0.1:1"))
        self.ends: dict[float, None] = {}

    def select(self, metric: str, *more: str) -> str:
        return metric

    async def points(self, query: str, at: float, budget: DecodeBudget | None = None) -> list[Point]:
        self.ends[at] = None
        return []

    async def values(self, query: str, at: float, key: Callable[[bytes], K | None]) -> list[tuple[K, float]]:
        found = [(key(msgspec.json.encode(point.labels)), point.value) for point in await self.points(query, at)]
        return [(known, value) for known, value in found if known is not None]

    async def series(self, query: str, at: float, budget: DecodeBudget | None = None) -> list[Series]:
        return []


@pytest.mark.parametrize(
    ("hours", "ends"),
    [(6.0, [6.0]), (9.0, [9.0]), (9.1, [6.0, 9.1]), (15.0, [6.0, 15.0]), (16.0, [6.0, 12.0, 16.0])],
)
async def test_a_last_window_is_rather_longer_than_tiny(hours: float, ends: list[float]) -> None:
    store = Questions()
    found = [part.until async for part in CounterReader(store, longest=6 * HOUR).read(0.0, hours * HOUR)]
    assert found == [end * HOUR for end in ends]
    assert list(store.ends) == found


class OneCard(Questions):
    """A store with a single card, which is scraped so often in each window."""

    def __init__(self, *counts: int) -> None:
        super().__init__()
        self._counts = {(at + 1) * 6 * HOUR: count for at, count in enumerate(counts)}
        self.fetched: set[float] = set()

    async def points(self, query: str, at: float, budget: DecodeBudget | None = None) -> list[Point]:
        labels = {"node": "alpha", "uuid": "GPU-1"}
        if query.startswith("count_over_time"):
            return [Point(labels, self._counts[at])]
        if query.startswith(("last_over_time(podgpu_gpu_b", "timestamp")):
            return [Point(labels, at)]
        return []

    async def series(self, query: str, at: float, budget: DecodeBudget | None = None) -> list[Series]:
        self.fetched.add(at)
        samples = [(at - number * 300.0, 0.0) for number in reversed(range(10))]
        return [Series({"node": "alpha", "uuid": "GPU-1"}, samples)] if "booked" in query else []


async def test_the_only_card_is_looked_at_closely_when_it_was_scraped_too_seldom() -> None:
    store = OneCard(74, 74, 58, 74)
    reader = CounterReader(store, longest=6 * HOUR)
    async for _ in reader.read(0.0, 24 * HOUR):
        pass
    assert store.fetched == {6 * HOUR, 18 * HOUR}  # in the first window it is new


class LostCard(OneCard):
    """Its model is not known for a while."""

    async def points(self, query: str, at: float, budget: DecodeBudget | None = None) -> list[Point]:
        found = await super().points(query, at, budget)
        if not query.startswith("count_over_time"):
            return found
        return [Point({**found[0].labels, "model": "NVIDIA H200"}, 37), *found]


async def test_a_card_keeps_its_model_while_that_is_not_known() -> None:
    store = LostCard(74)
    parts = [part async for part in CounterReader(store, longest=6 * HOUR).read(0.0, 6 * HOUR)]
    assert {model for part in parts for model in part.models.values()} == {"NVIDIA H200"}


class SeveralDays(Questions):
    """A card whose counters grow by 1 in an hour. A pod is there until noon of the second day."""

    labels: ClassVar[dict[str, str]] = {"node": "alpha", "uuid": "GPU-1"}

    async def points(self, query: str, at: float, budget: DecodeBudget | None = None) -> list[Point]:
        self.ends[at] = None
        if query.startswith("count_over_time"):
            return [Point(self.labels, 100_000)]
        is_before = at == DAY and any(name in query for name in ("gpu_info", "gpu_booked_busy"))
        return [Point(self.labels, at / HOUR)] if is_before else []

    async def series(self, query: str, at: float, budget: DecodeBudget | None = None) -> list[Series]:
        self.ends[at] = None
        days = [day * DAY for day in range(1, 5)]
        if query.startswith("timestamp"):
            return [Series(self.labels, [(day, day - 10) for day in days])]  # also of the start
        if "podgpu_gpu_booked_busy" in query:
            return [Series(self.labels, [(day, day / HOUR) for day in days])]
        if "podgpu_container_allocated" in query:
            labels = {**self.labels, "namespace": "ml", "pod": "train"}
            return [Series(labels, [(2 * DAY, 12.0)] if " unless " in query else [])]
        return []


async def test_many_days_are_one_question_and_a_part_for_each() -> None:
    store = SeveralDays()
    reader = CounterReader(store)
    await reader.before(DAY)
    store.ends.clear()
    parts = [part async for part in reader.read(DAY, 4 * DAY, DAY)]
    assert list(store.ends) == [4 * DAY]
    assert [part.until for part in parts] == [2 * DAY, 3 * DAY, 4 * DAY]
    found = [
        {(at, counter.measure): value for at, own in times.items() for counter, value in own.items()}
        for part in parts
        for times in part.scrapes.values()
    ]
    day = 24 * 1_000_000
    assert found == [
        {(2 * DAY - 10, "busy"): 2 * day, (2 * DAY - 10, "held"): day // 2},
        {(3 * DAY - 10, "busy"): 3 * day},
        {(4 * DAY - 10, "busy"): 4 * day},
    ]
    assert [[counter.measure for counter in part.ended] for part in parts] == [["held"], [], []]


@pytest.mark.parametrize(
    ("start", "end", "edges"),
    [
        (0.0, 3.0, [0.0, 3.0]),
        (0.5, 3.25, [0.5, 1.0, 3.0, 3.25]),
        (0.5, 1.5, [0.5, 1.0, 1.5]),
        (0.5, 0.75, [0.5, 0.75]),
        (1.0, 1.5, [1.0, 1.5]),
        (0.0, 62.0, [0.0, 31.0, 62.0]),
    ],
)
async def test_a_part_of_a_day_is_asked_about_by_itself(start: float, end: float, edges: list[float]) -> None:
    store = Questions()
    async for _ in CounterReader(store, longest=90 * DAY).read(start * DAY, end * DAY, DAY):
        pass
    assert list(store.ends) == [edge * DAY for edge in edges[1:]]
