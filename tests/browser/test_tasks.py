"""What an on-call engineer wants to know, and how many clicks it takes from the first screen.

Other tests count the clicks of more tasks: test_hour (the pod on a GPU 20 minutes ago, and what is kept of an
incident), test_bill (last month's bill as CSV), test_compare (two GPUs) and test_first (a pod by its name).
"""

import json

import pytest

from podgpu import numbers
from podgpu.views.format import TOTALS
from tests.browser.chromium import Browser, Page
from tests.browser.stage import Script, cluster_of, demo_document, staged
from tests.browser.test_first import LAPTOP, PRICED, drawn, troubled
from tests.browser.test_hour import Hand

pytestmark = pytest.mark.asyncio(loop_scope="package")

FAULTY, LOST, DARK = 7, 5, 3  # the numbers of nodes, as `troubled` has them


async def cluster() -> Script:
    """Twelve nodes: one has a card that raised an XID while a pod was on it, one a lost card, and one is dark."""
    document = troubled(cluster_of(await demo_document() | {"demo": False}, 12), 24)
    card = document["nodes"][FAULTY]["snapshot"]["cards"][1]
    at = document["taken_at"] - 60.0
    card["readings"] += [{"metric": "xid_last_timestamp_seconds", "value": at}]
    card["xids"] = [{"at": at, "xid": 79, "present": [card["tenants"][0]["container"]]}]
    return Script(document, PRICED)


async def on_screen(page: Page, selector: str, text: str) -> None:
    """Wait until an element with this text is on the screen, whole, without any scrolling."""
    element = f"[...document.querySelectorAll({selector!r})].find(e => e.textContent.includes({json.dumps(text)}))"
    await page.until(f"(box => box.top >= 0 && box.bottom <= innerHeight)({element}.getBoundingClientRect())")
    assert await page.run("scrollY") == 0


async def test_the_pod_behind_an_xid_takes_no_click(chromium: Browser) -> None:
    async with staged(await cluster()) as url, chromium.page(*LAPTOP) as page:
        await drawn(page, url)
        await on_screen(page, ".wrong .alert", f"research/pretrain-1-{FAULTY}")
        await on_screen(page, ".wrong .alert", "XID 79")


async def test_the_team_that_wastes_most_in_money_takes_no_click(chromium: Browser) -> None:
    script = await cluster()
    first, second = script.state["insight"]["waste"][:2]
    assert first["cost_per_hour"] > second["cost_per_hour"]
    async with staged(script) as url, chromium.page(*LAPTOP) as page:
        await drawn(page, url)
        await on_screen(page, ".waste .headline", f"most by team {first['name']}")
        await on_screen(page, ".waste tbody tr:first-child", numbers.money(first["cost_per_hour"], "EUR"))


WHERE = {"Lost": (".gpupage .title", LOST), "Dark": (".list .node", DARK)}


def alert(title: str) -> str:
    return f"[...document.querySelectorAll('.wrong .alert')].find(e => e.textContent.includes('{title}'))"


@pytest.mark.parametrize("title", WHERE)
async def test_a_lost_or_dark_gpu_takes_one_click(chromium: Browser, title: str) -> None:
    selector, number = WHERE[title]
    async with staged(await cluster()) as url, chromium.page(*LAPTOP) as page:
        await drawn(page, url)
        hand = Hand(page)
        await page.until(f"{alert(title)}.querySelector('a:last-child').id = 'asked'")
        await hand.click("#asked")
        await page.expect_text(selector, f"gpu-node-{number + 1:03}")
        assert hand.clicks == 1


async def test_why_a_number_is_what_it_is_takes_one_click(chromium: Browser) -> None:
    """Of a total its formula; of a pod's share of a card, all that is known of it."""
    async with staged(await cluster()) as url, chromium.page(*LAPTOP) as page:
        await drawn(page, url)
        hand = Hand(page)
        await hand.click(".tile:nth-child(3) button")
        await page.expect("document.querySelector('#app > .tip').textContent", TOTALS["Truly busy"])
        assert hand.clicks == 1
        await hand.click(".list .gpu .seg[href]")
        await page.expect_text(".podpage", "Its numbers, and how they are known", "Given")
        assert hand.clicks == 2


async def test_a_kubectl_command_takes_one_click(chromium: Browser) -> None:
    async with staged(await cluster()) as url, chromium.page(*LAPTOP) as page:
        await drawn(page, url)
        hand = Hand(page)
        button = f"{alert('Lost')}.querySelector('button[data-copy]')"
        await page.expect(f"{button}.dataset.copy", f"kubectl cordon gpu-node-{LOST + 1:03}")
        await page.run(f"{button}.id = 'asked'")
        await hand.click("#asked")
        await page.until(f"{button}.dataset.done")
        assert hand.clicks == 1


async def test_the_address_is_the_link_to_what_is_shown(chromium: Browser) -> None:
    """Whoever opens it sees the same: the view, its filter, its order and the GPU."""
    async with staged(await cluster()) as url, chromium.page(*LAPTOP) as page:
        await drawn(page, url)
        hand = Hand(page)
        await hand.click(".tile:nth-child(3) a")
        await page.expect("location.search", "?sort=busy")
        wanted = await page.texts(".list .gpu .number")
        await page.open(await page.run("location.href"))
        await page.expect_texts(".list .gpu .number", wanted)
        assert hand.clicks == 1
