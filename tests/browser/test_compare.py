"""Two GPUs or pods side by side, in a real browser."""

import copy
from urllib.parse import quote

import pytest

from tests.browser.axe import serious
from tests.browser.chromium import Browser, Page
from tests.browser.stage import Script, cluster_of, demo_document, staged

pytestmark = pytest.mark.asyncio(loop_scope="package")

# The first of several rows of one name counts.
ROWS = """Object.fromEntries([...document.querySelectorAll('.pair tbody tr:not(.topic)')].reverse().map(row => [
  row.cells[0].textContent, [...row.cells].slice(1).map(cell => cell.textContent)]))"""


async def click(page: Page, selector: str) -> None:
    await page.until(f"Boolean(document.querySelector({selector!r}))")
    await page.run(f"document.querySelector({selector!r}).click()")


async def test_two_gpus_are_compared_in_three_clicks_from_the_list(chromium: Browser) -> None:
    document = await demo_document()
    first, second = (document["cards"][place]["gpu"]["uuid"] for place in (0, 5))
    async with staged(Script(document)) as url, chromium.page() as page:
        await page.open(url)
        await click(page, f".list a.number[href*='{first}']")
        await click(page, ".gpupage .commands a.button")
        await page.expect_text(".choosing", "GPU 0", "with another")
        await click(page, f".list a.number[href*='{second}']")
        await page.until("document.querySelector('.pair') !== null")
        await page.expect("new URLSearchParams(location.search).get('compare')", f"{first},{second}")
        found = await page.run(ROWS)
        assert found["GPU"] == ["≠ differs", "0", "5"]
        assert found["Model"] == ["", "H200", "H200"]
        assert "Tensor cores" in found
        await page.run("history.back()")
        await page.expect_text(".choosing", "GPU 0")
        await click(page, ".choosing a")
        await page.expect("location.search", "")
        assert page.complaints == []


async def test_two_pods_are_compared_by_the_same_facts(chromium: Browser) -> None:
    async with staged(Script(await demo_document())) as url, chromium.page() as page:
        await page.open(f"{url}?compare={quote('research/pretrain-0,lab/notebook-5', safe='')}")
        await page.until("document.querySelector('.pair') !== null")
        found = await page.run(ROWS)
        assert found["Workload"][1:] == ["Job pretrain", "Pod notebook-5"]
        assert found["State"][0] == "≠ differs"
        await page.expect_texts(".pair thead a", ["research/pretrain-0", "lab/notebook-5"])
        await page.press("Escape", code=27)
        await page.until("document.querySelector('.list .gpu') !== null")
        await page.expect("location.search", "")


async def test_what_is_not_there_is_said(chromium: Browser) -> None:
    document = await demo_document()
    async with staged(Script(document)) as url, chromium.page() as page:
        await page.open(f"{url}?compare=GPU-gone,{document['cards'][0]['gpu']['uuid']}")
        await page.expect_texts(".pair thead a", ["GPU-gone", "gpu-node-1 GPU 0 · H200"])
        assert (await page.run(ROWS))["Model"] == ["≠ differs", "not reported", "H200"]


@pytest.mark.parametrize(("scheme", "width"), [("light", 1366), ("dark", 360)])
async def test_the_comparison_fits_and_axe_finds_nothing(chromium: Browser, scheme: str, width: int) -> None:
    document = cluster_of(copy.deepcopy(await demo_document()), 2)
    async with staged(Script(document)) as url, chromium.page(width, 900) as page:
        await page.scheme(scheme)
        await page.open(f"{url}?compare=GPU-0000-0,GPU-0001-5")
        await page.until("document.querySelector('.pair') !== null")
        await page.until(f"document.documentElement.scrollWidth <= {width}")
        assert await serious(page) == []
