"""GPUs that are given to virtual machines have no row, and are named below the list."""

import json
from pathlib import Path

import pytest

from tests.browser.chromium import Browser
from tests.browser.stage import Document, Script, staged

pytestmark = pytest.mark.asyncio(loop_scope="package")

SNAPSHOT = (Path(__file__).parents[1] / "scenarios/passthrough/expected/snapshot.json").read_text(encoding="utf-8")
GUESTS = "Given to virtual machines, and not measured: H200 00000000:3B:00.0, 00000000:86:00.0."


async def test_guests_are_counted_and_named(chromium: Browser) -> None:
    document: Document = json.loads(SNAPSHOT)
    async with staged(Script(document)) as url, chromium.page() as page:
        await page.open(url)
        await page.expect_text(".tiles", "2 given to VMs")
        await page.expect_text(".sheet .empty", GUESTS)
        await page.open(f"{url}?view=workloads")
        await page.expect("document.querySelector('.sheet .empty').hidden", True)


async def test_a_node_that_has_given_away_all_its_gpus_says_so(chromium: Browser) -> None:
    document: Document = json.loads(SNAPSHOT) | {"cards": []}
    async with staged(Script(document)) as url, chromium.page() as page:
        await page.open(url)
        await page.expect_text(".sheet .empty", f"Every GPU is given away. {GUESTS}")
