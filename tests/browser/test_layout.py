"""Layouts that hold: measured in a real browser, at nine widths, on paper and in forced colours."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from tests.browser.chromium import Browser, Page
from tests.browser.geometry import FAULTS, SETTLED, WIDTHS, faults
from tests.browser.stage import Document, Script, cluster_of, demo_document, staged
from tests.browser.test_bill import bill
from tests.browser.test_page import broken

pytestmark = pytest.mark.asyncio(loop_scope="package")

SHEETS = {"portrait": (718, 1047), "landscape": (1047, 718)}  # A4 with the browser's margins
HEIGHT = 720


async def crowded() -> Document:
    """Much is wrong, names are long, and cards have many tags."""
    document = broken(await demo_document())
    for card in document["cards"]:
        for tenant in card["tenants"]:
            tenant["container"]["namespace"] += "-of-a-department-with-a-long-name"
    return document


async def several_nodes() -> Document:
    document = cluster_of(await demo_document(), 3) | {"has_store": True}
    document["nodes"][1] |= {"state": "stale", "reason": "timeout", "detail": "Read the agent's log."}
    said = "0/3 nodes are available: 3 Insufficient nvidia.com/gpu."
    waits = {"namespace": "research", "name": "pretrain-next-0", "asks": {"nvidia.com/gpu": "8"}, "reason": said}
    return document | {"pending": [waits]}


@pytest.mark.parametrize("query", ["", "?sort=busy", "?view=workloads", "?view=idle", "?view=problems"])
async def test_a_nodes_views_hold_at_every_width(chromium: Browser, query: str) -> None:
    async with staged(Script(await crowded())) as url, chromium.page(1280, HEIGHT) as page:
        await page.open(url + query)
        await page.until("document.querySelector('.item') !== null")
        assert {width: found for width in WIDTHS if (found := await faults(page, width, HEIGHT))} == {}


@pytest.mark.parametrize(
    "query",
    [
        "",
        "?view=nodes",
        "?view=bill",
        "?view=pending",
        "?pod=search%2Fscore-nightly-28841-kd5vt-0",
        "?compare=GPU-0000-0,GPU-0000-5",
    ],
)
async def test_a_clusters_views_hold_at_every_width(chromium: Browser, query: str) -> None:
    script = Script(await several_nodes())
    script.bills = {"namespace": bill("namespace", "research", "search", "speech")}
    async with staged(script) as url, chromium.page(1280, HEIGHT) as page:
        await page.open(url + query)
        await page.until("document.querySelector('.item, .podpage, .bill .total, .pending tbody') !== null")
        assert {width: found for width in WIDTHS if (found := await faults(page, width, HEIGHT))} == {}


CUT = """[...document.querySelectorAll('.idler .why, .scroll')]
    .filter(e => e.scrollWidth > e.clientWidth || e.scrollHeight > e.clientHeight).map(e => e.textContent)"""


@pytest.mark.parametrize("width", [1366, 390])
@pytest.mark.parametrize("query", ["?view=idle", "?pod=search%2Fembed-5d8f7c-9hzt4"])
async def test_reasons_and_cgroups_are_shown_whole(chromium: Browser, query: str, width: int) -> None:
    async with staged(Script(await demo_document())) as url, chromium.page(width, HEIGHT) as page:
        await page.open(url + query)
        await page.until("document.querySelector('.idler .why, .scroll') !== null")
        assert await page.run(CUT) == []


@asynccontextmanager
async def on_paper(page: Page, sheet: str, scheme: str) -> AsyncIterator[None]:
    features = [{"name": "prefers-color-scheme", "value": scheme}]
    await page.send("Emulation.setEmulatedMedia", media="print", features=features)
    await page.size(*SHEETS[sheet])
    await page.until(f"innerWidth === {SHEETS[sheet][0]}")
    await page.run("dispatchEvent(new Event('beforeprint'))")
    await page.run(SETTLED)
    yield
    await page.run("dispatchEvent(new Event('afterprint'))")
    await page.send("Emulation.setEmulatedMedia", media="", features=features)


INK = "getComputedStyle(document.querySelector('#app')).color"
PAPER = "getComputedStyle(document.querySelector('.sheet')).backgroundColor"
BARS = """[...document.querySelectorAll('.gpu .tracks')].filter(e => e.checkVisibility()).map(e => {
    const segments = [...e.querySelectorAll('.seg')].map(one => one.getBoundingClientRect());
    return [e.getBoundingClientRect().right, Math.max(...segments.map(one => one.right))]})"""


@pytest.mark.parametrize("query", ["", "?view=workloads", "?view=idle"])
async def test_paper_is_light_whole_and_within_its_edges(chromium: Browser, query: str) -> None:
    async with staged(Script(await crowded())) as url, chromium.page(1280, HEIGHT) as page:
        await page.open(url + query)
        await page.until("document.querySelector('.item') !== null")
        await page.run("document.documentElement.dataset.theme = 'dark'")
        for sheet, (width, _) in SHEETS.items():
            async with on_paper(page, sheet, "dark"):
                assert await page.run(INK) == "rgb(0, 0, 0)" and await page.run(PAPER) == "rgb(255, 255, 255)"
                assert await page.run(FAULTS) == [], sheet
                bars = await page.run(BARS)
                assert [bar for bar in bars if abs(bar[0] - bar[1]) > 1 or bar[1] > width] == [], sheet


COLOURS = """new Set([...document.querySelectorAll('.gpu .seg:not(.free)')]
    .map(e => getComputedStyle(e).backgroundColor)).size"""


async def test_forced_colours_keep_the_bars(chromium: Browser) -> None:
    """A reader's own colours replace backgrounds, but not those of the segments: they are the numbers."""
    async with staged(Script(await demo_document())) as url, chromium.page() as page:
        await page.open(url)
        before = await page.run(COLOURS)
        await page.send("Emulation.setEmulatedMedia", features=[{"name": "forced-colors", "value": "active"}])
        await page.until("matchMedia('(forced-colors: active)').matches")
        assert await page.run(COLOURS) >= before > 3
        frame = "getComputedStyle(document.querySelector('.tracks')).boxShadow"
        assert await page.run(frame) != "none"
