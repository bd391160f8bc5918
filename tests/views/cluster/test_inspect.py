"""The tables of `kubectl inspect gpushare`, from the nodes and pods that they imply."""

import asyncio
from collections import Counter
from math import nan

from hypothesis import given
from hypothesis import strategies as st

from podgpu.cluster.allocations import allocate
from podgpu.model import (
    Booking,
    Card,
    Claim,
    Cluster,
    ClusterNode,
    ContainerRef,
    Gpu,
    Reading,
    Snapshot,
    Tenant,
)
from podgpu.views.cluster.card_memory import GIB, ClusterMemory, NodeMemory, PodMemory, allocated, cluster_memory
from podgpu.views.cluster.inspect import detail, narrow, summary, table, waiting
from tests.fakeapi.server import FakeApi
from tests.fakeapi.whole import objects_of
from tests.views.cluster.seed003 import cluster, node, pod, seed

PUBLISHED = """\
NAME          IPADDRESS     GPU0(Allocated/Total)  GPU1(Allocated/Total)  GPU2(Allocated/Total)  GPU3(Allocated/Total)  GPU4(Allocated/Total)  GPU5(Allocated/Total)  GPU6(Allocated/Total)  GPU7(Allocated/Total)  GPU Memory(GiB)
192.168.3.4   192.168.3.4   4/11                   6/11                   10/11                  0/11                   0/11                   0/11                   0/11                   0/11                   20/88
192.168.68.4  192.168.68.4  4/10                   0/10                   10/10                  9/10                   0/10                   10/10                  6/10                   6/10                   45/80
-------------------------------------------------------------------------------------------
Allocated/Total GPU Memory In Cluster:
65/168 (38%)  
"""  # noqa: E501, W291 - as it was printed


async def held(fake: FakeApi) -> ClusterMemory:
    found = allocate(await objects_of(fake))
    nodes = tuple(found.nodes.values())
    return cluster_memory(Cluster(taken_at=0.0, version="1", nodes=nodes, pending=found.pending))


async def test_the_published_table_is_reproduced_to_the_byte() -> None:
    assert summary(await held(seed())) == PUBLISHED


async def test_details_name_each_pod_under_its_card() -> None:
    """The lines are padded to their last cell, and the dashes measured by the first node's pods: as ever."""
    shown = detail(await held(seed()))
    first, second = shown.split("\nNAME:")[1:]
    assert first == (
        "       192.168.3.4\n"
        "IPADDRESS:  192.168.3.4\n"
        "\n"
        "NAME         NAMESPACE  GPU0(Allocated)  GPU1(Allocated)  GPU2(Allocated)  GPU3(Allocated)  "
        "GPU4(Allocated)  GPU5(Allocated)  GPU6(Allocated)  GPU7(Allocated)  \n"
        "app-0-0      xmcvt      4                0                0                0                "
        "0                0                0                0                \n"
        "app-0-1      xmcvt      0                6                0                0                "
        "0                0                0                0                \n"
        "app-0-2      xmcvt      0                0                10               0                "
        "0                0                0                0                \n"
        "Allocated :  20 (22%)   \n"
        "Total :      88         \n"
        f"{'-' * (3 * len('app-0-0 xmcvt 4 0 0 0 0 0 0 0 .') + 1 + 10)}\n"
    )
    assert second.endswith("\n\n\nAllocated/Total GPU Memory In Cluster:  65/168 (38%)  \n")


async def test_an_h200_in_gib_is_not_taken_for_mib() -> None:
    """More than a hundred units: the original says MiB."""
    shown = summary(await held(cluster([node("h200", 1120, 8)], [pod("a", "h200", 70, 3, of_card=140)])))
    assert "GPU Memory(GiB)" in shown
    assert "70/140" in shown
    assert "70/1120 (6%)" in shown


async def test_an_h200_in_mib_is_counted_in_mib() -> None:
    fake = cluster([node("h200", 8 * 143771, 8)], [pod("a", "h200", 20000, 7, of_card=143771)])
    shown = summary(await held(fake))
    assert "GPU Memory(MiB)" in shown
    assert "20000/143771" in shown
    assert "20000/1150168 (1%)" in shown


async def test_nodes_with_different_units_are_summed_up_in_the_smaller() -> None:
    nodes = [node("b-mib", 143771, 1), node("a-gib", 140, 1)]
    shown = summary(await held(cluster(nodes, [pod("a", "a-gib", 1, 0, of_card=140)])))
    assert [line.split()[2] for line in shown.splitlines()[1:3]] == ["1024/143360", "0/143771"]
    assert "1024/287131 (0%)" in shown


async def test_a_pod_without_a_card_is_pending() -> None:
    """The scheduler's extender was not asked: the kubelet took the pod, and no card was chosen for it."""
    nodes = [node("n1", 22, 2), node("n2", 11, 1, "10.0.0.2")]
    pods = [pod("placed", "n1", 4, 1, of_card=11), pod("lost", "n1", 3)]
    found = await held(cluster(nodes, pods))
    assert summary(found) == (
        "NAME  IPADDRESS  GPU0(Allocated/Total)  GPU1(Allocated/Total)  PENDING(Allocated)  GPU Memory(GiB)\n"
        "n1    n1         0/11                   4/11                   3                   7/22\n"
        "n2    10.0.0.2   0/11                   0/0                                        0/11\n"
        "-------------------------------------------\n"
        "Allocated/Total GPU Memory In Cluster:\n"
        "7/33 (21%)  \n"
    )
    shown = detail(found).splitlines()
    assert shown[4].split() == [
        "NAME",
        "NAMESPACE",
        "GPU0(Allocated)",
        "GPU1(Allocated)",
        "Pending(Allocated)",
    ]
    assert [line.split() for line in shown[5:7]] == [
        ["placed", "xmcvt", "0", "4", "0"],
        ["lost", "xmcvt", "0", "0", "3"],
    ]


async def test_on_a_node_with_one_card_a_pod_without_an_index_is_pending_too() -> None:
    """As in the original. The plugin gives it the only card all the same, so elsewhere it is shown there."""
    pods = [pod("placed", "n1", 4, 0, of_card=11), pod("lost", "n1", 3)]
    fake = cluster([node("n1", 11, 1)], pods)
    found = allocate(await objects_of(fake))
    snapshot = found.nodes["n1"].snapshot
    assert snapshot is not None
    assert [tenant.container.pod for tenant in snapshot.cards[0].tenants] == ["lost", "placed"]
    shown = await held(cluster([node("n1", 11, 1)], pods))
    assert summary(shown).splitlines()[:2] == [
        "NAME  IPADDRESS  GPU0(Allocated/Total)  PENDING(Allocated)  GPU Memory(GiB)",
        "n1    n1         4/11                   3                   7/11",
    ]
    assert [line.split() for line in detail(shown).splitlines()[5:7]] == [
        ["placed", "xmcvt", "4", "0"],
        ["lost", "xmcvt", "0", "3"],
    ]


NODES = st.lists(st.integers(1, 3), min_size=1, max_size=3)
PODS = st.lists(st.tuples(st.integers(0, 2), st.integers(1, 9), st.integers(-1, 2)), min_size=1, max_size=6)


@given(NODES, PODS)
def test_random_clusters_have_the_columns_of_the_original(sizes: list[int], wanted: list[tuple[int, int, int]]) -> None:
    """Its rule: what the limits ask for is on the card of the index, and pending without an index."""
    nodes = [node(f"n{number}", 11 * size, size) for number, size in enumerate(sizes)]
    pods, expected = [], [Counter[int]() for _ in sizes]
    for number, (any_place, units, any_index) in enumerate(wanted):
        place = any_place % len(sizes)
        index = min(any_index, sizes[place] - 1)
        pods.append(pod(f"p{number}", f"n{place}", units, index if index >= 0 else None, of_card=11))
        expected[place][index] += units
    shown = asyncio.run(held(cluster(nodes, pods)))
    for own, numbers in zip(shown.nodes, expected, strict=True):
        found = Counter({card.index: allocated(card.pods).size // GIB for card in own.cards if card.pods})
        found += Counter({-1: allocated(own.pending).size // GIB})
        assert found == numbers


async def test_a_pod_on_several_cards_is_listed_once() -> None:
    wide = pod("wide", "n1", 11)
    wide["metadata"]["annotations"]["scheduler.framework.gpushare.allocation"] = '{"0": {"0": 5, "1": 6}}'
    found = await held(cluster([node("n1", 22, 2)], [wide]))
    assert detail(found).splitlines()[5].split() == ["wide", "xmcvt", "5", "6"]


async def test_pods_without_a_node_are_listed_with_what_the_scheduler_says() -> None:
    lonely = pod("later", "", 20)
    lonely["metadata"]["creationTimestamp"] = "2026-11-15T10:00:00Z"
    lonely["status"] = {
        "phase": "Pending",
        "conditions": [
            {
                "type": "PodScheduled",
                "status": "False",
                "message": "0/1 nodes are available:\n1 Insufficient.",
            }
        ],
    }
    found = await held(cluster([node("n1", 11, 1)], [lonely]))
    assert found.waiting[0].since == 1794736800.0
    assert waiting(found) == (
        "\nPods that wait for a node:\n"
        "NAME   NAMESPACE  ASKS                   REASON\n"
        "later  xmcvt      aliyun.com/gpu-mem=20  0/1 nodes are available: 1 Insufficient.\n"
    )


async def test_a_narrow_terminal_gets_a_line_for_each_card() -> None:
    found = await held(cluster([node("n1", 22, 2)], [pod("a", "n1", 4, 1, of_card=11), pod("lost", "n1", 3)]))
    assert table(found, by_pod=False, width=200) == summary(found)
    assert table(found, by_pod=True, width=60) == (
        "NODE  GPU      Allocated/Total(GiB)\n"
        "n1    all      7/22\n"
        "      0        0/11\n"
        "      1        4/11\n"
        "                 4 xmcvt/a\n"
        "      pending  3\n"
        "                 3 xmcvt/lost\n"
        "Allocated/Total GPU Memory In Cluster: 7/22 (31%)\n"
    )


def tenant(name: str, *, idle: bool | None, used: int | None, given: int) -> Tenant:
    who = ContainerRef("team", name, "app", f"uid-{name}")
    claim = Claim(gpu="GPU-a", container=who, memory_limit_bytes=given * GIB)
    return Tenant(container=who, claims=(claim,), idle=idle, booking=Booking(memory_bytes=used))


def test_what_agents_measure_stands_before_what_was_given() -> None:
    """A pod that certainly has no process uses nothing. What nobody could look at is not known."""
    card = Card(
        gpu=Gpu(uuid="GPU-a", index=0),
        readings=(Reading("memory_total_bytes", 80.0 * GIB), Reading("memory_used_bytes", 10.5 * GIB)),
        tenants=(
            tenant("busy", idle=False, used=10 * GIB, given=20),
            tenant("idle", idle=True, used=None, given=20),
            tenant("unseen", idle=None, used=None, given=20),
        ),
    )
    snapshot = Snapshot(node="n", taken_at=0.0, interval_seconds=5.0, version="1", cards=(card,))
    node = ClusterNode(name="n", state="fresh", snapshot=snapshot)
    found = cluster_memory(Cluster(taken_at=0.0, version="1", nodes=(node,)))
    assert summary(found, with_use=True).splitlines()[1].split()[2] == "10.5/60/80"
    rows = [line.split() for line in detail(found, with_use=True).splitlines()[5:8]]
    assert [(row[0], row[2]) for row in rows] == [("busy", "10.0/20"), ("idle", "0.0/20"), ("unseen", "?/20")]


def test_a_pending_pod_of_unknown_size_is_no_zero() -> None:
    lost = PodMemory(namespace="team", name="lost")
    found = ClusterMemory(nodes=(NodeMemory(name="n1", pending=(lost,)),))
    assert summary(found).splitlines()[1].split() == ["n1", "unknown", "?", "?/0"]
    assert detail(found).splitlines()[5].split() == ["lost", "team", "?"]
    assert narrow(found, by_pod=False).splitlines()[2].split() == ["pending", "?"]


def test_a_reading_that_is_no_number_is_not_known() -> None:
    card = Card(gpu=Gpu(uuid="GPU-a", index=0), readings=(Reading("memory_total_bytes", nan),))
    snapshot = Snapshot(node="n", taken_at=0.0, interval_seconds=5.0, version="1", cards=(card,))
    node = ClusterNode(name="n", state="fresh", snapshot=snapshot)
    assert cluster_memory(Cluster(taken_at=0.0, version="1", nodes=(node,))).cards[0].total_bytes is None


async def test_a_size_that_is_not_known_is_no_zero() -> None:
    """Nothing says how large the cards are: the sum says that it lacks something."""
    plain = {"nvidia.com/gpu": "2"}
    bare = {"metadata": {"name": "n1", "uid": "u"}, "status": {"capacity": plain, "allocatable": plain}}
    holder = pod("a", "n1", 1)
    holder["spec"]["containers"][0]["resources"] = {"limits": {"nvidia.com/gpu": "1"}}
    lines = summary(await held(cluster([bare], [holder]))).splitlines()
    assert lines[0].split()[2] == "GPU?(Allocated/Total)"
    assert lines[1].split()[2:] == ["?/?", "?/?"]
    assert lines[-1] == "0+/0+ (?%)  "
