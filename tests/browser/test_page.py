"""The page in a real browser, over documents of the test's own."""

import copy
from typing import Any

import pytest

from podgpu import numbers
from podgpu.insight import InsightSettings
from podgpu.insight.idle import idle_pods
from podgpu.model import Prices
from tests.browser.axe import serious
from tests.browser.chromium import Browser
from tests.browser.stage import Document, Script, cluster_of, demo_document, staged

pytestmark = pytest.mark.asyncio(loop_scope="package")

SHOWN = 3  # problems before the rest is folded


def tile(name: str) -> str:
    """Find a total by its title."""
    return (
        "[...document.querySelectorAll('.tile')]"
        f".find(e => e.querySelector('dt').textContent === '{name}').querySelector('.big').textContent"
    )


def choose(name: str, value: str) -> str:
    """Choose from a menu, as a hand would."""
    return (
        f"(menu => {{ menu.value = '{value}'; menu.dispatchEvent(new Event('change')); }})"
        f"(document.querySelector('[aria-label={name}]'))"
    )


def has_alert(*parts: str) -> str:
    """Whether an alert has all these parts."""
    return (
        "[...document.querySelectorAll('.alert')]"
        f".some(alert => {list(parts)}.every(part => alert.textContent.includes(part)))"
    )


def idle_holders(document: Document) -> list[Any]:
    """Those who hold a share and do not use it, as it was concluded."""
    tenants = [tenant for card in document["cards"] for tenant in card["tenants"]]
    return [tenant for tenant in tenants if tenant.get("holding", {}).get("state") == "idle"]


def reading(card: Any, name: str) -> float:
    return float(next(reading["value"] for reading in card["readings"] if reading["metric"] == name))


async def test_the_first_glance_is_the_document(chromium: Browser) -> None:
    document = await demo_document()
    cards = document["cards"]
    allocated = sum(tenant["booking"].get("allocated_ratio", 0) for card in cards for tenant in card["tenants"])
    busy = sum(card["balance"]["busy_ratio"] for card in cards)
    idle = sum(tenant["booking"]["allocated_ratio"] for tenant in idle_holders(document))
    watts = sum(reading(card, "power_watts") for card in cards)
    async with staged(Script(document)) as url, chromium.page() as page:
        await page.open(url)
        await page.expect(tile("GPUs"), str(len(cards)))
        await page.expect(tile("Allocated"), numbers.percent(allocated / len(cards)))
        await page.expect(tile("Truly busy"), numbers.percent(busy / len(cards)))
        await page.expect(f"Number({tile('Held, not used')})", pytest.approx(idle, abs=0.051))
        await page.expect(f"Number({tile('Free')})", pytest.approx(len(cards) - allocated, abs=0.051))
        await page.expect(tile("Power"), numbers.watts(watts))
        assert page.complaints == []


SEGMENTS = """[...document.querySelectorAll('.track, .rail:not([hidden])')].map(track => [
    track.getBoundingClientRect().width,
    [...track.children].map(one => one.getBoundingClientRect().width)])"""
UNEVEN = "!parts.every(Number.isInteger) || parts.reduce((sum, part) => sum + part, 0) !== whole"


async def test_segments_add_up_to_their_bar_to_the_pixel(chromium: Browser) -> None:
    async with staged(Script(await demo_document())) as url, chromium.page(1283, 2000) as page:
        await page.open(url)
        for width in (1283, 1001, 777, 361):
            await page.size(width, 3000)
            await page.until(f"document.documentElement.scrollWidth <= {width} && {SEGMENTS}.length > 30")
            await page.expect(f"{SEGMENTS}.filter(([whole, parts]) => {UNEVEN})", [])


def broken(document: Document) -> Document:
    """A node on which much is wrong."""
    changed = copy.deepcopy(document)
    cards = changed["cards"]
    cards[5] |= {
        "fault": {"reason": "lost", "call": "", "detail": "", "seconds": 240.0},
        "readings": [],
        "tenants": [],
    }
    cards[0]["readings"] += [{"metric": "xid_last_code", "value": 79.0}]
    cards[1]["balance"]["energy_mj"] += 1
    for item in cards[2]["readings"]:
        if item["metric"] in ("row_remap_pending", "row_remap_failed", "recovery_action"):
            item["value"] = 1.0
        if item["metric"] == "ecc_errors_total" and item["labels"] == {
            "error": "uncorrected",
            "lifetime": "volatile",
        }:
            item["value"] = 3.0
    for item in cards[3]["readings"]:
        if item["metric"] == "clock_event" and item["labels"]["reason"] == "hardware_thermal":
            item["value"] = 1.0
    fault = {"reason": "no_socket", "call": "List", "detail": "", "seconds": 90.0}
    changed["parts"][0] = {"name": "podresources", "up": False, "fault": fault}
    return changed


async def test_what_is_wrong_is_said_with_what_to_do(chromium: Browser) -> None:
    """In the words and in the order of the document."""
    script = Script(broken(await demo_document()))
    problems = script.state["insight"]["problems"]
    kinds = {problem["kind"] for problem in problems}
    assert {"gpu_unreadable", "xid", "books", "throttled", "part_down", "idle"} <= kinds
    assert len(kinds) > SHOWN and any(problem["more"] for problem in problems)
    async with staged(script) as url, chromium.page() as page:
        await page.open(url)
        await page.expect("document.querySelectorAll('.alert').length", SHOWN)
        await page.run("document.querySelector('.more').click()")
        await page.expect_texts(".alert strong", [problem["title"] for problem in problems])
        wanted = [
            problem["text"]
            + (f" And {problem['more']} more like it." if problem["more"] else "")
            + (f" {problem['next_step']}" if problem["next_step"] else "")
            for problem in problems
        ]
        await page.expect_texts(".alert .what", wanted)
        await page.expect(
            "[...document.querySelectorAll('.alert')].map(e => e.classList.contains('bad'))",
            [problem["severity"] == "critical" for problem in problems],
        )
        lost = next(problem for problem in problems if problem["kind"] == "gpu_unreadable")
        await page.until(f"document.querySelector('.alert a').href.includes('gpu={lost['uuid']}')")


async def test_filter_sort_and_link(chromium: Browser) -> None:
    document = await demo_document()
    last = document["cards"][-1]  # which comes first by how busy it is
    last["balance"]["busy_ratio"] = last["tenants"][0]["booking"]["sm_ratio"] = 0.99
    async with staged(Script(cluster_of(document, 6))) as url, chromium.page() as page:
        await page.open(url)
        await page.run("document.querySelector('input[type=search]').focus()")
        for letter in "node-004":
            await page.press(letter, text=letter)
        await page.until("document.querySelector('.count').textContent === '8 of 48 GPUs'")
        await page.run(choose("Namespace", "lab"))
        await page.until("document.querySelector('.count').textContent === '3 of 48 GPUs'")
        labels = await page.texts(".gpu .busy .label")
        await page.run(choose("Order", "busy"))
        falling = sorted(labels, key=lambda label: int(label.split("%")[0]), reverse=True)
        assert falling != labels
        await page.expect_texts(".gpu .busy .label", falling)
        shown = await page.texts(".gpu .who b")
        link = await page.run("location.href")
        assert "q=node-004" in link and "namespace=lab" in link and "sort=busy" in link
        async with chromium.page() as other:
            await other.open(link)
            await other.expect_texts(".gpu .who b", shown)
            await other.expect_texts(".gpu .busy .label", falling)
        await page.run("document.querySelector('.picked button').click()")
        await page.until("document.querySelector('.count').textContent === ''")


async def test_three_views_and_a_pod_with_its_evidence(chromium: Browser) -> None:
    document = await demo_document()
    async with staged(Script(document)) as url, chromium.page() as page:
        await page.open(url)
        await page.run("document.querySelector('nav a[data-view=idle]').click()")
        await page.until("location.search === '?view=idle'")
        holders = {
            f"{tenant['container']['namespace']}/{tenant['container']['pod']}" for tenant in idle_holders(document)
        }
        await page.expect(
            "[...new Set([...document.querySelectorAll('.idler .first a')].map(e => e.textContent))].sort()",
            sorted(holders),
        )
        await page.run("document.querySelector('nav a[data-view=workloads]').click()")
        await page.until("[...document.querySelectorAll('.workload .first a')].some(e => e.textContent === 'pretrain')")
        await page.run("[...document.querySelectorAll('.work a')].find(e => e.textContent === 'pretrain-0').click()")
        await page.until("document.querySelector('.podpage h2')?.textContent === 'research/pretrain-0'")
        tenant = document["cards"][0]["tenants"][0]
        await page.expect_text(".facts", tenant["claims"][0]["device_id"], "The card measures both")
        await page.expect_text(".processes", tenant["processes"][0]["holder"]["cgroup"])
        await page.run("history.back()")
        await page.until("document.querySelector('.workload') && !document.querySelector('.podpage')?.offsetParent")


def hostile_names() -> list[str]:
    tricks = (
        "<img src=x onerror=boom()>",
        "<script>boom()</script>",
        '"><svg onload=boom()>',
        "javascript:boom()",
        "${boom()}",
        "{{boom()}}",
        "__proto__",
        "constructor",
        "\u202eevil",
        "'-boom()-'",
    )
    return [f"{trick}{number}" for number in range(20) for trick in tricks]


async def test_two_hundred_hostile_names_stay_text(chromium: Browser) -> None:
    document = cluster_of(await demo_document(), 25)
    document["name"] = "<img src=x onerror=boom()>"
    names = iter(hostile_names())
    for row in document["nodes"]:
        for card in row["snapshot"]["cards"]:
            name = next(names)
            card["gpu"]["model"] = name
            for tenant in card["tenants"]:
                tenant["container"] |= {"namespace": name, "pod": name, "container": name}
                tenant["workload"] = {"kind": name, "name": name}
    async with staged(Script(document)) as url, chromium.page() as page:
        await page.send("Page.addScriptToEvaluateOnNewDocument", source=WATCH)
        pod = "%3Cimg%20src=x%20onerror=boom()%3E0/"
        drawn = {"": ".gpu", "?view=workloads": ".work", "?view=idle": ".idler", "?q=boom": ".gpu"}
        for query, row in (drawn | {f"?pod={pod * 2}": ".podpage h2"}).items():
            await page.open(url + query)
            await page.until(f"document.querySelector('{row}')")
            for _ in range(4):
                await page.run("scrollBy(0, innerHeight)")
                await page.frames()
            assert "\u202e" not in await page.run("document.body.innerText")
            assert await page.run("[window.ran, window.violations]") == [0, 0]
        assert page.complaints == []
        assert not [request for request in page.requests if not request.startswith(url)]


WATCH = """
window.ran = 0; window.violations = 0; window.boom = () => { window.ran += 1; };
addEventListener('securitypolicyviolation', () => { window.violations += 1; });
"""


async def test_changes_are_shown_as_they_come_and_the_focus_stays(chromium: Browser) -> None:
    document = await demo_document()
    script = Script(document)
    async with staged(script) as url, chromium.page() as page:
        await page.open(url)
        await page.run("document.querySelector('.seg[href]').focus()")
        newer = copy.deepcopy(document)
        newer["taken_at"] += 5
        newer["cards"][0]["balance"]["busy_ratio"] = 0.42
        newer["cards"][0]["tenants"][0]["booking"]["sm_ratio"] = 0.42
        script.publish(newer)
        await page.until("document.querySelector('.gpu .busy .label').textContent === '42%'")
        await page.until("document.activeElement.classList.contains('seg')")


async def test_only_what_is_on_the_screen_is_drawn_and_paper_gets_all(chromium: Browser) -> None:
    async with staged(Script(cluster_of(await demo_document(), 20))) as url, chromium.page() as page:
        await page.open(url)
        await page.until("document.querySelectorAll('.item').length < 40")
        await page.run("scrollTo(0, document.documentElement.scrollHeight)")
        await page.until("[...document.querySelectorAll('.node h2')].some(e => e.textContent === 'gpu-node-020')")
        await page.run("dispatchEvent(new Event('beforeprint'))")
        await page.expect("document.querySelectorAll('.gpu').length", 160)
        await page.run("dispatchEvent(new Event('afterprint'))")
        await page.until("document.querySelectorAll('.item').length < 40")


TAB, ENTER = 9, 13


async def test_the_keyboard_reaches_everything(chromium: Browser) -> None:
    """From the top by Tab to a pod, by Enter to its page, and by letters between the views."""
    async with staged(Script(await demo_document())) as url, chromium.page() as page:
        await page.open(url)
        seen: list[str] = []
        for _ in range(70):
            await page.press("Tab", code=TAB)
            what = await page.run("(e => e.getAttribute('aria-label') || e.textContent)(document.activeElement)")
            await page.until("document.activeElement.matches(':focus-visible')")
            seen.append(what)
            if "pretrain-0" in what:
                break
        assert {"Skip to the list", "By workload", "Search", "Namespace", "Order"} <= set(seen)
        await page.press("Enter", code=ENTER, text="\r")
        await page.until("document.querySelector('.podpage h2')?.textContent === 'research/pretrain-0'")
        await page.expect("document.activeElement.tagName", "H2")
        await page.press("Escape", code=27)
        await page.until("!location.search")
        await page.press("i", text="i")
        await page.until("location.search === '?view=idle'")
        await page.press("/", text="/")
        await page.expect("document.activeElement.type", "search")


async def test_new_trouble_is_spoken_once(chromium: Browser) -> None:
    document = await demo_document()
    script = Script(document)
    async with staged(script) as url, chromium.page() as page:
        await page.open(url)
        await page.expect_texts(".wrong [role=status]", [""])
        script.publish(broken(document))
        await page.expect_text(".wrong [role=status]", "new problems")


async def test_with_a_store_a_pod_has_charts_over_days(chromium: Browser) -> None:
    document = cluster_of(await demo_document(), 1)
    document["nodes"][0]["origin"] = "store"
    async with staged(Script(document)) as url, chromium.page() as page:
        await page.open(url + "?pod=research%2Fpretrain-0-0")
        await page.expect_texts(".over nav a", ["Hour", "Day", "Week"])
        await page.run("[...document.querySelectorAll('.over nav a')].find(e => e.textContent === 'Week').click()")
        await page.until("document.querySelectorAll('.chart path.line').length === 3")
        await page.until("location.search.includes('period=week')")
        assert [request for request in page.requests if "history?pod=research%2Fpretrain-0-0&hours=168" in request]


async def test_idle_time_has_its_price(chromium: Browser) -> None:
    document = await demo_document()
    prices = Prices(currency="EUR", gpu_hour={"*H200*": 3.5})
    script = Script(document, InsightSettings(idle_after=1800.0, prices=prices))
    async with staged(script) as url, chromium.page() as page:
        await page.open(url + "?view=idle")
        wanted = [numbers.money(row.cost, "EUR") for row in idle_pods(script.cluster).rows]
        assert wanted
        await page.expect_texts(".idler .watts", wanted)
        assert script.cluster.insight is not None
        rate = numbers.money(script.cluster.insight.sums.unused_cost_per_hour, "EUR")
        await page.expect_text(".tiles", f"{rate}/h")


async def test_a_recording_is_announced_with_its_time(chromium: Browser) -> None:
    document = await demo_document() | {"demo": False, "replayed": True}
    async with staged(Script(document)) as url, chromium.page() as page:
        await page.open(url)
        await page.expect_text(".banner", "REPLAY These numbers were recorded.")
        await page.until("document.title.includes('REPLAY podgpu')")


async def test_without_a_gpu_the_page_says_so(chromium: Browser) -> None:
    document = await demo_document() | {"cards": [], "demo": False}
    async with staged(Script(document)) as url, chromium.page() as page:
        await page.open(url)
        await page.expect_text(".empty", "No GPU found")
        await page.expect(tile("Allocated"), numbers.UNKNOWN)
        assert page.complaints == []


VIEWS = {
    "": ".gpu",
    "?view=workloads": ".work",
    "?view=idle": ".idler",
    "?pod=research%2Fpretrain-0": ".facts",
}


@pytest.mark.parametrize(("scheme", "width"), [("light", 1280), ("dark", 360)])
async def test_axe_finds_nothing_serious(chromium: Browser, scheme: str, width: int) -> None:
    document = broken(await demo_document())
    async with staged(Script(document)) as url, chromium.page(width, 900) as page:
        await page.scheme(scheme)
        for query, row in VIEWS.items():
            await page.open(url + query)
            await page.until(f"document.querySelector('{row}')")
            assert await serious(page) == [], query
