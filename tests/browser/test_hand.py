"""Nothing moves under the hand: focus, selection, scroll and place stay while numbers change."""

import asyncio
import copy
import json
from typing import Any

import pytest

from tests.browser.chromium import Browser
from tests.browser.geometry import SETTLED
from tests.browser.stage import Document, Script, cluster_of, demo_document, staged

pytestmark = pytest.mark.asyncio(loop_scope="package")

POD = "?pod=research%2Fpretrain-0"
ESCAPE = 27


def later(document: Document, number: int) -> Document:
    """The same a while later, with other numbers everywhere."""
    newer = copy.deepcopy(document)
    newer["taken_at"] += 5 * number
    for card in newer["cards"]:
        for tenant in card["tenants"]:
            tenant["booking"]["memory_bytes"] = (10 + number + card["gpu"]["index"]) * 2**30
    return newer


def told(number: int) -> str:
    """The page has drawn that document."""
    return f"[...document.querySelectorAll('.facts .value')].some(e => e.textContent === '{10 + number}.0 GiB')"


def throttled(document: Document, card: int, value: float) -> Document:
    changed = copy.deepcopy(document)
    for item in changed["cards"][card]["readings"]:
        if item["metric"] == "clock_event" and item["labels"]["reason"] == "hardware_thermal":
            item["value"] = value
    return changed


async def test_a_pods_page_keeps_focus_selection_and_scroll(chromium: Browser) -> None:
    document = await demo_document()
    script = Script(document)
    # So narrow that the table of processes is wider than the page.
    async with staged(script) as url, chromium.page(240, 500) as page:
        await page.open(url + POD)
        await page.until("document.querySelector('.facts') !== null")
        await page.run("document.querySelector('.scroll').focus()")
        await page.run("document.querySelector('.scroll').scrollLeft = 40; scrollTo(0, 120)")
        await page.run("getSelection().selectAllChildren(document.querySelector('.processes .how'))")
        chosen = await page.run("String(getSelection())")
        scrolled = await page.run("document.querySelector('.scroll').scrollLeft")
        for number in range(1, 4):
            script.publish(later(document, number))
            await page.until(told(number))
        assert await page.run("document.activeElement.className") == "scroll"
        assert await page.run("String(getSelection())") == chosen != ""
        assert await page.run("document.querySelector('.scroll').scrollLeft") == scrolled > 0
        assert await page.run("scrollY") == 120


TOP = "document.querySelector('.sheet').getBoundingClientRect().top"


async def test_problems_that_come_and_go_leave_the_list_in_its_place(chromium: Browser) -> None:
    document = await demo_document()
    quiet, hot = throttled(document, 1, 0.0), throttled(throttled(document, 1, 1.0), 3, 1.0)
    script = Script(hot)
    async with staged(script) as url, chromium.page() as page:
        await page.open(url)
        await page.run("document.querySelector('.alert:last-child a').focus()")
        before = await page.run(TOP)
        asked = await page.run("document.activeElement.getAttribute('aria-label')")
        for state in (quiet, hot, quiet):
            script.publish(state | {"taken_at": document["taken_at"] + 5})
            titles = [problem["title"] for problem in script.state["insight"]["problems"]]
            shown = "[...document.querySelectorAll('.alert:not(.gone) strong')].map(e => e.textContent).join()"
            await page.until(f"{shown} === '{','.join(titles)}'")
            assert await page.run(TOP) == before
            assert await page.run("document.activeElement.getAttribute('aria-label')") == asked


async def test_a_lost_card_is_never_folded_and_shown_in_full_colour(chromium: Browser) -> None:
    document = copy.deepcopy(await demo_document())
    fault = {"reason": "refused", "call": "List", "detail": "", "seconds": 90.0}
    document["parts"] = [{**part, "up": False, "fault": fault} for part in document["parts"]]
    for index in (5, 6):
        document["cards"][index] |= {"fault": {**fault, "reason": "lost"}, "readings": []}
    script = Script(document)
    lost = [problem for problem in script.state["insight"]["problems"] if problem["kind"] == "gpu_unreadable"]
    async with staged(script) as url, chromium.page() as page:
        await page.open(url)
        assert lost
        shown = "[...document.querySelectorAll('.alert .what')].map(e => e.textContent).join(' ')"
        for problem in lost:
            await page.until(f"{shown}.includes({json.dumps(problem['text'])})")
        await page.open(url + f"?q={document['cards'][2]['gpu']['uuid']}")
        await page.expect("document.querySelectorAll('.gpu .seg[href]').length", 1)
        await page.expect("document.querySelector('.dimmed')", None)


async def test_a_holder_whose_memory_is_not_known_is_drawn(chromium: Browser) -> None:
    document = copy.deepcopy(await demo_document())
    for card in document["cards"]:
        card["readings"] = []
        for tenant in card["tenants"]:
            tenant["booking"].pop("memory_bytes", None)
    async with staged(Script(document)) as url, chromium.page() as page:
        await page.open(url)
        drawn = "[...document.querySelectorAll('.memory .unseen')].map(e => [e.textContent, e.offsetWidth])"
        holders = [tenant for card in document["cards"] for tenant in card["tenants"]]
        found: list[Any] = await page.until(
            f"(found => found.length === {len(holders)} && found.every(e => e[1] > 3) && found)({drawn})"
        )
        assert "pretrain-0" in [name for name, _ in found]


async def test_letters_stay_in_a_field_and_escape_leaves_it(chromium: Browser) -> None:
    async with staged(Script(await demo_document())) as url, chromium.page() as page:
        await page.open(url)
        for field in ("select[aria-label=Namespace]", "input[type=search]"):
            await page.run(f"document.querySelector('{field}').focus()")
            await page.press("w", text="w")
            await page.press("Escape", code=ESCAPE)
            await page.until("document.activeElement === document.body")
        assert "view=" not in await page.run("location.search")


async def test_back_returns_to_the_place_and_the_focus(chromium: Browser) -> None:
    async with staged(Script(cluster_of(await demo_document(), 12))) as url, chromium.page() as page:
        await page.open(url)
        await page.run("scrollTo(0, 3000)")
        wanted = ".find(e => e.getBoundingClientRect().top > 300)"
        await page.until(f"Boolean([...document.querySelectorAll('.gpu .seg[href]')]{wanted})")
        await page.run(
            "(e => { e.focus({ preventScroll: true }); e.click() })"
            f"([...document.querySelectorAll('.gpu .seg[href]')]{wanted})"
        )
        await page.until("document.querySelector('.podpage h2') === document.activeElement")
        pod = await page.text(".podpage h2")
        await page.run("history.back()")
        await page.until("document.activeElement.classList.contains('seg')")
        assert pod in await page.run("document.activeElement.getAttribute('aria-label')")
        await page.expect("scrollY", 3000)


async def test_a_focused_row_stays_while_the_order_changes(chromium: Browser) -> None:
    document = await demo_document()
    script = Script(document)
    async with staged(script) as url, chromium.page(1280, 500) as page:
        await page.open(url + "?sort=memory")
        await page.run("document.querySelector('.gpu .seg[href]').focus()")
        asked = await page.run("document.activeElement.href")
        newer = copy.deepcopy(document)
        for card in newer["cards"]:
            card["balance"]["memory_bytes"] = (card["gpu"]["index"] + 1) * 2**30
        script.publish(newer)
        await page.until("document.querySelector('.gpu .memory .label').textContent.startsWith('8.0 of')")
        await page.run("scrollTo(0, document.documentElement.scrollHeight)")
        await page.run(SETTLED)
        assert await page.run("document.activeElement.href") == asked


async def test_old_numbers_are_dimmed_and_a_recording_is_not_live(chromium: Browser) -> None:
    document = await demo_document() | {"interval_seconds": 0.2}
    async with staged(Script(document)) as url, chromium.page() as page:
        await page.open(url)
        await page.until("document.querySelector('#state').textContent.startsWith('stale')")
        await page.until("getComputedStyle(document.querySelector('.list')).opacity < 1")
    async with staged(Script(document | {"replayed": True})) as url, chromium.page() as page:
        await page.open(url)
        assert "live" not in await page.text("#state")
        assert await page.run("document.querySelector('.live.on')") is None


async def test_loading_says_what_it_waits_for(chromium: Browser) -> None:
    class Silent(Script):
        """Answers, but has nothing to say until it is asked to."""

        ready = asyncio.Event()

        async def document(self, state: Document) -> Any:
            await self.ready.wait()
            return await super().document(state)

    script = Silent(await demo_document())
    async with staged(script) as url, chromium.page() as page:
        await page.send("Page.navigate", url=url)
        await page.until("document.querySelector('.loading')?.textContent.includes('Waiting for the first numbers')")
        assert (
            await page.run("[...document.querySelectorAll('select, nav')].filter(e => e.checkVisibility()).length") == 0
        )
        script.ready.set()
        await page.until("document.querySelector('.gpu') !== null")
        await page.expect("document.querySelector('.loading')", None)
