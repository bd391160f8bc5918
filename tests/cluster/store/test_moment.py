"""A moment of the past from a store: the cluster of then, without what no store has."""

import pytest

from podgpu.cluster.store import moment
from podgpu.cluster.store.client import Store
from podgpu.cluster.store.moment import StoreMoments
from podgpu.cluster.store.response import DecodeBudget, Point, StoreFault
from podgpu.errors import UserError
from tests.cluster.store.test_nodes import CARD, NOW, ScrapedStore
from tests.tree import SETTINGS

LONG_AGO = NOW - 5 * 86_400.0


class OfThen(ScrapedStore):
    """Knows who was on the card, and how busy it was, at the time that it is asked about."""

    def __init__(self) -> None:
        super().__init__(late=0.0)
        self.asked: set[float] = set()

    async def points(self, query: str, at: float, budget: DecodeBudget | None = None) -> list[Point]:
        self.asked.add(at)
        found = await super().points(query, at, budget)
        busy = [Point({**CARD, "__name__": "podgpu_gpu_busy_ratio"}, 0.25)] if "__name__" in query else []
        return [*found, *busy]


def moments(store: Store) -> StoreMoments:
    return StoreMoments(store, SETTINGS, name="prod", interval=15.0)


async def test_a_moment_is_the_cluster_as_the_store_had_it_then() -> None:
    store = OfThen()
    found = await moments(store).at(LONG_AGO)
    assert found is not None
    assert store.asked == {LONG_AGO}
    assert (found.taken_at, found.name, found.has_store) == (LONG_AGO, "prod", True)
    [node] = found.nodes
    assert (node.name, node.state, node.origin) == ("a", "fresh", "store")
    assert node.snapshot is not None and node.snapshot.stored
    assert [tenant.container.pod for tenant in node.snapshot.cards[0].tenants] == ["train-0"]
    assert found.insight is not None and found.insight.sums.gpus == 1


class Empty(ScrapedStore):
    async def series(self, *_: object) -> list[object]:  # type: ignore[override]
        return []

    async def points(self, *_: object) -> list[Point]:
        return []


async def test_a_store_that_has_nothing_of_then_has_no_moment() -> None:
    assert await moments(Empty(0.0)).at(LONG_AGO) is None


class Failing(ScrapedStore):
    async def points(self, *_: object) -> list[Point]:
        raise StoreFault("store_late", "no answer in time")


async def test_a_store_that_fails_is_a_user_error_with_its_reason() -> None:
    with pytest.raises(UserError, match="store_late: no answer in time"):
        await moments(Failing(0.0)).at(LONG_AGO)


class Large(ScrapedStore):
    async def points(self, query: str, at: float, budget: DecodeBudget | None = None) -> list[Point]:
        assert budget is not None
        budget.spend(b"{" * (moment.MOMENT_PARTS + 1))
        return []


async def test_a_moment_may_not_take_the_memory_of_the_present() -> None:
    with pytest.raises(UserError, match="too large for a moment"):
        await moments(Large(0.0)).at(LONG_AGO)
