"""A moment of three days ago from a real Prometheus, against the snapshot that its agent had then."""

import time
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest
from msgspec.structs import replace

from podgpu.cluster.store.client import Store
from podgpu.cluster.store.moment import StoreMoments
from podgpu.cluster.store.options import StoreOptions
from podgpu.model import Snapshot
from podgpu.views import json
from podgpu.views.exposition import Format, render
from podgpu.views.native import families
from tests.browser.stage import demo_document
from tests.e2e import prometheus
from tests.e2e.stores import keeping
from tests.tree import SETTINGS, judged

pytestmark = pytest.mark.skipif(prometheus.PROGRAM is None, reason="prometheus is not installed")

SCRAPES, EVERY = 20, 15


def scraped(snapshot: Snapshot, until: int) -> Iterator[str]:
    """The pages of an agent, each with the time of its scrape."""
    for number in range(SCRAPES):
        at = until - EVERY * (SCRAPES - 1 - number)
        page = render(families(replace(snapshot, taken_at=float(at)), {}), Format.TEXT).decode()
        for line in page.splitlines():
            if not line.startswith("#"):
                name, _, value = line.rpartition(" ")
                labels = name.removesuffix("}") + "," if name.endswith("}") else name + "{"
                yield f'{labels}job="podgpu",instance="10.0.0.1:19400"}} {value} {at}000'


async def test_a_moment_of_days_ago_has_the_pods_and_the_numbers_of_then(tmp_path: Path) -> None:
    snapshot = judged(json.decode(msgspec.json.encode(await demo_document())))
    then = int(time.time()) - 3 * 86_400
    with keeping("prometheus", list(scraped(snapshot, then)), tmp_path) as url:
        moments = StoreMoments(Store(StoreOptions(url=url)), SETTINGS, name="prod", interval=15.0)
        found, nothing = await moments.at(then + 5.0), await moments.at(then - 86_400.0)
        await moments.close()
    assert nothing is None
    assert found is not None
    [node] = found.nodes
    assert (node.name, node.state, node.origin) == (snapshot.node, "fresh", "store")
    assert node.snapshot is not None and found.insight is not None and snapshot.insight is not None
    assert _pods(node.snapshot) == _pods(snapshot)
    assert [card.use and card.use.ratio for card in node.snapshot.cards] == pytest.approx(
        [card.use and card.use.ratio for card in snapshot.cards], abs=0.001
    )
    assert found.insight.sums.allocated_gpus == pytest.approx(snapshot.insight.sums.allocated_gpus)


def _pods(snapshot: Snapshot) -> dict[str, list[tuple[str, float | None]]]:
    """Who was on each card, and how busy each kept it."""
    return {
        card.gpu.uuid: sorted(
            (tenant.container.pod, round(tenant.use.ratio, 3) if tenant.use and tenant.use.ratio is not None else None)
            for tenant in card.tenants
        )
        for card in snapshot.cards
    }
