"""What axe-core says to every view: make test-axe."""

import msgspec
import pytest

from podgpu.insight import InsightSettings
from podgpu.model import Prices
from podgpu.views import json
from tests.browser.axe import findings
from tests.browser.chromium import Browser
from tests.browser.stage import Script, demo_document, staged
from tests.browser.test_bill import bill
from tests.browser.test_fit import STATEMENT
from tests.browser.test_fleet import cluster
from tests.browser.test_lanes import minute
from tests.browser.test_page import broken

pytestmark = pytest.mark.asyncio(loop_scope="package")

SHOWN = ".item, .podpage, .bill .total, .fit tbody tr, .pending tbody tr"
SETTINGS = InsightSettings(idle_after=1800.0, prices=Prices(currency="EUR", gpu_hour={"*H200*": 3.5}))
OF_A_CLUSTER = (
    "",
    "?sort=busy",
    "?colour=team",
    "?cells=gpu-node-001:2~gpu-node-002:3",
    "?view=workloads",
    "?view=nodes",
    "?view=namespaces",
    "?view=teams",
    "?view=idle",
    "?view=problems",
    "?view=bill",
    "?view=fit",
    "?pod=research%2Fpretrain-0-0",
    "?gpu=GPU-0000-4",
    "?node=gpu-node-002",
    "?compare=GPU-0000-4",
    "?compare=GPU-0000-4,GPU-0001-0",
    "?view=pending",
)
OF_A_NODE = ("", "?view=workloads", "?view=idle", "?pod=search%2Fscore-nightly-28841-kd5vt")


@pytest.mark.parametrize("width", [390, 1440])
@pytest.mark.parametrize("scheme", ["light", "dark"])
async def test_axe_finds_nothing_in_any_view(chromium: Browser, scheme: str, width: int) -> None:
    found = {}
    waits = {"namespace": "lab", "name": "next-0", "asks": {"nvidia.com/gpu": "8"}}
    fleet = Script(await cluster() | {"has_store": True, "pending": [waits]}, SETTINGS)
    fleet.fit = STATEMENT
    fleet.bills = {"namespace": bill("namespace", "research", "search")}
    node = Script(broken(await demo_document()))
    snapshot, card, lanes = await minute()
    shared = Script(msgspec.json.decode(json.encode(snapshot)))
    shared.lanes = {card.gpu.uuid: lanes}
    shared.past = shared.state
    of_lanes = (f"?gpu={card.gpu.uuid}", f"?at={snapshot.taken_at}")
    for script, queries in ((fleet, OF_A_CLUSTER), (node, OF_A_NODE), (shared, of_lanes)):
        async with staged(script) as url, chromium.page(width, 900) as page:
            await page.scheme(scheme)
            for query in queries:
                await page.open(url + query)
                await page.until(f"document.querySelector('{SHOWN}') !== null")
                await page.run("document.querySelectorAll('details').forEach(e => { e.open = true })")
                await page.frames()
                if said := await findings(page):
                    found[query] = said
    assert found == {}
