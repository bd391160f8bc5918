"""The first screen, on a laptop and a phone: what is wrong, who wastes, who uses what, and where the list begins."""

from typing import Any

import pytest

from podgpu import numbers
from podgpu.insight import InsightSettings
from podgpu.model import Prices
from podgpu.views.format import TOTALS
from tests.browser.chromium import Browser, Page
from tests.browser.geometry import SETTLED
from tests.browser.stage import Document, Script, cluster_of, demo_document, staged
from tests.browser.test_fleet import PIXELS

pytestmark = pytest.mark.asyncio(loop_scope="package")

PRICED = InsightSettings(idle_after=1800.0, prices=Prices(currency="EUR", gpu_hour={"*": 3.5}))
LAPTOP, PHONE = (1366, 768), (360, 740)
KEPT = frozenset({"power_watts", "memory_total_bytes", "power_limit_watts", "xid_last_code"})
QUESTIONS = {"wrong": "What is wrong", "waste": "Who wastes", "use": "Who uses what"}
_HUGE: list[Script] = []


def troubled(document: Document, every: int) -> Document:
    """A lost card and an XID now and then, a dark node, and teams."""
    for number, row in enumerate(document["nodes"]):
        snapshot = row["snapshot"]
        for place, pod in enumerate(snapshot["pods"]):
            pod["labels"] = {"team": ("research", "search", "speech")[place % 3]}
        if number % every == 5:
            lost = {"reason": "lost", "call": "", "detail": "", "seconds": 240.0}
            snapshot["cards"][2] |= {"fault": lost, "readings": []}
        if number % every == 7:
            snapshot["cards"][1]["readings"] += [{"metric": "xid_last_code", "value": 79.0}]
    document["nodes"][3] |= {"state": "stale", "reason": "timeout", "detail": "Read the agent's log."}
    return document


async def several(nodes: int = 96) -> Script:
    return Script(troubled(cluster_of(await demo_document() | {"demo": False}, nodes), 24), PRICED)


async def huge() -> Script:
    """A thousand nodes with 8,000 GPUs, of which little more is told than what the page shows of them."""
    if not _HUGE:
        document = await demo_document() | {"demo": False}
        for card in document["cards"]:
            card["readings"] = [one for one in card["readings"] if one["metric"] in KEPT and not one.get("labels")]
            for tenant in card["tenants"]:
                tenant["processes"] = []
        _HUGE.append(Script(troubled(cluster_of(document, 1000), 250), PRICED))
    return _HUGE[0]


async def node() -> Script:
    return Script(await demo_document(), PRICED)


SCRIPTS = {"node": node, "96 nodes": several, "1,000 nodes": huge}


def bottom(selector: str) -> str:
    return f"document.querySelector('{selector}').getBoundingClientRect().bottom"


ROW = ".list .gpu"


async def drawn(page: Page, url: str) -> None:
    await page.open(url)
    await page.until(
        f"document.querySelector('{ROW}') !== null && document.querySelector('.use .headline').textContent"
    )


@pytest.mark.parametrize("size", [LAPTOP, PHONE])
@pytest.mark.parametrize("what", SCRIPTS)
async def test_three_answers_are_on_the_first_screen(chromium: Browser, what: str, size: tuple[int, int]) -> None:
    """So is the first row of the list on a laptop; on a phone the list begins where the first screen ends."""
    script = await SCRIPTS[what]()
    answers = script.state["insight"]["answers"]
    async with staged(script) as url, chromium.page(*size) as page:
        await drawn(page, url)
        assert await page.run("scrollY") == 0
        for name, question in QUESTIONS.items():
            assert await page.text(f".{name} h2") == question
            await page.expect_texts(f".{name} .headline", [answers[name]])
            assert await page.run(bottom(f".{name} .headline")) <= size[1], name
            assert await page.run(f"document.querySelector('.{name}').checkVisibility()")
        if size == LAPTOP:
            assert await page.run(bottom(ROW)) <= size[1]
        else:
            assert await page.run("document.querySelector('.list').getBoundingClientRect().top") < 1.25 * size[1]
        assert await page.run("document.documentElement.scrollWidth") <= size[0]
        assert page.complaints == []


async def test_on_a_phone_an_answer_unfolds_and_the_choice_is_kept(chromium: Browser) -> None:
    is_open = "document.querySelector('.waste details').open"
    async with staged(await several()) as url, chromium.page(*PHONE) as page:
        await drawn(page, url)
        assert await page.run(is_open) is False
        await page.run("document.querySelector('.waste summary').click()")
        await page.until(is_open)
        await drawn(page, url)
        await page.until(is_open)
        await page.run("document.querySelector('.waste summary').click()")
        await page.run("localStorage.clear()")


async def test_who_wastes_names_the_teams_with_their_money(chromium: Browser) -> None:
    script = await several()
    rows = script.state["insight"]["waste"]
    assert len(rows) >= 3 and rows[0]["by"] == "team"
    cells = "row => [...row.children].slice(0, 3).map(e => e.textContent)"
    shown = f"[...document.querySelectorAll('.waste tbody tr')].map({cells})"
    async with staged(script) as url, chromium.page(*LAPTOP) as page:
        await drawn(page, url)
        wanted = [
            [f"{row['name']} {row['by']}", numbers.gpus(row["gpus"]), numbers.money(row["cost_per_hour"], "EUR")]
            for row in rows[:4]
        ]
        await page.expect(shown, wanted)
        await page.run("document.querySelector('.waste tbody a').click()")
        await page.until(f"location.search.includes('team={rows[0]['name']}') && location.search.includes('view=idle')")
        await page.until("document.querySelector('.idler') !== null")


async def test_use_is_the_legend_and_its_names_filter(chromium: Browser) -> None:
    script = await several()
    first, *_ = groups = script.state["insight"]["namespaces"]
    colour = "getComputedStyle({}).backgroundColor"
    swatch = colour.format("document.querySelector('.use tbody .swatch')")
    async with staged(script) as url, chromium.page(*LAPTOP) as page:
        await drawn(page, url)
        await page.expect_texts(".use tbody th", [group["name"] for group in groups[:5]])
        await page.expect_texts(
            ".use tbody td:nth-child(2)", [gpus_of(group, "allocated_gpus") for group in groups[:5]]
        )
        await page.expect_texts(".use tbody td:nth-child(3)", [gpus_of(group, "busy_gpus") for group in groups[:5]])
        await page.expect_texts(".use .rest", [f"and {len(groups) - 5} more"])
        await page.run("document.querySelector('.use tbody a').click()")
        await page.until(f"location.search === '?namespace={first['name']}'")
        segment = ".list .memory .seg[href]:not(.dimmed):not(.idle)"
        await page.until(f"document.querySelector('{segment}') !== null")
        label = await page.run(f"document.querySelector('{segment}').getAttribute('aria-label')")
        assert label.startswith(first["name"])
        assert await page.run(swatch) == await page.run(colour.format(f"document.querySelector('{segment}')"))
        await page.run("document.querySelector('.use tbody a[aria-current]').click()")
        await page.until("location.search === ''")


def gpus_of(group: Any, name: str) -> str:
    return numbers.gpu_number(group["sums"].get(name)) if name in group["sums"] else "not known"


@pytest.mark.parametrize("what", ["96 nodes", "node"])
async def test_many_alike_are_a_link_to_all_of_them(chromium: Browser, what: str) -> None:
    script = await SCRIPTS[what]()
    found = [problem for problem in script.state["insight"]["problems"] if problem["more"]]
    assert found
    async with staged(script) as url, chromium.page(*LAPTOP) as page:
        for problem in found:
            await drawn(page, url)
            await page.run("document.querySelector('.wrong .more:not([hidden])')?.click()")
            group = f"problem={problem['kind']}.{problem['severity']}"
            link = f"document.querySelector('.alert .text a[href*=\"{group}\"]')"
            await page.until(f"{link} !== null")
            assert await page.run(f"{link}.textContent") == f"And {numbers.integer(problem['more'])} more like it."
            await page.run(f"{link}.click()")
            await page.until(f"location.search.includes('{group}')")
            await page.until("document.querySelector('.problem') !== null")
            listed = "document.querySelector('.problem').getAttribute('aria-setsize')"
            await page.expect(f"Number({listed})", 1 + problem["more"])
            assert await page.run(f"{bottom('.list .problem')} <= innerHeight")
        assert page.complaints == []


LISTS = {
    "GPUs": "",
    "Allocated": "?view=workloads",
    "Truly busy": "?sort=busy",
    "Held, not used": "?view=idle",
    "Free": "?state=room",
    "Power": "?sort=power",
}


async def test_every_total_leads_to_what_it_sums_and_says_how(chromium: Browser) -> None:
    async with staged(await several()) as url, chromium.page(*LAPTOP) as page:
        for name, query in LISTS.items():
            await drawn(page, url + "?node=gpu-node-002")
            tile = f"[...document.querySelectorAll('.tile')].find(e => e.querySelector('dt').textContent === '{name}')"
            assert await page.run(f"{tile}.querySelector('a').title") == TOTALS[name]
            assert TOTALS[name] in await page.run(f"{tile}.querySelector('button').getAttribute('aria-label')")
            await page.run(f"{tile}.querySelector('a').click()")
            await page.until(f"location.search === '{query}'")
        await page.run("document.querySelector('.tile button').focus()")
        await page.press("Shift")
        await page.run(
            "document.querySelector('.tile button').dispatchEvent(new Event('pointerover', {bubbles: true}))"
        )
        await page.expect("document.querySelector('#app > .tip').textContent", TOTALS["GPUs"])


async def test_the_gpus_with_room_are_those_that_the_total_sums(chromium: Browser) -> None:
    script = await several()
    cards = [card for row in script.state["nodes"] if row["state"] == "fresh" for card in row["snapshot"]["cards"]]
    free = [
        1 - sum(tenant["booking"].get("allocated_ratio", 0) for tenant in card["tenants"])
        for card in cards
        if "fault" not in card
    ]
    assert sum(free) == pytest.approx(script.state["insight"]["sums"]["free_gpus"])
    async with staged(script) as url, chromium.page(*LAPTOP) as page:
        await drawn(page, url + "?state=room")
        wanted = sum(share > 1e-6 for share in free)
        await page.expect("document.querySelector('.count').textContent", f"{wanted} of 768 GPUs")


MAP = "document.querySelector('.fleet .map').checkVisibility()"


async def test_the_fleet_folds_for_a_filter_and_the_readers_choice_wins(chromium: Browser) -> None:
    async with staged(await several()) as url, chromium.page(1366, 1000) as page:
        await drawn(page, url)
        await page.until(MAP)
        await page.run("document.querySelector('.use tbody a').click()")
        await page.until(f"!{MAP}")
        await page.expect_text(".fleet p.dim", "768 GPUs on 96 nodes")
        await page.run("document.querySelector('.fleet h2 button').click()")
        await page.until(MAP)
        await drawn(page, url + "?state=idle")
        await page.until(MAP)
        await page.run("document.querySelector('.fleet h2 button').click()")
        await page.until(f"!{MAP}")
        await drawn(page, url)
        await page.until(f"!{MAP}")
        await page.run("localStorage.clear()")


async def test_lost_and_dark_gpus_are_seen_among_thousands(chromium: Browser) -> None:
    """A lost one is full and has a ring around it, a dark one is crossed: a shape of its own for each."""
    script = await huge()
    sums = script.state["insight"]["sums"]
    assert (sums["lost_gpus"], sums["dark_gpus"]) == (4, 8)
    async with staged(script) as url, chromium.page(*LAPTOP) as page:
        await drawn(page, url)
        assert not await page.run(MAP), "it would push the list off the screen"
        await page.run("document.querySelector('.fleet h2 button').click()")
        await page.until(MAP)
        full_and_crossed, dark = await page.until(
            f"(found => found[0] > 0 && found[1] > 0 && found)({PIXELS}('.map canvas', ['bad', 'dark']))"
        )
        (rings,) = await page.run(f"{PIXELS}('.map .marks', ['bad'])")
        assert rings > full_and_crossed / 2, "a ring is larger than its cell"
        assert dark > 0
        await page.run("localStorage.clear()")


async def test_a_pod_that_is_typed_has_its_row_on_the_screen(chromium: Browser) -> None:
    for size in (LAPTOP, PHONE):
        async with staged(await huge()) as url, chromium.page(*size) as page:
            await drawn(page, url)
            await page.run("document.querySelector('input[type=search]').focus()")
            for letter in "pretrain-1-987":
                await page.press(letter, text=letter)
            name = "document.querySelector('.list .gpu .seg[href]')"
            await page.until(f"{name}?.getAttribute('aria-label').startsWith('research/pretrain-1-987')")
            await page.until(f"(box => box.top >= 0 && box.bottom <= innerHeight)({name}.getBoundingClientRect())")
            assert await page.run("document.activeElement.type") == "search"


# Money that is wider or higher than the room it has.
CUT = """[...document.querySelectorAll('.answer td, .headline, .tile dd, .idler .watts, .idler .given, .problem')]
  .filter((one) => /[0-9]/.test(one.textContent) && one.checkVisibility()
    && (one.scrollWidth > one.clientWidth + 1 || one.scrollHeight > one.clientHeight + 1))
  .map((one) => one.textContent)"""


@pytest.mark.parametrize("query", ["", "?view=idle", "?view=problems"])
async def test_no_money_is_cut(chromium: Browser, query: str) -> None:
    prices = InsightSettings(idle_after=1800.0, prices=Prices(currency="EUR", gpu_hour={"*": 123456.78}))
    script = Script(troubled(cluster_of(await demo_document(), 12), 24), prices)
    async with staged(script) as url, chromium.page(360, 900) as page:
        await page.open(url + query)
        await page.until("document.querySelector('.item') !== null")
        for width in (360, 768, 1024, 1366, 1920):
            await page.size(width, 900)
            await page.until(f"innerWidth === {width}")
            await page.run(SETTLED)
            await page.run("document.querySelectorAll('.answer details').forEach(one => { one.open = true })")
            await page.run(SETTLED)
            assert await page.run(CUT) == [], width
