"""Days and weeks on the timeline, where a cluster has a store."""

import pytest

from podgpu.model import Moment
from tests.browser.axe import serious
from tests.browser.chromium import Browser
from tests.browser.stage import Script, cluster_of, demo_document, staged

pytestmark = pytest.mark.asyncio(loop_scope="package")

POINTED = """(slide => { const box = slide.getBoundingClientRect();
    slide.dispatchEvent(new PointerEvent('pointermove', { clientX: box.left + box.width * PART })) })
    (document.querySelector('.slide'))"""


async def told(*, has_store: bool) -> Script:
    document = await demo_document()
    script = Script(cluster_of(document, 2) | {"has_store": has_store})
    end = document["taken_at"]
    script.moments = [
        Moment(at=end - 600.0 * number, gpus=16, seen_gpus=16, busy_gpus=4.0, namespaces={"lab": 3.0})
        for number in range(1000, -1, -1)
    ]
    return script


async def test_a_store_gives_longer_timelines_and_no_moments_of_them(chromium: Browser) -> None:
    script = await told(has_store=True)
    async with staged(script) as url, chromium.page() as page:
        await page.open(url)
        await page.expect_texts(".spans a", ["1 h", "24 h", "7 d"])
        await page.run("document.querySelectorAll('.spans a')[2].click()")
        await page.until("location.search === '?span=week'")
        await page.until("performance.getEntriesByType('resource').some(e => e.name.endsWith('?hours=168'))")
        await page.expect("document.querySelector('.timeline').getAttribute('aria-label')", "The last 7 d")
        await page.until("document.querySelectorAll('.axis span').length > 2")
        await page.until(
            f"({POINTED.replace('PART', '0.5')}, document.querySelector('.said').textContent"
            ".includes('the page can show moments since'))"
        )
        assert "at=" not in await page.run("location.search")
        await page.run("document.querySelector('.spans a').click()")
        await page.until("location.search === ''")
        assert page.complaints == []


TIMERS = """(() => {
    const [set, clear] = [setTimeout, clearTimeout];
    window.polls = new Set();
    window.answers = 0;
    window.setTimeout = (call, ms) => {
        const id = set(call, ms);
        if (String(call).includes('this.#ask()')) { polls.add(id); answers += 1; }
        return id;
    };
    window.clearTimeout = (id) => { polls.delete(id); clear(id); };
})()"""


async def test_a_span_that_is_left_and_chosen_again_is_asked_for_in_one_rhythm(chromium: Browser) -> None:
    async with staged(await told(has_store=True)) as url, chromium.page() as page:
        await page.open(url)
        await page.expect_texts(".spans a", ["1 h", "24 h", "7 d"])
        await page.until("document.querySelectorAll('.axis span').length")
        await page.run(TIMERS)
        await page.run("[1, 2, 1].forEach(at => document.querySelectorAll('.spans a')[at].click())")
        await page.until("answers >= 2")
        await page.expect("polls.size", 1)


async def test_without_a_store_the_timeline_is_an_hour(chromium: Browser) -> None:
    async with staged(await told(has_store=False)) as url, chromium.page() as page:
        await page.open(f"{url}?span=week")
        await page.until("document.querySelectorAll('.hour path').length")
        assert await page.run("document.querySelector('.spans').hidden")
        assert not [name for name in page.requests if "hours=" in name]
        assert page.complaints == []


async def test_axe_finds_nothing_serious_in_the_choice_of_spans(chromium: Browser) -> None:
    async with staged(await told(has_store=True)) as url, chromium.page(390, 900) as page:
        await page.open(f"{url}?span=day")
        await page.until("document.querySelector('.spans a[aria-current]') !== null")
        assert await serious(page) == []
