"""What a mouse reaches, a finger and the keyboard reach too."""

import pytest

from tests.browser.chromium import Browser, Page
from tests.browser.stage import Script, demo_document, staged
from tests.browser.test_timeline import SHOWN, memory, place_of, served

pytestmark = pytest.mark.asyncio(loop_scope="package")

TIP = "document.querySelector('.tip:not([hidden])')?.textContent ?? ''"
ENTER = 13


async def centre(page: Page, selector: str) -> tuple[float, float]:
    x, y = await page.run(
        "(box => [box.x + box.width / 2, box.y + box.height / 2])"
        f"(document.querySelector('{selector}').getBoundingClientRect())"
    )
    return float(x), float(y)


async def touch(page: Page, kind: str, *points: tuple[float, float]) -> None:
    await page.send("Input.dispatchTouchEvent", type=kind, touchPoints=[{"x": x, "y": y} for x, y in points])


async def tap(page: Page, selector: str) -> None:
    await touch(page, "touchStart", await centre(page, selector))
    await touch(page, "touchEnd")


async def with_fingers(page: Page) -> None:
    await page.send("Emulation.setTouchEmulationEnabled", enabled=True)


async def test_a_tap_names_a_segment_and_the_name_stays(chromium: Browser) -> None:
    async with staged(Script(await demo_document())) as url, chromium.page() as page:
        await with_fingers(page)
        await page.open(url)
        wanted = await page.run("document.querySelector('.list .busy .seg').dataset.tip")
        await tap(page, ".list .busy .seg")
        await page.expect(TIP, wanted)
        await tap(page, "h1")
        await page.expect(TIP, "")
        assert page.complaints == []


async def test_advice_that_is_cut_is_shown_by_a_tap_and_by_a_key(chromium: Browser) -> None:
    height = "document.querySelector('.alert:is(.cut, .open) .what').offsetHeight"
    async with staged(Script(await demo_document())) as url, chromium.page(800, 700) as page:
        await with_fingers(page)
        await page.open(url)
        await page.until("document.querySelector('.alert.cut .unfold') !== null")
        folded = await page.run(height)
        await tap(page, ".alert.cut .unfold")
        await page.until(f"{height} > {folded}")
        await page.expect("document.querySelector('.alert.open .unfold').getAttribute('aria-expanded')", "true")
        await page.run("document.querySelector('.alert.open .unfold').focus()")
        await page.press("Enter", text="\r", code=ENTER)
        await page.expect(height, folded)
        assert await page.run("document.activeElement.className") == "unfold"
        assert page.complaints == []


async def test_a_finger_drags_the_timeline(chromium: Browser) -> None:
    async with served() as (url, hour, _), chromium.page() as page:
        await with_fingers(page)
        await page.open(url)
        await touch(page, "touchStart", await place_of(page, hour[8].taken_at + 60))
        await page.until(f"{SHOWN}.startsWith('{memory(8)}')")
        await touch(page, "touchMove", await place_of(page, hour[3].taken_at + 60))
        await page.until(f"{SHOWN}.startsWith('{memory(3)}')")
        await touch(page, "touchEnd")
        await page.expect_text(".paused", "paused at ", "Back to live")
        assert page.complaints == []
