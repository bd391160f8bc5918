"""The idle view names who wastes what, and copies a message to the owner."""

import pytest

from podgpu.insight import InsightSettings
from podgpu.insight.idle import idle_pods
from podgpu.model import Prices
from tests.browser.chromium import Browser
from tests.browser.stage import Script, demo_document, staged

pytestmark = pytest.mark.asyncio(loop_scope="package")

PRICED = InsightSettings(idle_after=1800.0, prices=Prices(currency="EUR", gpu_hour={"*": 3.5}))
COPIED = "[...document.querySelectorAll('#app > .spoken[aria-live]')].map(one => one.textContent).join('')"


async def test_the_idle_view_names_who_wastes_what_and_copies_a_message(chromium: Browser) -> None:
    script = Script(await demo_document(), PRICED)
    waste = idle_pods(script.cluster).waste
    assert len(waste) > 1 and all("EUR an hour" in row.text for row in waste)
    async with staged(script) as url, chromium.page() as page:
        await page.open(url)
        assert await page.texts(".waste:not([hidden])") == []
        await page.run("document.querySelector('nav a[data-view=idle]').click()")
        await page.until("document.querySelector('.waste li') !== null")
        await page.expect_texts(".waste li span", [row.text for row in waste])
        await page.expect(
            "[...document.querySelectorAll('.waste button')].map(one => one.dataset.copy)",
            [row.message for row in waste],
        )
        await page.send("Emulation.setFocusEmulationEnabled", enabled=True)
        await page.run("document.querySelector('.waste button').focus()")
        await page.press("Enter", text="\r", code=13)
        await page.until(f"{COPIED} === 'Copied'")
        assert page.complaints == []
