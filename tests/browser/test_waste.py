"""The page names who wastes what, without a click, and copies a message to the owner."""

import pytest

from podgpu.insight import InsightSettings
from podgpu.insight.idle import idle_pods
from podgpu.model import Prices
from tests.browser.chromium import Browser
from tests.browser.stage import Script, demo_document, staged

pytestmark = pytest.mark.asyncio(loop_scope="package")

PRICED = InsightSettings(idle_after=1800.0, prices=Prices(currency="EUR", gpu_hour={"*": 3.5}))
ROWS = "[...document.querySelectorAll('.waste tbody tr')]"
COPIED = "[...document.querySelectorAll('#app > .spoken[aria-live]')].map(one => one.textContent).join('')"


async def test_the_first_screen_names_who_wastes_what_and_copies_a_message(chromium: Browser) -> None:
    script = Script(await demo_document(), PRICED)
    waste = idle_pods(script.cluster).waste
    assert len(waste) > 1 and all("EUR an hour" in row.text for row in waste)
    async with staged(script) as url, chromium.page() as page:
        for query in ("", "?view=idle"):
            await page.open(url + query)
            await page.expect(f"{ROWS}.map(one => one.title)", [row.text for row in waste])
            await page.expect(f"{ROWS}.map(one => one.querySelector('th a').textContent)", [row.name for row in waste])
            await page.expect(
                f"{ROWS}.map(one => one.querySelector('button').dataset.copy)", [row.message for row in waste]
            )
        await page.send("Emulation.setFocusEmulationEnabled", enabled=True)
        await page.run("document.querySelector('.waste button').focus()")
        await page.press("Enter", text="\r", code=13)
        await page.until(f"{COPIED} === 'Copied'")
        assert page.complaints == []
