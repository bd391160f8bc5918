"""Nodes go dark in every way: all surfaces say the same of it, and none says 0 for what nobody knows."""

import json as plain_json
from collections.abc import AsyncIterator

import pytest
import pytest_asyncio
from msgspec.structs import replace

from podgpu.history.in_memory import InMemoryHistory
from podgpu.history.partitions import BY_NODE
from podgpu.model import Cluster, ClusterNode
from podgpu.numbers import UNKNOWN, duration
from podgpu.views import exposition
from podgpu.views.cluster import json as cluster_json
from podgpu.views.cluster import metrics
from podgpu.views.json import rows_document
from tests.agreement import browser as in_browser
from tests.agreement import rig, surfaces
from tests.agreement.compare import lines_of
from tests.agreement.facts import DARK, compared, of_node
from tests.agreement.series import samples
from tests.browser.chromium import PROGRAM, Browser, browser

pytestmark = [
    pytest.mark.skipif(PROGRAM is None, reason="needs chromium"),
    pytest.mark.asyncio(loop_scope="module"),
]
HALF = rig.SIZE // 2
# How many are dark at the end of each play.
NUMBERS = {"none": 0, "none ever answered": rig.SIZE, "one of them cut off": 1}
ALL_DARK = [play for play in rig.PLAYS if play.startswith(("dark: all", "dark: none ever"))]
# What only a node that answers can know.
OF_NOW = ("busy_gpus", "unused_gpus", "unused_pods", "free_gpus", "free_whole_gpus", "power_watts", "memory_used_bytes")
SERIES_OF_NOW = ("busy_gpus", "idle_gpus", "used_gpus", "free_gpus", "faulty_gpus", "power_watts", "memory_used_bytes")


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def chromium() -> AsyncIterator[Browser]:
    async with browser() as started:
        yield started


@pytest.mark.parametrize("play", rig.PLAYS)
async def test_all_surfaces_agree_on_what_is_dark(chromium: Browser, play: str) -> None:
    cluster = await rig.played(play)
    lines = await lines_of(cluster, chromium)
    assert [str(line) for line in lines if line.differs] == []
    (dark,) = [line for line in lines if line.fact == DARK]
    what = play.removeprefix("dark: ")
    number = NUMBERS.get(what, rig.SIZE if what.startswith("all") else HALF)
    assert set(dark.said.values()) == {f"{number:,} of {rig.SIZE:,}"}
    assert len(dark.said) >= 4, "of the document, the metrics, the page with and without scripts, top and doctor"


@pytest.mark.parametrize("play", ALL_DARK)
async def test_nothing_says_0_for_what_nobody_knows(chromium: Browser, play: str) -> None:
    cluster = await rig.played(play)
    document = plain_json.loads(cluster_json.encode(cluster))
    assert not document["insight"]["sums"].keys() & set(OF_NOW)
    for node in document["nodes"]:
        assert node["dark"] and not node.get("insight", {}).get("sums", {}).keys() & set(OF_NOW)
    for by in ("nodes", "gpus", "pods"):
        for row in plain_json.loads(rows_document(cluster, by))["rows"]:
            assert not row.keys() & {"unused_gpus", "idle_pods", "busy_gpus", "power_watts", "temperature_celsius"}
            assert row["state"] == "dark"
    families = [family for node in cluster.nodes for family in metrics.of_node(node)]
    named = {name for family in families for name, _, _ in samples(exposition.lines(family))}
    assert not named & {f"podgpu_cluster_{name}" for name in SERIES_OF_NOW}
    for name, about in (await in_browser.tiles(chromium, cluster)).items():
        if name not in ("GPUs", "Allocated"):  # these were heard, and say so
            assert about[0] == UNKNOWN, name


@pytest.mark.parametrize("play", ALL_DARK[:1])
async def test_what_was_wrong_before_stays_with_its_age(play: str) -> None:
    cluster = await rig.played(play)
    assert cluster.insight
    kept = {problem.title: problem for problem in cluster.insight.problems}
    assert kept["Dark"].severity == "critical"
    for title in ("Lost", "XID 79", "Idle"):
        age = cluster.taken_at - (kept[title].last_seen or 0.0)
        assert age >= rig.LONG
        assert f"Last seen {duration(age)} ago: its node is dark." in kept[title].text


@pytest.mark.parametrize("play", rig.PLAYS)
async def test_of_a_past_moment_every_surface_says_what_it_said_then(play: str) -> None:
    cluster = await rig.played(play)
    history: InMemoryHistory[Cluster, ClusterNode] = InMemoryHistory(
        BY_NODE, step=30.0, whole_every=30, most_bytes=64 << 20
    )
    for ago in (120.0, 60.0, 0.0):
        await history.keep(replace(cluster, taken_at=cluster.taken_at - ago))
    past = history.at(cluster.taken_at - 60.0)
    assert past is not None
    assert surfaces.all_of(replace(past.whole(), taken_at=cluster.taken_at)) == surfaces.all_of(cluster)


async def test_a_surface_that_calls_a_dark_node_live_is_found() -> None:
    cluster = await rig.played("dark: half stopped")
    first, *others = cluster.nodes
    lying = replace(cluster, nodes=(replace(first, dark=None), *others))
    assert not [line.fact for line in compared(surfaces.all_of(cluster)) if line.differs]
    assert [line.fact for line in compared(surfaces.all_of(lying)) if line.differs] == [of_node(first.name)]
