"""What the driver's log of context switches has to say, in every view; without it, nothing."""

import pytest
from msgspec.structs import replace

from podgpu.cli._top.evidence import evidence
from podgpu.insight.rows import gpus_of
from podgpu.insight.tenants import cards_of
from podgpu.model import Card, Cluster, ClusterNode, Snapshot
from tests.views.concluded import html, table, why
from tests.views.quirks import BUSY, LLAMA, SNAPSHOT, band
from tests.views.test_bookings import node, of

LEAST, MOST = 13_200_000, 14_400_000
PROVEN = replace(band(0.23, 0.22, 0.24), least_us=LEAST, most_us=MOST, certainty="bounded", rests_on="")


def logged(switching: float = 0.26) -> Card:
    """The card with its first tenant on it for 12.5 s, and so much of its time lost between two."""
    assert BUSY.balance
    first, *others = BUSY.tenants
    booking = replace(first.booking, method="resident", resident_us=12_500_000, band=PROVEN)
    return replace(
        BUSY,
        tenants=(replace(first, booking=booking), *others),
        balance=replace(BUSY.balance, switches=3100, switching_us=260_000, switching_ratio=switching),
    )


def reported(snapshot: Snapshot) -> str:
    text = why(snapshot, LLAMA.namespace, LLAMA.pod, 80)
    assert text
    return " ".join(text.split())


def test_metrics() -> None:
    snapshot = node(logged())
    assert of(snapshot, "container_resident_seconds_total", ("pod", LLAMA.pod)) == [12.5]
    assert of(snapshot, "gpu_context_switches_total") == [3100]
    assert of(snapshot, "gpu_switching_seconds_total") == [0.26]


def test_without_a_log_there_are_no_series() -> None:
    for family in (
        "container_resident_seconds_total",
        "gpu_context_switches_total",
        "gpu_switching_seconds_total",
    ):
        assert of(node(BUSY), family) == []


@pytest.mark.parametrize(("ratio", "shows"), [(0.26, True), (0.01, False)])
def test_the_screen_says_what_time_slicing_costs_where_it_costs_much(ratio: float, shows: bool) -> None:
    snapshot = node(logged(ratio))
    assert ("switching 26%" in table(snapshot, 120, colour=False)) is shows
    assert ("spends 26% of its time on context switches" in html(snapshot, 0.0).decode()) is shows
    assert ("26% of the GPU's time goes into switching" in reported(snapshot)) is shows


def test_top_says_it_below_the_card() -> None:
    cluster_node = ClusterNode(name="node", state="fresh", snapshot=node(logged()))
    cluster = Cluster(taken_at=0.0, version="1", nodes=(cluster_node,))
    (entry,) = gpus_of(cards_of(cluster))
    text = " ".join(part for row in evidence("gpus", entry) for part, _ in row)
    assert "26% of its time goes into switching between tenants: use MPS or MIG" in text


def test_why_explains_the_method() -> None:
    text = reported(node(logged()))
    assert "Busy 23% (22–24) of the GPU's time" in text
    assert "on the GPU 12.500000 s" in text
    assert "Method resident. The driver's log of context switches shows which context was on the GPU" in text


def test_nothing_is_said_without_a_log() -> None:
    assert "switching" not in table(SNAPSHOT, 120, colour=False)
    assert "switching" not in reported(SNAPSHOT)
