"""The fleet at a glance, its brush, and the views by node, namespace and team."""

import pytest

from podgpu import numbers
from podgpu.insight import rows
from podgpu.insight.selection import EVERYTHING
from tests.browser.chromium import Browser, Page
from tests.browser.stage import Document, Script, cluster_of, demo_document, staged

pytestmark = pytest.mark.asyncio(loop_scope="package")

NODES = 6
TEAMS = ("search", "vision")
SHIFT = 8
ENTER, ESCAPE, RIGHT, DOWN = 13, 27, 39, 40


async def cluster() -> Document:
    """Some nodes with a lost card and teams."""
    document = cluster_of(await demo_document(), NODES)
    document["nodes"][2]["snapshot"]["cards"][5] |= {
        "fault": {"reason": "lost", "call": "", "detail": "", "seconds": 240.0},
        "readings": [],
    }
    for row in document["nodes"]:
        for number, pod in enumerate(row["snapshot"]["pods"]):
            pod["labels"] = {"team": TEAMS[number % 2]} if number % 3 else {}
    return document


async def test_cards_without_a_name_have_a_row_each(chromium: Browser) -> None:
    """Without an agent, Kubernetes knows how many cards a node has, and not which."""
    document = cluster_of(await demo_document(), 1)
    cards = document["nodes"][0]["snapshot"]["cards"]
    for card in cards:
        card["gpu"] |= {"uuid": "", "index": -1}
    async with staged(Script(document)) as url, chromium.page() as page:
        await page.open(url)
        await page.expect("document.querySelectorAll('.item .gpu, .gpu.item').length", len(cards))


COUNT = "document.querySelector('.count').textContent"


async def test_gpus_of_a_cordoned_node_are_not_free(chromium: Browser) -> None:
    document = cluster_of(await demo_document(), 2)
    for row in document["nodes"]:
        row["snapshot"]["cards"][0] |= {"tenants": [], "rest": []}
    document["nodes"][0]["cordoned"] = True
    script = Script(document)
    sums = script.state["insight"]["sums"]
    assert sums["cordoned_gpus"] == sums["free_gpus"] >= 1
    async with staged(script) as url, chromium.page() as page:
        await page.open(url)
        await page.expect_text(".tiles", f"{numbers.gpu_number(sums['cordoned_gpus'])} cordoned")
        await page.expect_text("main", "· cordoned")
        await page.open(f"{url}?state=free")
        await page.expect(COUNT, f"{sums['free_whole_gpus']} of 16 GPUs")


# How many pixels of a canvas have each of these colours of the page.
PIXELS = """((selector, names) => {
  const canvas = document.querySelector(selector);
  const { data } = canvas.getContext('2d').getImageData(0, 0, canvas.width, canvas.height);
  const style = getComputedStyle(document.documentElement);
  return names.map(name => {
    const hex = style.getPropertyValue('--' + name).trim();
    const ink = [1, 3, 5].map(at => parseInt(hex.slice(at, at + 2), 16));
    let found = 0;
    for (let at = 0; at < data.length; at += 4) if (ink.every((part, place) => data[at + place] === part)) found += 1;
    return found;
  });
})"""


async def test_the_fleet_counts_shares_as_the_tile_does_and_tags_tenants(chromium: Browser) -> None:
    """An idle tenant does not make the whole card idle."""
    script = Script(cluster_of(await demo_document(), NODES))
    unused = script.state["insight"]["sums"]["unused_gpus"]
    cards = [card for row in script.state["nodes"] for card in row["snapshot"]["cards"]]
    states = [[tenant.get("holding", {}).get("state") for tenant in card["tenants"]] for card in cards]
    whole = sum(bool(own) and set(own) == {"idle"} for own in states)
    partly = next(own for own in states if "idle" in own and set(own) != {"idle"})
    async with staged(script) as url, chromium.page() as page:
        await page.open(url)
        await page.expect_text(".tiles", numbers.gpu_number(unused))
        await page.expect_text(".fleet p.dim", f"{numbers.gpus(unused)} held and not used, {whole} of them whole")
        await page.expect_text("main", f"{partly.count('idle')} of {len(partly)} idle")


async def test_the_table_of_teams_counts_gpus_and_not_pods(chromium: Browser) -> None:
    script = Script(await cluster())
    held: dict[str, float] = {}
    for row in script.state["nodes"]:
        teams = {(pod["namespace"], pod["name"]): pod["labels"].get("team", "") for pod in row["snapshot"]["pods"]}
        for tenant in (tenant for card in row["snapshot"]["cards"] for tenant in card["tenants"]):
            if "holding" in tenant:
                team = teams.get((tenant["container"]["namespace"], tenant["container"]["pod"]), "")
                held[team] = held.get(team, 0.0) + tenant["booking"]["allocated_ratio"]
    async with staged(script) as url, chromium.page() as page:
        await page.open(url + "?colour=team")
        await page.run("document.querySelector('.fleet details').open = true")
        for team in TEAMS:
            words = f"{team}{numbers.gpu_number(held[team])}"
            await page.until(f"[...document.querySelectorAll('.fleet tr')].some(e => e.textContent === '{words}')")


CELL = 18  # pixels of a cell in a fleet this small


async def test_a_single_node_has_no_fleet(chromium: Browser) -> None:
    async with staged(Script(await demo_document())) as url, chromium.page() as page:
        await page.open(url)
        assert await page.run("document.querySelector('.fleet').checkVisibility()") is False


async def test_cells_are_filled_by_what_is_chosen(chromium: Browser) -> None:
    script = Script(await cluster())
    cards = [card for row in script.state["nodes"] for card in row["snapshot"]["cards"] if "fault" not in card]
    busy = sum(round(card["use"]["ratio"] * CELL) * CELL for card in cards)
    async with staged(script) as url, chromium.page() as page:
        await page.open(url)
        # Outlines of idle holders cover some of it.
        accent, bad = await page.until(
            f"(found => found[0] > {busy * 0.7} && found[1] > 0 && found)({PIXELS}('.map canvas', ['accent', 'badbg']))"
        )
        assert accent <= busy and bad < CELL * CELL
        summary = await page.text(".fleet p.dim")
        assert summary.startswith(f"{NODES * 8} GPUs on {NODES} nodes") and "1 lost (hatched)" in summary
        await page.run(
            "(menu => { menu.value = 'heat'; menu.dispatchEvent(new Event('change')); })"
            "(document.querySelector('.fleet select'))"
        )
        await page.until("location.search === '?colour=heat'")
        await page.until(f"{PIXELS}('.map canvas', ['accent'])[0] === 0")
        await page.run("document.querySelector('.fleet details').open = true")
        await page.until("document.querySelectorAll('.fleet tbody tr').length > 3")
        counted = "[...document.querySelectorAll('.fleet tbody tr:nth-child(-n+3) td')].map(e => +e.textContent)"
        await page.expect(f"{counted}.reduce((sum, number) => sum + number, 0)", len(cards))
        assert page.complaints == []


async def drag(page: Page, start: tuple[float, float], end: tuple[float, float]) -> None:
    box = await page.run("(b => [b.left, b.top])(document.querySelector('.map canvas').getBoundingClientRect())")
    for kind, (x, y) in (("mousePressed", start), ("mouseMoved", end), ("mouseReleased", end)):
        await page.send(
            "Input.dispatchMouseEvent",
            type=kind,
            x=box[0] + x,
            y=box[1] + y,
            button="left",
            buttons=1,
            clickCount=1,
        )


async def test_a_brush_filters_the_list_and_is_in_the_address(chromium: Browser) -> None:
    async with staged(Script(await cluster())) as url, chromium.page() as page:
        await page.open(url)
        await page.until("document.querySelector('.map canvas').offsetHeight > 30")
        first, last = (2 * (CELL + 1) + 4.0, 20.0), (4 * (CELL + 1) + 4.0, 20.0)
        await drag(page, first, last)
        await page.until(f"{COUNT} === '3 of {NODES * 8} GPUs'")
        shown = ["2", "3", "4"]
        await page.expect_texts(".gpu .who b", shown)
        link = await page.run("location.href")
        async with chromium.page() as other:
            await other.open(link)
            await other.expect_texts(".gpu .who b", shown)
        await drag(page, first, last)
        await page.until(f"{COUNT} === ''")


async def test_the_keyboard_brushes_too(chromium: Browser) -> None:
    async with staged(Script(await cluster())) as url, chromium.page() as page:
        await page.open(url)
        await page.run("document.querySelector('.map canvas').focus()")
        await page.press("ArrowRight", code=RIGHT)
        await page.until("document.querySelector('.tip').textContent.includes('gpu-node-001 · GPU 1')")
        for _ in range(2):
            await page.send(
                "Input.dispatchKeyEvent",
                type="keyDown",
                key="ArrowRight",
                windowsVirtualKeyCode=RIGHT,
                modifiers=SHIFT,
            )
        await page.press("Enter", code=ENTER, text="\r")
        await page.until(f"{COUNT} === '3 of {NODES * 8} GPUs'")
        assert await page.run("document.activeElement.tagName") == "CANVAS"
        await page.press("Escape", code=ESCAPE)
        await page.until(f"{COUNT} === ''")


async def test_a_tip_stands_beside_its_cell(chromium: Browser) -> None:
    async with staged(Script(await cluster())) as url, chromium.page() as page:
        await page.open(url)
        await page.run("document.querySelector('.map canvas').focus()")
        await page.press("ArrowRight", code=RIGHT)
        left, top = await page.until(
            "((tip, map) => tip.width && [tip.left - map.left, tip.top - map.top])"
            "(...['.map .tip', '.map'].map(name => document.querySelector(name).getBoundingClientRect()))"
        )
        assert (left, CELL < top < 4 * CELL) == (CELL + 1, True)


@pytest.mark.parametrize("view", ["bill", "fit"])
async def test_a_brush_leads_from_what_a_store_has_to_the_list(chromium: Browser, view: str) -> None:
    async with staged(Script(await cluster())) as url, chromium.page() as page:
        await page.open(url)
        await page.until("document.querySelector('.map canvas').offsetHeight > 30")
        await page.run(f"document.querySelector('[data-view={view}]').click()")
        await page.until(f"document.querySelector('.{view}').checkVisibility()")
        await drag(page, (4.0, 20.0), (CELL + 5.0, 20.0))
        await page.until(f"{COUNT} === '2 of {NODES * 8} GPUs'")


@pytest.mark.parametrize("view", ["nodes", "namespaces"])
async def test_groups_are_the_rows_of_top(chromium: Browser, view: str) -> None:
    script = Script(await cluster())
    async with staged(script) as url, chromium.page(1280, 2000) as page:
        await page.open(url + f"?view={view}&sort=name")
        found = sorted((item.row for item in rows.VIEWS[view](script.cluster, EVERYTHING)), key=lambda row: row.name)
        await page.expect_texts(".work .first a", [row.name for row in found])
        await page.expect_texts(".work .watts", [numbers.watts(row.power_watts) for row in found])


SHOWN = """[...document.querySelectorAll('.gpu .memory .seg[href]:not(.dimmed)')]
    .map(e => e.getAttribute('aria-label'))"""


async def test_teams_are_rows_of_a_label_and_lead_to_their_gpus(chromium: Browser) -> None:
    script = Script(await cluster())
    async with staged(script) as url, chromium.page(1280, 2000) as page:
        await page.open(url + "?view=teams&sort=name")
        found = sorted((item.row for item in rows.labels(script.cluster)), key=lambda row: row.name)
        await page.expect_texts(".work .first a", [row.name for row in found])
        assert {row.name for row in found} == {*TEAMS, "without team"}
        await page.run("document.querySelector('.work .first a').click()")
        await page.until("location.search.includes('team=search')")
        pods = {
            pod["name"]
            for row in script.state["nodes"]
            for pod in row["snapshot"]["pods"]
            if pod.get("labels") == {"team": "search"}
        }
        await page.until(
            f"(shown => shown.length > 0 && shown.every(name => {sorted(pods)}.includes(name)))"
            f"({SHOWN}.map(name => name.split(',')[0].split('/')[1]))"
        )
