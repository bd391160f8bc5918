"""Dark nodes on the page: they keep their place, and no number of what is wrong is cut."""

from typing import Any

import pytest

from tests.browser.chromium import Browser
from tests.browser.stage import Script, cluster_of, demo_document, staged
from tests.browser.test_page import has_alert, tile

pytestmark = pytest.mark.asyncio(loop_scope="package")


def dark_cluster(document: dict[str, Any]) -> dict[str, Any]:
    """Four nodes: one is stale, and one has never answered."""
    found = cluster_of(document, 4)
    found["nodes"][1] |= {"state": "stale", "reason": "timeout", "detail": "Look at the agent's log."}
    found["nodes"][2] = {
        "name": "gpu-node-003",
        "state": "failed",
        "reason": "refused",
        "detail": "Is it running?",
    }
    return found


async def test_a_cluster_a_stale_node_and_a_silent_one(chromium: Browser) -> None:
    async with staged(Script(dark_cluster(await demo_document()))) as url, chromium.page() as page:
        await page.open(url)
        await page.expect(tile("GPUs"), "24")
        await page.until(
            has_alert("2 of 4 nodes are dark, with 8 GPUs", "gpu-node-002, gpu-node-003", "Is it running?")
        )
        await page.expect_text("#state", "2 of 4 nodes live, 2 dark")
        assert await page.run("document.querySelector('.live').className") == "live away", "red, and not live"
        await page.until("document.querySelector('.fleet .title p').textContent.includes('8 dark (crossed)')")


async def test_what_shows_the_dark_nodes_leads_to_them(chromium: Browser) -> None:
    async with staged(Script(dark_cluster(await demo_document()))) as url, chromium.page() as page:
        await page.open(url)
        await page.until(has_alert("nodes are dark"))
        await page.run("document.querySelector('.alert a').click()")
        await page.expect_texts(".item.work .who a", ["gpu-node-002", "gpu-node-003"])
        await page.expect_texts(".item.work .who .tag", ["dark", "dark"])
        await page.open(f"{url}?node=gpu-node-003")
        await page.expect_text(".gpu .notice", "dark · nothing is known of its GPUs · Is it running?")


# Text with a digit that is wider or higher than the room it has.
CLIPPED = """[...document.querySelectorAll('.tile dt, .tile dd, .status, .alert strong, .alert .text, .fleet .title p')]
  .filter((one) => /[0-9]/.test(one.textContent)
    && (one.scrollWidth > one.clientWidth + 1 || one.scrollHeight > one.clientHeight + 1)
    && ['hidden', 'clip'].includes(getComputedStyle(one).overflowX) && one.clientWidth)
  .map((one) => one.textContent)"""


@pytest.mark.parametrize("width", [360, 768, 1024, 1366, 1920])
async def test_no_number_of_what_is_dark_or_wrong_is_cut(chromium: Browser, width: int) -> None:
    async with staged(Script(dark_cluster(await demo_document()))) as url, chromium.page(width, 768) as page:
        await page.open(url)
        await page.until(has_alert("nodes are dark"))
        assert await page.run(CLIPPED) == []
