"""What is drawn of a GPU and of a pod over the hour, from the moments that are kept."""

import pytest
from msgspec.structs import replace

from podgpu.errors import UserError
from podgpu.history.charts import MOST_PODS
from podgpu.history.in_memory import HOUR, MOST_PLACES, MOST_POINTS, InMemoryHistory
from podgpu.history.partitions import BY_CARD, BY_NODE, CardOrPods
from podgpu.insight import conclude_cluster
from podgpu.model import Card, Cluster, ClusterNode, ContainerRef, Reading, Snapshot
from tests.cluster.nodes import GIB, card, fresh, snapshot, tenant
from tests.tree import SETTINGS, judged

START = 1_700_000_000.0


def kept_by_card() -> InMemoryHistory[Snapshot, CardOrPods]:
    return InMemoryHistory(BY_CARD, step=5.0, whole_every=4, most_bytes=4 << 20)


def at(number: int, *cards: Card) -> Snapshot:
    return judged(replace(snapshot("gpu-1", *cards), taken_at=START + 5 * number))


def gpu(index: int, *pods: str, watts: float = 300.0, **facts: object) -> Card:
    """A card that its pods keep half busy, all together."""
    tenants = [tenant(pod, 1 / len(pods)) for pod in pods]
    tenants = [replace(each, booking=replace(each.booking, sm_ratio=0.5 / len(pods))) for each in tenants]
    made = card(f"GPU-{index}", *tenants, **facts)
    readings = [*made.readings[:2], Reading("power_watts", watts)]
    return replace(made, gpu=replace(made.gpu, index=index), readings=(*readings, *made.readings[3:]))


async def test_a_pod_on_two_cards_has_their_sum_also_where_only_one_of_them_changes() -> None:
    history = kept_by_card()
    for number in range(4):
        still, other = gpu(0, "ml/train"), gpu(1, "ml/train", watts=300.0 + number)
        await history.keep(at(number, still, other))
    found = await history.pod_hour("ml/train")
    assert found is not None
    times = [START + 5 * number for number in range(4)]
    assert found["busy"] == [(each, 1.0) for each in times]
    assert found["memory"] == [(each, 2 * 39 * GIB) for each in times]
    assert [value for _, value in found["watts"]] == sorted({value for _, value in found["watts"]})


async def test_a_pod_that_has_ended_still_has_its_hour_and_one_that_never_was_has_none() -> None:
    history = kept_by_card()
    await history.keep(at(0, gpu(0, "ml/train")))
    await history.keep(at(1, gpu(0, "ml/other")))
    found = await history.pod_hour("ml/train")
    assert found is not None and [when for when, _ in found["busy"]] == [START]
    assert await history.pod_hour("ml/nobody") is None
    assert await history.pod_hour("") is None


async def test_what_is_not_known_of_a_pod_is_absent() -> None:
    history = kept_by_card()
    unseen = tenant("ml/train", idle=None)
    unseen = replace(unseen, booking=replace(unseen.booking, memory_bytes=None))
    await history.keep(at(0, card("GPU-0", unseen, fault=None)))
    found = await history.pod_hour("ml/train")
    assert found is not None and found["memory"] == []


async def test_an_hour_of_a_pod_has_as_many_points_as_can_be_drawn_the_newest_among_them() -> None:
    history = kept_by_card()
    last = 2 * MOST_POINTS - 1
    for number in range(last + 1):
        await history.keep(at(number, gpu(0, "ml/train")))
    found = await history.pod_hour("ml/train")
    assert found is not None
    assert len(found["busy"]) <= MOST_POINTS
    assert found["busy"][-1][0] == START + 5 * last


async def test_pods_that_were_there_more_than_an_hour_ago_are_forgotten() -> None:
    history = kept_by_card()
    await history.keep(at(0, gpu(0, "ml/train")))
    size = history.size
    await history.keep(replace(at(1, gpu(0, "ml/next")), taken_at=START + 2 * HOUR))
    assert await history.pod_hour("ml/train") is None
    assert history.size <= size + 100


def raising(made: Card, code: int, seconds: float, number: int) -> Card:
    """The card at a moment, with an XID so many seconds after the start."""
    if 5 * number < seconds:
        return made
    xid = Reading("xid_last_code", float(code)), Reading("xid_last_timestamp_seconds", START + seconds)
    return replace(made, readings=(*made.readings, *xid))


async def test_an_xid_is_a_pods_if_it_was_on_the_card_right_before_or_after() -> None:
    history = kept_by_card()
    for number in range(10):
        train = ("ml/train",) if number < 2 else ()
        await history.keep(
            at(number, raising(gpu(0, *train), 79, 7, number), raising(gpu(1, "ml/other"), 31, 23, number))
        )
    ended, other = await history.pod_hour("ml/train"), await history.pod_hour("ml/other")
    assert ended is not None and other is not None
    assert [(mark["code"], mark["at"]) for mark in ended["xids"]] == [(79, START + 7)]
    assert [mark["code"] for mark in other["xids"]] == [31]
    of_card = await history.gpu_hour("GPU-0")
    assert of_card is not None and [mark["code"] for mark in of_card["xids"]] == [79]


async def test_the_pods_of_a_gpu_add_up_to_its_busy_time() -> None:
    history = kept_by_card()
    await history.keep(at(0, gpu(0, "ml/a", "ml/b")))
    await history.keep(at(1, gpu(0, "ml/b")))
    found = await history.gpu_hour("GPU-0")
    assert found is not None
    pods = {pod["pod"]: dict(pod["busy_ratio"]) for pod in found["pods"]}
    assert pods == {"ml/a": {START: 0.25}, "ml/b": {START: 0.25, START + 5: 0.5}}
    for when, busy in found["series"]["busy_ratio"]:
        assert sum(pod.get(when, 0.0) for pod in pods.values()) == pytest.approx(busy)


async def test_of_many_pods_the_busiest_are_named_and_the_others_added_up() -> None:
    history = kept_by_card()
    names = [f"ml/pod-{number:02}" for number in range(MOST_PODS + 5)]
    await history.keep(at(0, gpu(0, *names)))
    found = await history.gpu_hour("GPU-0")
    assert found is not None
    assert [pod["pod"] for pod in found["pods"]] == names[:MOST_PODS]
    assert found["other_busy_ratio"][0][1] == pytest.approx(0.5 * 5 / len(names))


async def test_of_a_cluster_only_the_nodes_of_the_pod_are_decoded() -> None:
    decoded: list[str] = []

    def decode(text: bytes) -> ClusterNode:
        node = BY_NODE.decode_part(text)
        decoded.append(node.name)
        return node

    history = InMemoryHistory(replace(BY_NODE, decode_part=decode), step=30.0, whole_every=4, most_bytes=4 << 20)
    for number in range(3):
        nodes = [fresh(f"gpu-{name}", gpu(0, f"ml/{name}", watts=300.0 + number)) for name in "abc"]
        await history.keep(cluster(number, *nodes))
    found = await history.pod_hour("ml/b")
    assert found is not None and len(found["busy"]) == 3
    assert decoded == ["gpu-b"] * 3


async def test_what_is_everywhere_is_not_added_up() -> None:
    """A program outside Kubernetes may have the same name on a thousand nodes."""
    history = InMemoryHistory(BY_NODE, step=30.0, whole_every=4, most_bytes=16 << 20)
    outside = replace(tenant("x/y"), container=ContainerRef("", "", "python", ""))
    nodes = [fresh(f"gpu-{number:03}", card(f"GPU-{number}", outside)) for number in range(MOST_PLACES + 1)]
    await history.keep(cluster(0, *nodes))
    with pytest.raises(UserError, match=f"python was in {MOST_PLACES + 1} places"):
        await history.pod_hour("python")


def cluster(number: int, *nodes: ClusterNode) -> Cluster:
    made = Cluster(taken_at=START + 30 * number, version="1", interval_seconds=15.0, nodes=nodes)
    return conclude_cluster(made, SETTINGS)
