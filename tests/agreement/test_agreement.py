"""Every surface says the same of one moment. `python -m tests.agreement` prints each fact."""

from collections.abc import AsyncIterator

import pytest
import pytest_asyncio
from msgspec.structs import replace

from podgpu.history.in_memory import InMemoryHistory
from podgpu.history.partitions import BY_NODE
from podgpu.insight.tenants import cards_of, placements
from podgpu.model import Cluster, ClusterNode
from tests.agreement import surfaces
from tests.agreement.cases import held_still, names
from tests.agreement.compare import lines_of
from tests.agreement.facts import UNUSED, compared
from tests.browser.chromium import PROGRAM, Browser, browser

pytestmark = [
    pytest.mark.skipif(PROGRAM is None, reason="needs chromium"),
    pytest.mark.asyncio(loop_scope="module"),
]


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def chromium() -> AsyncIterator[Browser]:
    async with browser() as started:
        yield started


async def still(name: str) -> Cluster:
    (cluster,) = [cluster async for _, cluster in held_still([name])]
    return cluster


@pytest.mark.parametrize("name", names())
async def test_all_surfaces_agree(chromium: Browser, name: str) -> None:
    lines = await lines_of(await still(name), chromium)
    assert [str(line) for line in lines if line.differs] == []
    assert max(len(line.said) for line in lines) >= 8


@pytest.mark.parametrize("name", names())
async def test_every_surface_says_of_a_past_moment_what_it_said_then(name: str) -> None:
    cluster = await still(name)
    history: InMemoryHistory[Cluster, ClusterNode] = InMemoryHistory(
        BY_NODE, step=30.0, whole_every=30, most_bytes=64 << 20
    )
    for ago in (120.0, 60.0, 0.0):
        await history.keep(replace(cluster, taken_at=cluster.taken_at - ago, name=f"{ago} s ago"))
    kept = history.at(cluster.taken_at - 60.0)
    assert kept is not None
    past = kept.whole()
    assert past.name == "60.0 s ago"
    assert surfaces.all_of(replace(past, taken_at=cluster.taken_at, name=cluster.name)) == surfaces.all_of(cluster)


async def test_a_surface_that_lies_is_found() -> None:
    """One card's holder is called busy on the node alone, and the cluster's totals still count it as idle."""
    cluster = await still("demo")
    place = next(
        place
        for place in placements(cards_of(cluster))
        if place.tenant.holding and place.tenant.holding.state == "idle"
    )
    (node,) = cluster.nodes
    assert node.snapshot and place.tenant.holding
    liar = replace(place.tenant, holding=replace(place.tenant.holding, state="working", since=None))
    card = place.on.card
    lying = replace(card, tenants=tuple(liar if tenant is place.tenant else tenant for tenant in card.tenants))
    cards = tuple(lying if shown is card else shown for shown in node.snapshot.cards)
    told = replace(cluster, nodes=(replace(node, snapshot=replace(node.snapshot, cards=cards)),))
    assert not [line.fact for line in compared(surfaces.all_of(cluster)) if line.differs]
    assert UNUSED in [line.fact for line in compared(surfaces.all_of(told)) if line.differs]
