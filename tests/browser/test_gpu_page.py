"""The page of a GPU and of a MIG instance, in a real browser."""

from typing import Any

import msgspec
import pytest

from podgpu.model import Card, Instance
from podgpu.views import json
from podgpu.views.card_facts import facts_of
from tests.browser.axe import serious
from tests.browser.chromium import Browser
from tests.browser.stage import Document, Script, cluster_of, demo_document, staged

pytestmark = pytest.mark.asyncio(loop_scope="package")

TOPICS = """Object.fromEntries([...document.querySelectorAll('.topics .box')].map(box => [
    box.querySelector('h3').textContent,
    [...box.querySelectorAll('tbody tr')].map(row => [...row.children].map(cell => cell.textContent))]))"""
FACTS = "document.querySelector('.topics .facts') !== null"
TENANTS = "[...document.querySelectorAll('.gpupage .box h3 a')].map(one => one.textContent)"


def written(owner: Card | Instance) -> dict[str, list[list[str]]]:
    return {topic: [list(line) for line in lines] for topic, lines in facts_of(owner.readings).items()}


def cards_of(document: Document) -> tuple[Card, ...]:
    return json.decode(msgspec.json.encode(document)).cards


def pods_on(card: Any, mig: str = "") -> set[str]:
    refs = [tenant["container"] for tenant in card["tenants"] if not mig or tenant["mig"] == mig]
    return {f"{ref['namespace']}/{ref['pod']}" for ref in refs}


async def test_a_card_opens_its_page_which_says_what_the_document_does(chromium: Browser) -> None:
    document = await demo_document()
    card = document["cards"][4]
    async with staged(Script(document)) as url, chromium.page() as page:
        await page.open(url)
        await page.run("document.querySelectorAll('.gpu .number')[4].click()")
        await page.expect_texts(".gpupage .bars .number", ["4"])
        await page.expect("new URLSearchParams(location.search).get('gpu')", card["gpu"]["uuid"])
        await page.until(FACTS)
        shown = await page.run(TOPICS)
        assert shown.pop("The card")[0] == ["UUID", card["gpu"]["uuid"], "Copy"]
        assert shown == written(cards_of(document)[4])
        await page.expect(f"[...new Set({TENANTS})].sort()", sorted(pods_on(card)))
        await page.run("document.querySelector('.gpupage .box h3 a').click()")
        await page.until("new URLSearchParams(location.search).get('pod') !== null")
        await page.expect("document.querySelector('.gpupage')", None)
        assert page.complaints == []


async def test_an_xid_is_shown_with_its_meaning_and_who_was_on_the_card(chromium: Browser) -> None:
    document = await demo_document()
    card = document["cards"][0]
    present = [tenant["container"] for tenant in card["tenants"]]
    record = {"at": document["taken_at"] - 60.0, "meaning": "GPU memory page fault"}
    card["xids"] = [
        {"xid": 31, "present": present, **record},
        {"xid": 999, "at": 1_790_000_000.0, "present": []},
    ]
    async with staged(Script(document)) as url, chromium.page() as page:
        await page.open(f"{url}?gpu={card['gpu']['uuid']}")
        name = f"{present[0]['namespace']}/{present[0]['pod']}"
        await page.expect_texts(".xids .value", ["XID 31", "XID 999"])
        await page.expect_texts(
            ".xids .how", [f"GPU memory page fault. On it: {name}.", "Not a known code. No pod was on it."]
        )
        assert page.complaints == []


async def test_a_mig_instance_has_a_page_of_its_own(chromium: Browser) -> None:
    document = await demo_document()
    card = document["cards"][3]
    instance = card["instances"][0]["mig"]
    async with staged(Script(document)) as url, chromium.page() as page:
        await page.open(f"{url}?gpu={instance['uuid']}")
        await page.expect_texts(".gpupage h2", [f"GPU 3 · {instance['profile']}"])
        await page.until(FACTS)
        shown = await page.run(TOPICS)
        shown.pop("The card")
        assert shown == written(cards_of(document)[3].instances[0])
        await page.expect(f"[...new Set({TENANTS})].sort()", sorted(pods_on(card, instance["uuid"])))
        assert page.complaints == []


async def test_a_card_of_a_cluster_and_one_that_is_not_there(chromium: Browser) -> None:
    cluster = cluster_of(await demo_document(), 2)
    async with staged(Script(cluster)) as url, chromium.page() as page:
        await page.open(f"{url}?gpu=GPU-0001-4")
        await page.expect_texts(".gpupage h2", ["GPU 4"])
        await page.expect_text(".gpupage .title", "gpu-node-002")
        await page.open(f"{url}?gpu=GPU-0001-99")
        await page.expect_text(".podpage .empty", "no such GPU")
        assert page.complaints == []


@pytest.mark.parametrize(("scheme", "width"), [("light", 1440), ("dark", 390)])
async def test_axe_finds_nothing_serious_on_the_page_of_a_gpu(chromium: Browser, scheme: str, width: int) -> None:
    document = await demo_document()
    async with staged(Script(document)) as url, chromium.page(width, 900) as page:
        await page.scheme(scheme)
        await page.open(f"{url}?gpu={document['cards'][4]['gpu']['uuid']}")
        await page.until(FACTS)
        assert await serious(page) == []
