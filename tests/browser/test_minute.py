"""A minute of a node in a few seconds: problems and pods come and go, and nothing moves under the hand."""

import copy

import pytest

from tests.browser.chromium import Browser
from tests.browser.stage import Document, Script, demo_document, staged
from tests.browser.steadiness import MOST_SHIFT, heap_mib, shift, watch
from tests.browser.test_hand import throttled

pytestmark = pytest.mark.asyncio(loop_scope="package")

FIRST = 3  # with everything that can be wrong
DOCUMENTS = 24
MOST_GROWTH_MIB = 4.0
HELD = "document.activeElement.getAttribute('aria-label').split(',')[0]"


def second(document: Document, number: int) -> Document:
    """Card 0 is as busy as the number; a card gets hot every other time, and a pod leaves card 4 every third."""
    changed = throttled(copy.deepcopy(document), 3, float(number % 2))
    changed["taken_at"] += number
    card = changed["cards"][0]
    card["balance"]["busy_ratio"] = card["tenants"][0]["booking"]["sm_ratio"] = number / 100
    if number % 3 == 0:
        tenants = changed["cards"][4]["tenants"]
        tenants.remove(max(tenants, key=lambda tenant: tenant["booking"].get("memory_bytes", 0)))
    return changed


async def test_a_minute_shifts_nothing_and_keeps_the_focus(chromium: Browser) -> None:
    document = await demo_document()
    script = Script(second(document, FIRST))
    async with staged(script) as url, chromium.page() as page:
        await watch(page)
        await page.open(url)
        await page.run("document.querySelectorAll('.gpu')[4].querySelector('.memory .seg[href]').focus()")
        held, before = await page.run(HELD), await heap_mib(page)
        for number in range(FIRST + 1, DOCUMENTS):
            script.publish(second(document, number))
            await page.until(f"document.querySelector('.gpu .busy .label').textContent === '{number}%'")
            assert await page.run(HELD) == held
        worst, _, moved = await shift(page)
        assert worst <= MOST_SHIFT, moved
        assert await heap_mib(page) - before < MOST_GROWTH_MIB
        assert await page.run("blurs") == 0
        assert page.complaints == []
