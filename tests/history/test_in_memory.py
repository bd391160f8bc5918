"""The last hour: each moment is what it was, field by field, and what is kept stays within its bounds."""

import asyncio
from collections.abc import Iterable
from math import nan

import pytest
from msgspec.structs import replace

from podgpu.history.in_memory import HOUR, InMemoryHistory
from podgpu.history.parted_state import AbandonedError
from podgpu.history.partitions import BY_CARD, BY_NODE, CardOrPods, Part, State
from podgpu.insight import conclude_cluster
from podgpu.model import Cluster, ClusterNode, Fault, Pod, PodContainer, Reading, Snapshot
from podgpu.views import json
from podgpu.views.cluster import json as cluster_json
from tests.history.crowded_node import crowded_snapshots
from tests.tree import SETTINGS, judged

INTERVAL = 60.0
MINUTE = 60.0


def node_history(
    most_bytes: int = 4 << 20, whole_every: int = 20, longest_step: float = 5.0
) -> InMemoryHistory[Snapshot, CardOrPods]:
    return InMemoryHistory(BY_CARD, step=5.0, whole_every=whole_every, most_bytes=most_bytes, longest_step=longest_step)


@pytest.fixture(scope="module")
def hour() -> list[Snapshot]:
    """More than an hour of a crowded node. A GPU is lost for a while, and another is not even listed."""

    async def taken() -> list[Snapshot]:
        return [snapshot async for snapshot in crowded_snapshots(70, INTERVAL)]

    return [_broken(snapshot, number) for number, snapshot in enumerate(asyncio.run(taken()))]


@pytest.fixture(scope="module")
def history(hour: list[Snapshot]) -> InMemoryHistory[Snapshot, CardOrPods]:
    return asyncio.run(kept(hour, node_history()))


def _broken(snapshot: Snapshot, number: int) -> Snapshot:
    if not 30 <= number < 40:
        return snapshot
    lost = replace(snapshot.cards[3], fault=Fault(reason="lost"), readings=(), use=None)
    return judged(replace(snapshot, cards=(*snapshot.cards[:3], lost, *snapshot.cards[5:])))


def state_at(history: InMemoryHistory[State, Part], moment: float) -> State | None:
    """What was the newest state then, read as a whole."""
    past = history.at(moment)
    return past.whole() if past else None


async def kept(
    snapshots: Iterable[Snapshot], history: InMemoryHistory[Snapshot, CardOrPods]
) -> InMemoryHistory[Snapshot, CardOrPods]:
    for snapshot in snapshots:
        await history.keep(snapshot)
    return history


async def test_a_moment_forty_minutes_ago_is_the_snapshot_that_was_taken_then(
    hour: list[Snapshot], history: InMemoryHistory[Snapshot, CardOrPods]
) -> None:
    now = hour[-1].taken_at
    then = [snapshot for snapshot in hour if snapshot.taken_at <= now - 40 * MINUTE][-1]
    found = state_at(history, now - 40 * MINUTE)
    assert found is not None
    assert found == then
    assert json.encode(found) == json.encode(then)


async def test_every_moment_that_is_kept_is_what_it_was(
    hour: list[Snapshot], history: InMemoryHistory[Snapshot, CardOrPods]
) -> None:
    for snapshot in hour[-58::5]:
        assert state_at(history, snapshot.taken_at + 0.1) == snapshot


async def test_an_hour_is_kept_and_no_more(
    hour: list[Snapshot], history: InMemoryHistory[Snapshot, CardOrPods]
) -> None:
    assert history.span is not None
    first, last = history.span
    assert last == hour[-1].taken_at
    assert HOUR - 1.1 * INTERVAL <= last - first <= HOUR
    assert state_at(history, first - 0.1) is None
    assert state_at(history, last + MINUTE) is None


async def test_what_takes_too_much_room_is_forgotten_from_its_beginning(hour: list[Snapshot]) -> None:
    history = await kept(hour, node_history(most_bytes=400_000, whole_every=4))
    assert history.size <= 400_000
    assert history.span is not None
    first, last = history.span
    assert last == hour[-1].taken_at
    assert 2 * MINUTE < last - first < 50 * MINUTE
    assert state_at(history, last) == hour[-1]


async def test_without_room_for_an_hour_moments_are_kept_less_often(hour: list[Snapshot]) -> None:
    coarse = await kept(hour, node_history(most_bytes=500_000, longest_step=240.0))
    assert coarse.step > 60.0
    assert coarse.size <= 500_000
    fine = await kept(hour, node_history(most_bytes=500_000))
    assert coarse.span is not None and fine.span is not None
    assert coarse.span[1] - coarse.span[0] > fine.span[1] - fine.span[0]


async def test_who_reads_often_keeps_a_moment_every_few_seconds(hour: list[Snapshot]) -> None:
    often = [replace(hour[0], taken_at=1000.0 + second / 2) for second in range(41)]
    history = await kept(often, node_history())
    step = await history.timeline(1000.0, 1020.0, 1.0)
    assert [found["at"] for found in step["steps"] if "gpus" in found] == [
        1000.0,
        1004.0,
        1009.0,
        1013.0,
        1018.0,
    ]


async def test_a_clock_that_is_set_back_begins_anew(hour: list[Snapshot]) -> None:
    history = await kept(hour[:20], node_history())
    await history.keep(hour[3])
    assert history.span == (hour[3].taken_at, hour[3].taken_at)
    assert state_at(history, hour[3].taken_at) == hour[3]


async def test_what_no_json_can_hold_is_left_out_as_it_is_from_the_document(hour: list[Snapshot]) -> None:
    card = hour[0].cards[0]
    odd = replace(card, readings=(*card.readings, Reading("power_watts", nan)), refused=card.refused)
    snapshot = replace(hour[0], node="gpu-\ud800", cards=(odd, *hour[0].cards[1:]))
    history = await kept([snapshot], node_history())
    found = state_at(history, snapshot.taken_at)
    assert found is not None
    assert json.encode(found) == json.encode(snapshot)


async def test_the_numbers_of_a_card_over_time_are_those_of_its_snapshots(
    hour: list[Snapshot], history: InMemoryHistory[Snapshot, CardOrPods]
) -> None:
    found = await history.gpu_hour(hour[0].cards[3].gpu.uuid)
    assert found is not None
    series = found["series"]
    seen = {
        snapshot.taken_at: card.use.ratio
        for snapshot in hour
        for card in snapshot.cards
        if card.gpu.uuid == hour[0].cards[3].gpu.uuid and card.use
    }
    busy = [pair for pair in series["busy_ratio"] if pair[0] >= hour[15].taken_at]
    assert busy == [(at, ratio) for at, ratio in seen.items() if at >= hour[15].taken_at and ratio is not None]
    assert len(busy) == 45  # ten are missing: it was lost
    assert await history.gpu_hour("GPU-0") is None


async def test_the_numbers_of_a_card_that_came_late_are_found_although_its_pod_was_known_before(
    hour: list[Snapshot],
) -> None:
    card, *others = hour[0].cards
    container = PodContainer(name="main", devices=(("nvidia.com/gpu", card.gpu.uuid),))
    pods = (Pod(namespace="ml", name="train", uid="1", containers=(container,)),)
    early = replace(hour[0], cards=tuple(others), pods=pods)
    history = await kept([early, replace(hour[1], pods=pods)], node_history())
    found = await history.gpu_hour(card.gpu.uuid)
    assert found is not None
    assert [at for at, _ in found["series"]["busy_ratio"]] == [hour[1].taken_at]


def cluster(at: float, nodes: Iterable[ClusterNode]) -> Cluster:
    return conclude_cluster(Cluster(taken_at=at, version="1", interval_seconds=15.0, nodes=tuple(nodes)), SETTINGS)


def node(name: str, snapshot: Snapshot) -> ClusterNode:
    return ClusterNode(name=name, state="fresh", origin="agent", snapshot=replace(snapshot, node=name))


async def test_a_cluster_is_kept_by_node_also_one_that_goes_and_comes_back(hour: list[Snapshot]) -> None:
    history = InMemoryHistory(BY_NODE, step=30.0, whole_every=3, most_bytes=4 << 20)
    clusters = [
        cluster(snapshot.taken_at, [node("a", snapshot), *([node("b", snapshot)] if number % 4 else [])])
        for number, snapshot in enumerate(hour[:12])
    ]
    for state in clusters:
        await history.keep(state)
    for state in clusters:
        found = state_at(history, state.taken_at)
        assert found == state
        assert cluster_json.encode(found) == cluster_json.encode(state)


async def test_a_large_cluster_is_kept_less_often_from_the_first_so_that_the_whole_hour_stays(
    hour: list[Snapshot],
) -> None:
    history = InMemoryHistory(BY_NODE, step=30.0, whole_every=30, most_bytes=500_000)
    for snapshot in hour[3:]:  # of agents that have run for a while
        await history.keep(cluster(snapshot.taken_at, [node("a", snapshot)]))
    assert history.span is not None
    assert history.span[1] - history.span[0] >= HOUR
    assert history.step > 30.0
    assert history.size <= 500_000


async def test_a_moment_of_a_cluster_is_decoded_node_by_node_and_can_be_abandoned(hour: list[Snapshot]) -> None:
    decoded: list[str] = []

    def decode_part(text: bytes) -> ClusterNode:
        node = BY_NODE.decode_part(text)
        decoded.append(node.name)
        return node

    history = InMemoryHistory(replace(BY_NODE, decode_part=decode_part), step=30.0, whole_every=3, most_bytes=4 << 20)
    await history.keep(cluster(hour[0].taken_at, [node(name, hour[0]) for name in "abcd"]))
    past = history.at(hour[0].taken_at)
    assert past is not None
    head, nodes = past.parts()
    assert (head.nodes, decoded) == ((), [])
    assert (next(nodes).name, decoded) == ("a", ["a"])
    past.abandon()
    with pytest.raises(AbandonedError):
        next(nodes)
    assert decoded == ["a", "b"]
