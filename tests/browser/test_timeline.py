"""The timeline in a real browser: what is chosen on it is what the whole page shows, and what it showed then."""

import copy
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

import msgspec
import pytest

from podgpu.feed import SnapshotFeed
from podgpu.history.in_memory import InMemoryHistory
from podgpu.history.partitions import BY_CARD, CardOrPods
from podgpu.model import Snapshot
from podgpu.option.value import Address
from podgpu.serve.server import NodeServer
from podgpu.views import json
from tests.browser.axe import serious
from tests.browser.chromium import Browser, Page
from tests.browser.stage import Document, Script, demo_document, staged
from tests.tree import judged

pytestmark = pytest.mark.asyncio(loop_scope="package")

STEP = 300.0
MOMENTS = 13
XID_AT = 6  # the moment before it
CAUSE = 79
LEFT, RIGHT, END, SPACE = 37, 39, 35, 32
SHOWN = "document.querySelector('.gpu .label').textContent"


class Told(SnapshotFeed):
    ready = True

    async def release(self, seconds: float) -> bool:
        return True


def memory(number: int) -> str:
    """What the first GPU shows of its memory at a moment."""
    return f"{10 + number}.0 of 140.4 GiB"


Change = Callable[[Document, int], None]


def taken(document: Document, number: int, change: Change = lambda *_: None) -> Snapshot:
    """The hour's moment of that number: other memory in each, an XID in its midst, and what a test changes."""
    newer = copy.deepcopy(document)
    change(newer, number)
    newer["taken_at"] += STEP * (number - MOMENTS)
    newer["interval_seconds"] = STEP
    for card in newer["cards"]:
        card["balance"]["memory_bytes"] = (10 + number) * 2**30
        card["readings"] = [item for item in card["readings"] if not item["metric"].startswith("xid")]
    if number > XID_AT:
        raised = document["taken_at"] + STEP * (XID_AT - MOMENTS) + 20
        newer["cards"][2]["readings"] += [
            {"metric": "xid_last_code", "value": float(CAUSE)},
            {"metric": "xid_last_timestamp_seconds", "value": raised},
        ]
    return judged(json.decode(msgspec.json.encode(newer)))


@asynccontextmanager
async def served(change: Change = lambda *_: None) -> AsyncIterator[tuple[str, list[Snapshot], Told]]:
    document = await demo_document()
    hour = [taken(document, number, change) for number in range(MOMENTS)]
    history: InMemoryHistory[Snapshot, CardOrPods] = InMemoryHistory(
        BY_CARD, step=5.0, whole_every=5, most_bytes=4 << 20
    )
    for snapshot in hour:
        await history.keep(snapshot)
    feed = Told(hour[-1])
    caps: dict[str, Any] = {
        "series_limit": 10**5,
        "max_requests": 40,
        "max_connections": 100,
        "max_streams": 50,
    }
    server = NodeServer(feed, history=history, **caps)
    await server.start([Address("127.0.0.1", 0)])
    try:
        yield f"http://127.0.0.1:{server.ports[0]}/", hour, feed
    finally:
        await server.stop()


async def mouse(page: Page, kind: str, x: float, y: float) -> None:
    pressed = {"mouseMoved": 1, "mousePressed": 1, "mouseReleased": 0}[kind]
    await page.send("Input.dispatchMouseEvent", type=kind, x=x, y=y, button="left", buttons=pressed, clickCount=1)


async def place_of(page: Page, at: float) -> tuple[float, float]:
    """Where on the screen a time is."""
    await page.until("document.querySelectorAll('.hour path').length")
    found = await page.run(
        "fetch('api/v1/timeline').then(r => r.json()).then(({from, to}) => {"
        "const {left, top, width, height} = document.querySelector('.slide').getBoundingClientRect();"
        f"return [left + width * ({at} - from) / (to - from), top + height - 8]}})"
    )
    return found[0], found[1]


async def test_dragging_turns_the_page_into_that_moment_and_back(chromium: Browser) -> None:
    async with served() as (url, hour, _), chromium.page(1280, 900) as page:
        await page.open(url)
        await page.expect(f"{SHOWN}.startsWith('{memory(12)}')", True)
        x, y = await place_of(page, hour[8].taken_at + 60)
        await mouse(page, "mousePressed", x, y)
        await page.expect(f"{SHOWN}.startsWith('{memory(8)}')", True)
        x, y = await place_of(page, hour[3].taken_at + 60)
        await mouse(page, "mouseMoved", x, y)
        await page.expect(f"{SHOWN}.startsWith('{memory(3)}')", True)
        await mouse(page, "mouseReleased", x, y)
        await page.expect_text(".paused", "paused at ", "Back to live")
        await page.expect_text("#state", "paused")
        assert int(await page.run("new URLSearchParams(location.search).get('at')")) >= hour[3].taken_at
        await page.run("document.querySelector('.paused a').click()")
        await page.expect(f"{SHOWN}.startsWith('{memory(12)}')", True)
        assert await page.run("location.search") == ""
        await page.expect_text("#state", "live")
        assert page.complaints == []


async def test_keys_step_pause_and_go_on(chromium: Browser) -> None:
    async with served() as (url, hour, feed), chromium.page(1280, 900) as page:
        await page.open(url)
        await page.until("document.querySelectorAll('.hour path').length")
        await page.press(" ", text=" ", code=SPACE)
        await page.expect_text(".paused", "paused at ")
        document = await demo_document()
        feed.publish(taken(document, MOMENTS + 5))
        await page.press("ArrowLeft", code=LEFT)
        await page.expect(f"{SHOWN}.startsWith('{memory(11)}')", True)
        slider = "document.querySelector('.slide')"
        await page.run(f"{slider}.focus()")
        await page.press("Home", code=36)
        await page.expect(f"{SHOWN}.startsWith('{memory(1)}')", True)
        await page.expect(f"{slider}.getAttribute('aria-valuetext').includes('GPUs busy')", True)
        assert await page.run(f"Number({slider}.ariaValueNow)") == pytest.approx(hour[1].taken_at, abs=1)
        await page.press("End", code=END)
        await page.expect(f"{SHOWN}.startsWith('{memory(MOMENTS + 5)}')", True)
        await page.expect(f"{slider}.ariaValueText", "live")


async def test_the_mark_of_an_xid_opens_its_card_at_its_moment(chromium: Browser) -> None:
    async with served() as (url, hour, _), chromium.page(1280, 900) as page:
        await page.open(url)
        await page.until("document.querySelectorAll('.mark').length === 1")
        name = await page.run("document.querySelector('.mark').ariaLabel")
        assert name.startswith(f"XID {CAUSE} on {hour[0].node} GPU 2 at ")
        await page.run("document.querySelector('.mark').click()")
        await page.expect("new URLSearchParams(location.search).get('gpu')", hour[0].cards[2].gpu.uuid)
        await page.expect_text(".paused", "paused at ")
        await page.expect_text("#app main", f"XID {CAUSE}")


async def test_a_moment_looks_as_it_did_then(chromium: Browser) -> None:
    """In all views, and on the pages of a pod and of a GPU: everything but the header and the timeline."""
    looks = "[...document.querySelectorAll('.tile .big, .tile dd.dim, .alert, .item, .facts tr')].map(e => e.innerText)"
    async with served() as (url, hour, feed), chromium.page(1280, 2400) as page:
        feed.publish(hour[4])
        gpu = hour[0].cards[2].gpu.uuid
        for query in ("", "view=workloads", "view=idle", "pod=research%2Fpretrain-0", f"gpu={gpu}"):
            feed.publish(hour[4])
            await page.open(f"{url}?{query}")
            await page.until("document.querySelector('.gpu, .work, .facts')")
            await page.frames()
            then = await page.run(looks)
            feed.publish(hour[12])
            await page.open(f"{url}?{query}&at={hour[4].taken_at + 1:.0f}")
            await page.expect_text(".paused", "paused at ")
            await page.expect(looks, then)
            assert len(then) > 8


async def test_a_moment_that_is_not_kept_is_said_to_be_missing(chromium: Browser) -> None:
    async with served() as (url, hour, _), chromium.page(1280, 900) as page:
        await page.open(f"{url}?at={hour[0].taken_at - 500:.0f}")
        await page.expect_text(".banner", "LIVE", "Nothing is kept any more of ", "Kept is ")
        await page.expect(f"{SHOWN}.startsWith('{memory(12)}')", True)


@pytest.mark.parametrize(("scheme", "width"), [("light", 390), ("dark", 1440)])
async def test_axe_finds_nothing_wrong_with_a_moment(chromium: Browser, scheme: str, width: int) -> None:
    async with served() as (url, hour, _), chromium.page(width, 900) as page:
        await page.scheme(scheme)
        await page.open(f"{url}?at={hour[7].taken_at + 1:.0f}")
        await page.expect_text(".paused", "paused at ")
        await page.until("document.querySelectorAll('.mark').length === 1")
        assert await serious(page) == []
        assert await page.run("document.documentElement.scrollWidth") <= width


async def test_its_room_is_reserved_while_nothing_is_known(chromium: Browser) -> None:
    height = "document.querySelector('.timeline').offsetHeight"
    async with staged(Script(await demo_document())) as empty, chromium.page(1280, 900) as page:
        await page.open(empty)
        before = await page.run(height)
        async with served() as (url, _, _):
            await page.open(url)
            await page.until("document.querySelectorAll('.mark').length === 1")
            assert await page.run(height) == before > 50
