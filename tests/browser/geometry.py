"""What is wrong with the layout of a page: rows or texts over each other, text that is cut, a page that is too wide."""

from pathlib import Path

from tests.browser.chromium import Page

WIDTHS = (320, 390, 600, 746, 768, 1024, 1280, 1440, 1920)
SETTLED = "new Promise(done => requestAnimationFrame(() => requestAnimationFrame(() => done(true))))"

FAULTS = Path(__file__).with_suffix(".js").read_text(encoding="utf-8")


async def faults(page: Page, width: int, height: int) -> list[str]:
    """Make the page that wide, and list what is wrong with its layout then."""
    await page.size(width, height)
    await page.until(f"innerWidth === {width}")
    await page.run(SETTLED)
    return list(await page.run(FAULTS))
