"""No number is cut off: not by the edge of a box, an ellipsis or the page, in any view and on no width."""

import copy
from pathlib import Path

import msgspec
import pytest

from podgpu.insight import InsightSettings
from podgpu.model import Prices
from podgpu.views import json
from tests.browser.chromium import Browser, Page
from tests.browser.geometry import SETTLED
from tests.browser.stage import Document, Script, cluster_of, demo_document, staged
from tests.browser.test_bill import bill
from tests.browser.test_fit import STATEMENT
from tests.browser.test_lanes import minute
from tests.browser.test_page import broken

pytestmark = pytest.mark.asyncio(loop_scope="package")

WIDTHS = (360, 768, 1024, 1366, 1920)
HEIGHT = 1200
CLIPPED = Path(__file__).with_name("clipped.js").read_text(encoding="utf-8")
SETTINGS = InsightSettings(idle_after=1800.0, prices=Prices(currency="EUR", gpu_hour={"*H200*": 3.5}))
SHOWN = ".item, .podpage, .bill .total, .fit tbody tr"


async def large() -> Document:
    """A cluster whose numbers are long, with a dark node, lost cards and XIDs."""
    document = cluster_of(broken(await demo_document()), 12) | {"has_store": True}
    document["nodes"][1] |= {"state": "stale", "reason": "timeout", "detail": "Read the agent's log."}
    for row in document["nodes"]:
        for number, pod in enumerate(row["snapshot"]["pods"]):
            pod["labels"] = {"team": ("foundation", "search", "speech", "vision")[number % 4]}
    return document


async def clipped(page: Page, query: str) -> list[str]:
    """What is cut at some width, and at which."""
    found = []
    for width in WIDTHS:
        await page.size(width, HEIGHT)
        await page.until(f"innerWidth === {width}")
        await page.run(SETTLED)
        found += [f"{query or 'the first view'} at {width}: {text}" for text in await page.run(CLIPPED)]
    return found


@pytest.mark.parametrize(
    "query",
    [
        "",
        "?sort=busy",
        "?view=workloads",
        "?view=nodes",
        "?view=namespaces",
        "?view=teams",
        "?view=idle",
        "?view=bill",
        "?view=fit",
        "?pod=search%2Fscore-nightly-28841-kd5vt-0",
        "?gpu=GPU-0000-4",
    ],
)
async def test_no_number_of_a_cluster_is_cut(chromium: Browser, query: str) -> None:
    script = Script(await large(), SETTINGS)
    script.bills = {"namespace": bill("namespace", "research", "search", "speech")}
    script.fit = STATEMENT
    async with staged(script) as url, chromium.page(1366, HEIGHT) as page:
        await page.open(url + query)
        await page.until(f"document.querySelector('{SHOWN}') !== null")
        assert await clipped(page, query) == []


@pytest.mark.parametrize("query", ["", "?view=workloads", "?view=idle"])
async def test_no_number_of_a_node_is_cut(chromium: Browser, query: str) -> None:
    document = copy.deepcopy(broken(await demo_document()))
    async with staged(Script(document)) as url, chromium.page(1366, HEIGHT) as page:
        await page.scheme("dark")
        await page.open(url + query)
        await page.until(f"document.querySelector('{SHOWN}') !== null")
        assert await clipped(page, query) == []


async def test_no_number_of_a_shared_card_is_cut(chromium: Browser) -> None:
    snapshot, card, lanes = await minute()
    script = Script(msgspec.json.decode(json.encode(snapshot)))
    script.lanes = {card.gpu.uuid: lanes}
    query = f"?gpu={card.gpu.uuid}"
    async with staged(script) as url, chromium.page(1366, HEIGHT) as page:
        await page.open(url + query)
        await page.until("document.querySelector('.lanes') !== null")
        assert await clipped(page, query) == []


PLANTED = {
    "an ellipsis": "overflow: hidden; text-overflow: ellipsis; white-space: nowrap; width: 40px",
    "a clamp": "display: -webkit-box; -webkit-box-orient: vertical; -webkit-line-clamp: 1; overflow: clip; width: 4em",
    "a box that is too low": "overflow: clip; height: 10px; line-height: 20px",
    "the page": "position: absolute; left: calc(100vw - 20px); white-space: nowrap",
}


@pytest.mark.parametrize("style", PLANTED.values(), ids=PLANTED)
async def test_a_number_that_is_cut_is_found(chromium: Browser, style: str) -> None:
    async with staged(Script(await demo_document())) as url, chromium.page(1366, HEIGHT) as page:
        await page.open(url)
        plant = "document.querySelector('main').append(Object.assign(document.createElement('div'), "
        plant += "{ id: 'planted', textContent: '9 idle, 642.98 EUR an hour' }))"
        await page.run(f"{plant}; document.querySelector('#planted').style.cssText = '{style}'")
        await page.run(SETTLED)
        assert any("642.98 EUR" in text for text in await page.run(CLIPPED))
