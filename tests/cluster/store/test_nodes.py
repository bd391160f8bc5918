"""A node's series as its snapshot."""

import pytest

from podgpu import insight
from podgpu.cluster.store.client import Store
from podgpu.cluster.store.nodes import WANTED, read_nodes
from podgpu.cluster.store.options import StoreOptions
from podgpu.cluster.store.response import DecodeBudget, Point, Series
from podgpu.cluster.store.snapshot import NodeRows, snapshot
from podgpu.model import Snapshot
from tests.tree import SETTINGS

NOW = 1_800_000_000.0
CARD = {"node": "a", "gpu": "0", "uuid": "GPU-1"}
POD = {**CARD, "mig": "", "namespace": "ml", "pod": "train-0", "container": "main"}


def read(**values: float) -> Snapshot:
    """A pod that holds a card and does nothing, with these series of it and of its agent."""
    rows = NodeRows("a")
    rows.add("podgpu_gpu_up", CARD, 1.0)
    rows.add("podgpu_container_info", POD, 1.0)
    series = {
        "podgpu_container_allocated_ratio": 1.0,
        "podgpu_container_processes": 1.0,
        "podgpu_container_sm_utilization_ratio": 0.0,
        "podgpu_container_held_since_timestamp_seconds": NOW - 10 * SETTINGS.idle_after,
        **values,
    }
    for name, value in series.items():
        rows.add(name, POD if "container" in name else CARD, value)
        assert WANTED.fullmatch(name), f"nobody asks the store for {name}"
    return insight.conclude(snapshot(rows, taken_at=NOW, interval=5.0), SETTINGS)


def test_it_says_that_it_comes_from_a_store() -> None:
    assert read().stored


class ScrapedStore(Store):
    """Has one node with a card and a container, whose last samples were `late` seconds before the last scrape."""

    def __init__(self, late: float) -> None:
        super().__init__(StoreOptions(url="http://127.0.0.1:1"))
        self._late = late

    async def series(self, query: str, at: float, budget: DecodeBudget | None = None) -> list[Series]:
        return [Series({"node": "a"}, [(at - 15.0, at - 15.0), (at, at)])]

    async def points(self, query: str, at: float, budget: DecodeBudget | None = None) -> list[Point]:
        if query == "timestamp(podgpu_gpu_up)":
            return [Point(CARD, at)]
        if query == "timestamp(podgpu_container_info)":
            return [Point(POD, at - self._late)]
        if "__name__" not in query:
            return []
        up, info = {**CARD, "__name__": "podgpu_gpu_up"}, {**POD, "__name__": "podgpu_container_info"}
        return [Point(up, 1.0), Point(info, 1.0)]


@pytest.mark.parametrize(("late", "pods"), [(0.0, ["train-0"]), (0.4, ["train-0"]), (0.6, [])])
async def test_a_container_that_the_last_scrape_did_not_have_is_gone(late: float, pods: list[str]) -> None:
    found = await read_nodes(ScrapedStore(late), NOW)
    (card,) = found.nodes["a"].snapshot.cards
    assert [tenant.container.pod for tenant in card.tenants] == pods


@pytest.mark.parametrize(
    ("series", "state", "evidence"),
    [
        ({}, "idle", "never_used"),
        ({"podgpu_container_processes": 0.0}, "idle", "no_process"),
        ({"podgpu_container_sm_utilization_ratio": 0.5}, "working", "active"),
        ({"podgpu_container_last_active_timestamp_seconds": NOW - 1}, "working", "active"),
        ({"podgpu_container_held_since_timestamp_seconds": NOW - 1}, "waiting", "never_used"),
        ({"podgpu_watched_since_timestamp_seconds": NOW - 1}, "unknown", "watched_briefly"),
    ],
)
def test_whether_it_uses_what_it_holds_is_known_by_its_series(
    series: dict[str, float], state: str, evidence: str
) -> None:
    holding = read(**series).cards[0].tenants[0].holding
    assert holding is not None
    assert (holding.state, holding.evidence) == (state, evidence)


@pytest.mark.parametrize(
    ("series", "kind"),
    [
        ("podgpu_gpu_recovery_action", "recovery"),
        ("podgpu_gpu_row_remap_failed", "memory_failed"),
        ("podgpu_gpu_row_remap_pending", "memory_pending"),
        ("podgpu_gpu_retired_pages_pending", "memory_pending"),
        ("podgpu_gpu_xid_last_code", "xid"),
    ],
)
def test_what_is_wrong_with_a_card_is_known_by_its_series(series: str, kind: str) -> None:
    found = read(**{series: 1.0}).insight
    assert found is not None
    assert kind in [problem.kind for problem in found.problems]


AGENT, OTHER = {"job": "podgpu", "instance": "10.0.0.1:19400"}, {"job": "web", "instance": "10.0.0.66:80"}


class TwoTargets(Store):
    """A node that an agent and another page speak for. That one says that the pod has held so many seconds."""

    def __init__(self, held: float, taken_before: float = 0.0) -> None:
        super().__init__(StoreOptions(url="http://127.0.0.1:1"))
        self._held = {"podgpu": 90_000.0, "web": held}
        self._before = taken_before

    async def series(self, query: str, at: float, budget: DecodeBudget | None = None) -> list[Series]:
        times = [at - number * 15.0 for number in reversed(range(20))]
        samples = [(when, when - self._before) for when in times]
        late = [(when + 3.0, when - self._before) for when in times[:-1]]
        return [Series({"node": "a", **AGENT}, samples), Series({"node": "a", **OTHER}, late)]

    async def points(self, query: str, at: float, budget: DecodeBudget | None = None) -> list[Point]:
        if "__name__" not in query:
            return []
        rows = {"podgpu_gpu_up": (CARD, 1.0), "podgpu_container_info": (POD, 1.0)}
        return [
            Point({**labels, **target, "__name__": name}, value)
            for target in (AGENT, OTHER)
            for name, (labels, value) in {
                **rows,
                "podgpu_container_allocated_seconds_total": (POD, self._held[target["job"]]),
            }.items()
        ]


async def test_a_node_that_two_pages_speak_for_is_shown_if_they_say_the_same() -> None:
    found = await read_nodes(TwoTargets(held=89_990.0), NOW)
    assert list(found.nodes) == ["a"]
    assert not found.faults


@pytest.mark.parametrize("held", [0.0, 80_000.0, 95_000.0])
async def test_a_node_that_two_pages_say_different_things_of_is_not_shown(held: float) -> None:
    found = await read_nodes(TwoTargets(held), NOW)
    assert not found.nodes
    assert found.faults["a"].reason == "disputed"
    assert "10.0.0.66:80 of job web" in found.faults["a"].detail
    assert "--prometheus.job" in found.faults["a"].detail


async def test_what_a_page_shows_of_long_ago_is_not_shown_as_now() -> None:
    found = await read_nodes(TwoTargets(held=90_000.0, taken_before=86_400.0), NOW)
    assert not found.nodes
    assert found.faults["a"].reason == "old"
