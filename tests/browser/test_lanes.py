"""The lanes of a shared card, in a real browser: they say of a minute what the page says of it."""

import msgspec
import pytest

from podgpu import numbers
from podgpu.model import Card, Lanes, Snapshot
from podgpu.views import json
from tests.browser.axe import serious
from tests.browser.chromium import Browser, Page
from tests.browser.stage import Script, cluster_of, staged
from tests.sources.simulator.clocked_agent import cycles

pytestmark = pytest.mark.asyncio(loop_scope="package")

SHARED = 4  # the demo's card with a log of context switches
ROWS = """[...document.querySelectorAll('.lanes tbody tr')].map(row => [
    row.querySelector('th').innerText.trim(), row.querySelector('.value').textContent])"""
# A tenant's box on the same page, by what is written there as its busy time.
BUSY = """Object.fromEntries([...document.querySelectorAll('.gpupage .box:has(h3 a)')].map(box => [
    box.querySelector('h3 a').textContent,
    [...box.querySelectorAll('.facts tr')].find(row => row.children[0].textContent === 'Busy')
        .children[1].textContent]))"""


def point_at(part: float) -> str:
    """A pointer over that part of the lanes."""
    return (
        "(table => { const box = table.querySelector('svg').getBoundingClientRect();"
        f" const clientX = box.left + {part} * box.width;"
        " table.dispatchEvent(new PointerEvent('pointermove', { clientX })) })"
        "(document.querySelector('.lanes table'))"
    )


_minute: list[tuple[Snapshot, Lanes]] = []


async def minute() -> tuple[Snapshot, Card, Lanes]:
    """The demo after its first full minute; the same each time."""
    if not _minute:
        async for agent in cycles(5.0, 70.0):
            found = agent.lanes(agent.snapshot.cards[SHARED].gpu.uuid)
        assert found is not None and found.is_whole
        _minute.append((agent.snapshot, found))
    snapshot, lanes = _minute[0]
    return snapshot, snapshot.cards[SHARED], lanes


async def opened(page: Page, url: str, card: Card) -> None:
    await page.open(f"{url}?gpu={card.gpu.uuid}")
    await page.until("document.querySelector('.lanes') !== null")


async def test_lanes_say_of_the_minute_what_the_page_says(chromium: Browser) -> None:
    snapshot, card, lanes = await minute()
    script = Script(msgspec.json.decode(json.encode(snapshot)))
    script.lanes = {card.gpu.uuid: lanes}
    async with staged(script) as url, chromium.page() as page:
        await opened(page, url, card)
        *tenants, (last, cost) = await page.run(ROWS)
        said = {pod: text.split(" ")[0] for pod, text in (await page.run(BUSY)).items()}
        assert dict(tenants) == said and len(tenants) == len(card.tenants) > 1
        ratio = sum(lanes.switching_us) / lanes.logged_us
        assert (last, cost) == ("Switching between them", numbers.percent(ratio))
        rate = numbers.integer(round(lanes.switches * 1e6 / lanes.logged_us))
        await page.expect_text(".lanes", f"{rate} context switches a second took {cost} of the time")
        await page.expect_text(".lanes", "in the last full minute", "of the columns")
        assert page.complaints == []


async def test_axe_finds_nothing_serious_in_lanes(chromium: Browser) -> None:
    snapshot, card, lanes = await minute()
    script = Script(msgspec.json.decode(json.encode(snapshot)))
    script.lanes = {card.gpu.uuid: lanes}
    async with staged(script) as url, chromium.page(390, 900) as page:
        await opened(page, url, card)
        assert await serious(page) == []


async def test_pointing_at_a_lane_shows_that_moment(chromium: Browser) -> None:
    snapshot, card, lanes = await minute()
    script = Script(msgspec.json.decode(json.encode(snapshot)))
    script.lanes = {card.gpu.uuid: lanes}
    column = 100
    async with staged(script) as url, chromium.page() as page:
        await opened(page, url, card)
        await page.run(point_at((column + 0.5) / len(lanes.seen_us)))
        wanted = [numbers.percent(lane.busy_us[column] / lanes.step_us) for lane in lanes.lanes]
        await page.expect_texts(".lanes .value", [*wanted, numbers.percent(lanes.switching_us[column] / lanes.step_us)])
        script.publish(script.state | {"taken_at": snapshot.taken_at + 5})
        await page.expect_text(".lanes .when", "At ")
        await page.run(point_at(-1))
        whole = [numbers.percent(sum(lane.busy_us) / lanes.elapsed_us) for lane in lanes.lanes]
        await page.expect_texts(".lanes tr:not(:last-child) .value", whole)
        assert page.complaints == []


async def test_a_card_of_the_past_and_one_without_a_log_have_no_lanes(chromium: Browser) -> None:
    snapshot, card, lanes = await minute()
    document = msgspec.json.decode(json.encode(snapshot))
    script = Script(document)
    script.lanes, script.past = {card.gpu.uuid: lanes}, document
    async with staged(script) as url, chromium.page() as page:
        await page.open(f"{url}?gpu={card.gpu.uuid}&at={snapshot.taken_at:.0f}")
        await page.until("document.querySelector('#state').textContent.startsWith('paused at ')")
        await page.until("document.querySelector('.gpupage .chart') !== null")
        assert await page.texts(".lanes") == []
        await page.open(f"{url}?gpu={snapshot.cards[0].gpu.uuid}")
        await page.until("document.querySelector('.gpupage .chart') !== null")
        assert await page.texts(".lanes") == []
        assert page.complaints == []


async def test_the_page_of_a_cluster_says_where_lanes_are(chromium: Browser) -> None:
    snapshot, card, _ = await minute()
    script = Script(cluster_of(msgspec.json.decode(json.encode(snapshot)), 2))
    async with staged(script) as url, chromium.page() as page:
        await page.open(f"{url}?gpu=GPU-0001-{card.gpu.index}")
        await page.expect_text(".gpupage", "this GPU's page of the agent on gpu-node-002")
        await page.open(f"{url}?gpu=GPU-0001-0")
        await page.expect_text(".gpupage", "The last hour")
        assert "of the agent on" not in await page.text(".gpupage")
