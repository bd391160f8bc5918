"""Series that others write into a store: nobody marks their end, and their labels may have been renamed."""

import asyncio
import re
import time
from collections.abc import Iterator

import pytest
from msgspec.structs import replace

from podgpu.cluster.store.client import Store
from podgpu.cluster.store.nodes import StoreReading, read_nodes
from podgpu.cluster.store.options import StoreOptions
from podgpu.model import Fault, Snapshot
from podgpu.views.exposition import Format, render
from podgpu.views.native import families
from tests.e2e import victoria
from tests.views.quirks import NOTEBOOK, SNAPSHOT

pytestmark = pytest.mark.skipif(victoria.PROGRAM is None, reason="victoria-metrics is not installed")


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with victoria.victoria(tmp_path_factory.mktemp("written")) as url:
        yield url


def page(snapshot: Snapshot, at: float, **labels: str) -> str:
    """The agent's page as somebody scraped it at that time, with labels of the scrape."""
    taken = replace(snapshot, taken_at=at)
    text = render(families(taken, {}), Format.TEXT).decode()
    more = "".join(f',{name}="{value}"' for name, value in labels.items())
    lines = [line for line in text.splitlines() if not line.startswith("#")]
    return "\n".join(re.sub(r"\} (\S+)$", rf"{more}}} \1 {round(at * 1000)}", line) for line in lines) + "\n"


def reading(url: str, selector: str, now: float) -> StoreReading:
    async def ask() -> StoreReading:
        store = Store(StoreOptions(url=url, selector=selector))
        try:
            return await read_nodes(store, now)
        finally:
            await store.close()

    return asyncio.run(ask())


def tenants(snapshot: Snapshot) -> set[tuple[str, str]]:
    """Leave out names that no text format can carry."""
    refs = (tenant.container for card in snapshot.cards for tenant in card.tenants)
    return {(ref.namespace, ref.pod) for ref in refs if ref.pod.isprintable()}


def without(snapshot: Snapshot, pod: str) -> Snapshot:
    return replace(
        snapshot,
        cards=tuple(
            replace(card, tenants=tuple(tenant for tenant in card.tenants if tenant.container.pod != pod), ended=())
            for card in snapshot.cards
        ),
    )


def test_who_has_left_is_not_shown_as_if_he_were_there(store: str) -> None:
    now = time.time()
    pod = NOTEBOOK.pod
    victoria.keep(store, page(SNAPSHOT, now - 40, job="left"))
    victoria.keep(store, page(SNAPSHOT, now - 25, job="left"))
    victoria.keep(store, page(without(SNAPSHOT, pod), now - 10, job="left"))
    found = reading(store, 'job="left"', now).nodes[SNAPSHOT.node]
    assert pod in {name for _, name in tenants(SNAPSHOT)}
    assert tenants(found.snapshot) == tenants(without(SNAPSHOT, pod))
    assert found.snapshot.interval_seconds == pytest.approx(15, abs=0.01)


def test_a_node_that_is_no_longer_scraped_is_stale(store: str) -> None:
    now = time.time()
    victoria.keep(store, page(SNAPSHOT, now - 100, job="old"))
    victoria.keep(store, page(SNAPSHOT, now - 85, job="old"))
    found = reading(store, 'job="old"', now)
    assert not found.nodes
    assert found.faults == {SNAPSHOT.node: Fault(reason="not_scraped", detail="its last scrape was 85 s ago")}


def test_of_two_servers_that_scrape_a_node_the_newest_counts_alone(store: str) -> None:
    now = time.time()
    victoria.keep(store, page(SNAPSHOT, now - 9, job="twice", replica="a"))
    victoria.keep(store, page(SNAPSHOT, now - 2, job="twice", replica="b"))
    found = reading(store, 'job="twice"', now)
    [node] = found.nodes.values()
    assert node.scraped_at == pytest.approx(now - 2, abs=1)
    assert tenants(node.snapshot) == tenants(SNAPSHOT)
    assert len(node.snapshot.cards) == len(SNAPSHOT.cards)


def test_two_nodes_of_one_name_are_not_mixed_up(store: str) -> None:
    now = time.time()
    for cluster in ("east", "west"):
        victoria.keep(store, page(SNAPSHOT, now - 2, job="both", cluster=cluster))
    found = reading(store, 'job="both"', now)
    assert found.nodes == {}
    [notice] = found.notices
    assert notice.reason == "store_ambiguous"
    assert "east, west" in notice.detail
    assert SNAPSHOT.node in reading(store, 'job="both",cluster="east"', now).nodes


def test_labels_that_a_scrape_renamed_are_given_back(store: str) -> None:
    """Without `honor_labels` everything would seem to be the agent's own pod's."""
    now = time.time()
    renamed = re.sub(r'([{,])(namespace|pod|container)="', r'\1exported_\2="', page(SNAPSHOT, now - 2))
    added = re.sub(r"\} ", ',namespace="gpu",pod="podgpu-x",container="agent",job="renamed"} ', renamed)
    victoria.keep(store, added)
    found = reading(store, 'job="renamed"', now).nodes[SNAPSHOT.node]
    assert tenants(found.snapshot) == tenants(SNAPSHOT)
