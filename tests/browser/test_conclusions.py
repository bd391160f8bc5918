"""The page draws what was concluded, in the words and numbers of the other screens."""

import copy
from typing import Any

import pytest

from podgpu import numbers
from podgpu.insight import rows
from podgpu.insight.idle import idle_pods
from tests.browser.chromium import Browser, Page
from tests.browser.stage import Document, Script, cluster_of, demo_document, staged

pytestmark = pytest.mark.asyncio(loop_scope="package")

STATE = "document.querySelector('#state').textContent"
LATER = """{
    const now = Date.now() + 3_600_000; Date.now = () => now; document.querySelector('#state').textContent = '';
}"""  # an hour; it is written anew
NODES = 3


def tenants(document: Document) -> list[Any]:
    return [tenant for card in document["cards"] for tenant in card["tenants"]]


def named(document: Document, pod: str) -> Any:
    return next(tenant for tenant in tenants(document) if tenant["container"]["pod"] == pod)


async def test_workloads_are_the_rows_of_top(chromium: Browser) -> None:
    script = Script(cluster_of(await demo_document(), NODES))
    async with staged(script) as url, chromium.page(1280, 9000) as page:
        await page.open(url + "?view=workloads&sort=name")
        found = sorted((entry.row for entry in rows.workloads(script.cluster)), key=lambda row: row.title)
        await page.expect_texts(".workload .first a", [row.name for row in found])
        await page.expect_texts(".workload .watts", [numbers.watts(row.power_watts) for row in found])
        memory = [numbers.memory(row.memory_used_bytes).split()[0] for row in found]
        await page.expect_texts(".workload .memory .label", memory, lambda text: text.split()[0])
        uses = [
            f"{numbers.use(row.use.ratio, *row.use.range, row.use.certainty)} of {numbers.count(row.cards, 'GPU')}"
            for row in found
        ]
        await page.expect_texts(".workload .busy .label", uses, lambda text: text.split(" · ")[1])
        states = {row.state for row in found if row.state and row.pods > 1}
        assert states and states <= set(await page.texts(".workload .tag:not([hidden])"))


async def test_idle_holders_are_the_rows_of_podgpu_idle(chromium: Browser) -> None:
    script = Script(await demo_document())
    async with staged(script) as url, chromium.page() as page:
        await page.open(url + "?view=idle")
        found = idle_pods(script.cluster).rows
        assert found
        await page.expect_texts(".idler .first a", [f"{row.namespace}/{row.pod}" for row in found])
        await page.expect_texts(".idler .given", [numbers.gpus(row.held_gpus) for row in found])
        since = [numbers.duration(row.idle_seconds) for row in found]
        await page.expect_texts(".idler .since", since, lambda text: text.split(",")[0])


async def test_a_filter_leaves_the_totals_and_hides_rows(chromium: Browser) -> None:
    async with staged(Script(cluster_of(await demo_document(), NODES))) as url, chromium.page() as page:
        await page.open(url)
        await page.expect("document.querySelector('.tile .big').textContent", str(8 * NODES))
        whole = await page.texts(".tile .big")
        await page.open(url + "?view=workloads&q=node-002")
        await page.expect(
            "[...new Set([...document.querySelectorAll('.work.pod small')].map(e => e.textContent.split(' · ')[0]))]",
            ["gpu-node-002"],
        )
        await page.expect_texts(".tile .big", whole)


def asked(page: Page, by: str) -> int:
    return sum(request.endswith(f"/api/v1/rows?by={by}") for request in page.requests)


async def test_rows_are_asked_for_while_they_are_shown_and_once_an_interval(chromium: Browser) -> None:
    document = await demo_document() | {"interval_seconds": 3600.0}
    script = Script(document)
    async with staged(script) as url, chromium.page() as page:
        await page.open(url)
        assert asked(page, "idle") == asked(page, "workloads") == 0
        await page.open(url + "?view=idle")
        await page.until("document.querySelector('.idler') !== null")
        for number in range(1, 6):
            newer = copy.deepcopy(document)
            newer["taken_at"] += number
            del newer["cards"][-number:]
            script.publish(newer)
            await page.expect("document.querySelector('.tile .big').textContent", str(8 - number))
        await page.run("document.querySelector('nav a[data-view=gpus]').click()")
        await page.expect("document.querySelectorAll('.gpu').length", 3)
        assert asked(page, "idle") == 1


async def test_newer_rows_follow_a_newer_document(chromium: Browser) -> None:
    document = await demo_document() | {"interval_seconds": 0.1}
    script = Script(document)
    async with staged(script) as url, chromium.page() as page:
        await page.open(url + "?view=workloads&q=chat")
        await page.until("document.querySelector('.workload') !== null")
        newer = copy.deepcopy(document)
        newer["taken_at"] += 1
        (chat,) = [tenant for tenant in tenants(newer) if tenant["container"]["pod"].startswith("chat")]
        chat["booking"]["power_watts"] = 123.0
        script.publish(newer)
        await page.until("document.querySelector('.workload .watts').textContent === '123 W'")


async def test_after_a_round_of_a_cluster_the_rows_are_those_of_its_end(chromium: Browser) -> None:
    """Its document changes node by node, faster than rows are asked for."""
    document = cluster_of(await demo_document(), NODES) | {"interval_seconds": 1.0}
    script = Script(document)
    async with staged(script) as url, chromium.page() as page:
        await page.open(url + "?view=workloads&q=chat")
        await page.until("document.querySelector('.workload') !== null")
        newer = copy.deepcopy(document)
        for row in newer["nodes"]:
            newer["taken_at"] += 0.5
            for tenant in tenants(row["snapshot"]):
                if tenant["container"]["pod"].startswith("chat"):
                    tenant["booking"]["power_watts"] = 100.0
            script.publish(copy.deepcopy(newer))
            await page.frames()
        await page.until("document.querySelector('.workload .watts').textContent === '300 W'")
        assert asked(page, "workloads") <= 1 + NODES


async def test_rows_that_cannot_be_had_are_named_and_the_page_stands(chromium: Browser) -> None:
    script = Script(await demo_document())
    script.are_rows_broken = True
    async with staged(script) as url, chromium.page() as page:
        await page.open(url + "?view=idle")
        await page.expect_text(".empty", "this page failed")
        await page.expect("document.querySelector('.tile .big').textContent", "8")


async def test_freshness_goes_by_the_interval_of_whoever_made_the_document(chromium: Browser) -> None:
    document = cluster_of(await demo_document() | {"interval_seconds": 1.0}, NODES)
    async with staged(Script(document)) as url, chromium.page() as page:
        await page.open(url)
        await page.expect(STATE, "3 nodes, live, every 15 s")
        await page.run(LATER)
        await page.expect(STATE, "3 nodes, stale: numbers are 1 h old")


async def test_a_recording_is_neither_live_nor_stale(chromium: Browser) -> None:
    document = await demo_document() | {"demo": False, "interval_seconds": 0.1}
    for is_replayed, state in ((False, "stale: numbers are 1 h old"), (True, "recorded, every 100 ms")):
        async with staged(Script(document | {"replayed": is_replayed})) as url, chromium.page() as page:
            await page.open(url)
            await page.run(LATER)
            await page.expect(STATE, state)


async def test_busy_and_power_say_of_which_time_they_are(chromium: Browser) -> None:
    document = await demo_document()
    script = Script(document)
    async with staged(script) as url, chromium.page() as page:
        await page.open(url)
        await page.expect(
            "[...document.querySelectorAll('.heads span')].slice(2).map(e => e.textContent)",
            ["Busy since the previous reading", "Power in the same time"],
        )
        newer = copy.deepcopy(document)
        card = next(card for card in newer["cards"] if len(card["tenants"]) == 3)
        band = {
            "elapsed_us": 60_000_000,
            "booked_us": 12_000_000,
            "least_us": 6_000_000,
            "most_us": 18_000_000,
        }
        sure: Document = {"certainty": "bounded"}
        likely: Document = {"certainty": "estimated", "likely_least_us": 9_000_000, "likely_most_us": 15_000_000}
        for tenant, certainty in zip(card["tenants"], (sure, likely, likely), strict=True):
            energy = {"booked_mj": 600_000, "least_mj": 0, "most_mj": 1_800_000}
            tenant["booking"]["band"] = band | energy | certainty
        card["balance"]["band"] = band | {
            "booked_us": 36_000_000,
            "booked_mj": 1_800_000,
            "least_mj": 0,
            "most_mj": 1_800_000,
            "certainty": "exact",
        }
        script.publish(newer)
        await page.until("document.querySelectorAll('.heads span')[2].textContent.includes('last full minute')")
        index = card["gpu"]["index"]
        row = f"[...document.querySelectorAll('.gpu')].find(e => e.querySelector('b').textContent === '{index}')"
        await page.until(f"{row}.querySelector('.busy .label').textContent.startsWith('60% · ')")
        await page.until(f"{row}.querySelector('.busy .label').title.includes('20% (10–30)')")
        await page.until(f"{row}.querySelector('.busy .label').title.includes('20% (~15–25)')")
        await page.until(f"{row}.querySelector('.power .label').title.includes('in the last full minute')")


async def facts(page: Page, url: str, pod: str) -> str:
    await page.open(f"{url}?pod={pod}")
    await page.expect_text(".podpage:has(.facts) h2", pod)
    return await page.text(".podpage")


async def test_a_pod_has_its_state_in_the_words_of_every_screen(chromium: Browser) -> None:
    document = await demo_document()
    now = document["taken_at"]
    first, second, third = (named(document, pod) for pod in ("pretrain-0", "pretrain-1", "notebook-5"))
    second["booking"] = {key: value for key, value in second["booking"].items() if key != "sm_ratio"}
    second.pop("idle", None)
    third["booking"].pop("last_active_at", None)
    third["held_since"] = now - 60
    document["watched_since"] = now - 3600
    first["booking"]["last_active_at"] = now
    async with staged(Script(document)) as url, chromium.page() as page:
        assert "Stateworking" in (await facts(page, url, "research/pretrain-0")).replace("\t", "")
        unknown = await facts(page, url, "research/pretrain-1")
        assert "unknown" in unknown and "Whether it has a process on the card is not known." in unknown
        waiting = await facts(page, url, "lab/notebook-5")
        assert "waiting for its first use" in waiting and "no use of the card was seen" in waiting
        idle = await facts(page, url, "assist/guard-84fdd-t6n2c")
        assert "idle 60m" in idle and "Since " in idle


async def test_of_a_store_the_page_says_what_it_cannot_hold_and_where_to_ask(chromium: Browser) -> None:
    document = cluster_of(await demo_document(), 1)
    document["nodes"][0]["origin"] = "store"
    for tenant in tenants(document["nodes"][0]["snapshot"]):
        tenant["processes"] = []
    async with staged(Script(document)) as url, chromium.page() as page:
        text = await facts(page, url, "research/pretrain-0-0")
        assert "It keeps numbers, and no processes, claims or other evidence" in text
        assert "podgpu why research/pretrain-0-0 --url http://gpu-node-001:19400" in text
        assert "No process" not in text and "No use is booked" not in text
        assert not [request for request in page.requests if "/api/v1/snapshot" in request]
