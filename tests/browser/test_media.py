"""The page as others meet it: on paper, in forced colours, without colours, by ear, and in another time zone."""

import copy
import re
from datetime import datetime
from typing import Any
from zoneinfo import ZoneInfo

import pytest

from podgpu.numbers import MONTHS
from tests.browser.chromium import Browser, Page
from tests.browser.stage import Document, Script, cluster_of, demo_document, staged
from tests.browser.test_bill import bill
from tests.browser.test_clipped import SETTINGS, SHOWN, large
from tests.browser.test_fit import STATEMENT
from tests.browser.test_layout import on_paper
from tests.browser.test_page import broken

pytestmark = pytest.mark.asyncio(loop_scope="package")

PRINTED = "[...document.querySelectorAll('.printed')].filter(e => e.checkVisibility()).map(e => e.textContent)"
CONTROLS = """[...document.querySelectorAll('#app :is(button, select, input, nav, canvas)')]
    .filter(e => e.checkVisibility()).map(e => e.outerHTML.slice(0, 80))"""
# How far each cell of the first row is from its head, in pixels.
SHIFTS = """(() => {
  const seen = (e) => [...e.children].filter(one => one.checkVisibility());
  const edges = (e) => seen(e).map(one => one.getBoundingClientRect().left);
  const row = edges(document.querySelector('.item:is(.gpu, .work)'));
  return edges(document.querySelector('.heads')).map((left, at) => Math.round(Math.abs(left - row[at])));
})()"""
ROWS = "document.querySelectorAll('.item:is(.gpu, .work)').length"
DATED = r"\d{1,2} (" + "|".join(MONTHS) + r") \d{4} \d\d:\d\d UTC"


def stored(script: Script) -> Script:
    script.bills = {"namespace": bill("namespace", "research", "search", "speech")}
    script.fit = STATEMENT
    return script


@pytest.mark.parametrize("view", ["gpus", "idle", "bill", "fit"])
async def test_paper_has_its_date_its_columns_and_its_total_and_no_controls(chromium: Browser, view: str) -> None:
    script = stored(Script(await large(), SETTINGS))
    async with staged(script) as url, chromium.page(1366, 800) as page:
        await page.send("Emulation.setTimezoneOverride", timezoneId="UTC")
        await page.open(f"{url}?view={view}")
        await page.until(f"document.querySelector('{SHOWN}') !== null")
        async with on_paper(page, "portrait", "light"):
            head, *foot = await page.run(PRINTED)
            assert re.search(f"as of {DATED} · printed {DATED}", head)
            assert await page.run(CONTROLS) == []
            if view in ("gpus", "idle"):
                assert max(await page.run(SHIFTS)) <= 1
                number = await page.run(ROWS)
                assert foot[0].startswith(f"{number} {'GPU' if view == 'gpus' else 'row'}s in this list.")
            if view == "idle":
                assert re.search(r"In all, \d+ pods hold [\d.]+ GPUs without use, [\d,.]+ EUR so far\.", foot[0])
            if view == "bill":
                assert "total" in await page.text(".bill .total")


async def test_paper_says_how_many_rows_it_leaves_out(chromium: Browser) -> None:
    script = Script(cluster_of(await demo_document(), 230))
    async with staged(script) as url, chromium.page(1366, 800) as page:
        await page.open(url)
        async with on_paper(page, "portrait", "light"):
            shown = await page.run(ROWS)
            foot = (await page.run(PRINTED))[-1]
            assert foot == f"The first {shown:,} GPUs of 1,840: {1840 - shown} are not printed."


async def test_paper_of_a_filter_says_what_was_chosen(chromium: Browser) -> None:
    async with staged(Script(await demo_document())) as url, chromium.page(1366, 800) as page:
        await page.open(f"{url}?namespace=lab")
        async with on_paper(page, "portrait", "light"):
            assert "only namespace lab" in (await page.run(PRINTED))[0]


SIGNS = """(selector) => [...new Set([...document.querySelectorAll(selector)].filter(e => e.checkVisibility())
    .map(e => getComputedStyle(e, '::before').content))]"""


async def signs(page: Page, selector: str) -> list[str]:
    return list(await page.run(f"({SIGNS})('{selector}')"))


async def test_severity_has_a_sign_and_in_forced_colours_a_word(chromium: Browser) -> None:
    async with staged(Script(broken(await demo_document()))) as url, chromium.page(1366, 1400) as page:
        await page.open(url)
        await page.run("document.querySelector('.more')?.click()")
        await page.until("document.querySelectorAll('.alert.bad').length > 1")
        bad, warned = await signs(page, ".alert.bad strong"), await signs(page, ".alert:not(.bad, .note) strong")
        assert ["▲" in sign for sign in bad] == [True] and ["△" in sign for sign in warned] == [True]
        assert await signs(page, ".tag.bad") == bad and await signs(page, ".tag.warn") == warned
        await page.send("Emulation.setEmulatedMedia", features=[{"name": "forced-colors", "value": "active"}])
        await page.until("matchMedia('(forced-colors: active)').matches")
        assert await signs(page, ".alert.bad strong") == ['"▲ critical "']
        assert await signs(page, ".alert:not(.bad, .note) strong") == ['"△ warning "']
        assert "▲" in (await signs(page, ".tag.bad"))[0] and "△" in (await signs(page, ".tag.warn"))[0]


async def spoken(page: Page, *roles: str) -> list[str]:
    """The names that a screen reader says of what has these roles."""
    nodes: list[Any] = (await page.send("Accessibility.getFullAXTree"))["nodes"]
    return [
        node.get("name", {}).get("value", "")
        for node in nodes
        if not node.get("ignored") and node.get("role", {}).get("value") in roles
    ]


@pytest.mark.parametrize("query", ["", "?sort=busy", "?view=workloads", "?view=idle", "?gpu=GPU-0000-4"])
async def test_whatever_can_be_reached_is_called_what_it_is(chromium: Browser, query: str) -> None:
    async with staged(Script(await large(), SETTINGS)) as url, chromium.page(1024, 900) as page:
        await page.open(url + query)
        await page.until(f"document.querySelector('{SHOWN}') !== null")
        names = await spoken(page, "link", "button", "combobox", "searchbox", "slider")
        assert len(names) > 10
        assert [name for name in names if not re.search(r"[A-Za-z]", name)] == []
        if query == "":
            assert {"GPU 0", "GPU 1"} <= set(names)
        if query == "?sort=busy":
            assert any(re.fullmatch(r"GPU \d · gpu-node-\d+", name) for name in names)
        if query == "?view=workloads":
            assert [name for name in names if "…" in name] == []
        words = "\n".join(await spoken(page, "StaticText"))
        assert query.startswith("?gpu") or "critical: " in words


ZONE = "Asia/Kolkata"


async def test_times_are_those_of_the_readers_clock_which_is_named_once(chromium: Browser) -> None:
    script = Script(await demo_document())
    async with staged(script) as url, chromium.page(1366, 900) as page:
        await page.send("Emulation.setTimezoneOverride", timezoneId=ZONE)
        await page.open(f"{url}?view=idle")
        await page.expect_text("footer", "Times are local, UTC+5:30.")
        since = (await page.until("document.querySelector('.idler .since')?.textContent")).split("since ")[1]
        rows = script.cluster.insight.problems if script.cluster.insight else ()
        began = min(problem.since for problem in rows if problem.kind == "idle" and problem.since)
        at = datetime.fromtimestamp(began, ZoneInfo(ZONE))
        assert since == f"{at.day} {MONTHS[at.month - 1]} {at:%H:%M}"


def doubted(document: Document) -> Document:
    """The demo, whose fifth card has three tenants of which little is known."""
    changed = copy.deepcopy(document)
    card = changed["cards"][5]
    period = 60_000_000
    for tenant in card["tenants"]:
        band: Document = {
            "elapsed_us": period,
            "booked_us": period // 5,
            "booked_mj": 0,
            "least_us": 0,
            "most_us": period // 2,
        }
        band |= {
            "least_mj": 0,
            "most_mj": 0,
            "certainty": "bounded",
            "likely_least_us": 0,
            "likely_most_us": period // 2,
        }
        tenant["booking"]["band"] = band
    card["balance"]["band"] = band | {"booked_us": 3 * period // 5, "certainty": "exact"}
    return changed


WHISKERS = """[...document.querySelectorAll('.list .whiskers')].map(e => [...e.children].map(one => {
    const box = one.getBoundingClientRect(), bar = e.parentElement.getBoundingClientRect();
    return [box.left, box.right, box.top - bar.top, box.bottom - bar.top] })).filter(e => e.length > 1)"""


async def test_whiskers_do_not_touch_each_other(chromium: Browser) -> None:
    async with staged(Script(doubted(await demo_document()))) as url, chromium.page(1366, 1200) as page:
        await page.open(url)
        bars = await page.until(f"(found => found.some(bar => bar.length > 2) && found)({WHISKERS})")
        for bar in bars:
            for place, (left, right, top, bottom) in enumerate(bar):
                assert 0 <= top < bottom <= 20.5
                for other in bar[:place]:
                    apart = right <= other[0] or other[1] <= left or bottom <= other[2] or other[3] <= top
                    assert apart, (bar, place)
