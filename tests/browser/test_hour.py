"""The hour for everything, by an on-call engineer's hands: how many clicks each answer takes, and what stays of it."""

import asyncio
import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from msgspec.structs import replace

from podgpu import numbers
from podgpu.agent.playback import Playback
from podgpu.assembly.agent import open_agent
from podgpu.assembly.server import open_cluster_pages, open_recorded_history
from podgpu.config import Config
from podgpu.config.precedence import load
from podgpu.history.in_memory import InMemoryHistory
from podgpu.history.parted_state import PartedState
from podgpu.history.partitions import BY_NODE
from podgpu.insight import reconclude
from podgpu.model import Cluster, ClusterNode
from podgpu.option.value import Address
from podgpu.serve.cluster.server import ClusterServer
from podgpu.serve.server import NodeServer
from tests.browser.axe import serious
from tests.browser.chromium import Browser, Page
from tests.browser.stage import Document
from tests.browser.test_timeline import CAUSE, SHOWN, memory, mouse, place_of, served
from tests.cluster.nodes import card, fresh, tenant
from tests.patience import until
from tests.serve.cluster.test_server import StubFeed
from tests.tree import SETTINGS

pytestmark = pytest.mark.asyncio(loop_scope="package")

ENTER = 13
CAPTION = "[...document.querySelectorAll('.chart figcaption b')].map(e => e.textContent)"
CHARTS = "document.querySelectorAll('.chart .plot svg').length"


def another_pod(document: Document, number: int) -> None:
    """At each moment, another pod is on the first GPU."""
    document["cards"][0]["tenants"][0]["container"]["pod"] = f"job-{number}"


class Hand:
    """Counts what a person does."""

    def __init__(self, page: Page) -> None:
        self._page = page
        self.clicks = self.entries = 0

    async def click(self, selector: str) -> None:
        place = await self._page.until(
            "(({left, top, width, height}) => [left + width / 2, top + height / 2])"
            f"(document.querySelector({selector!r}).getBoundingClientRect())"
        )
        await self.click_at(*place)

    async def click_at(self, x: float, y: float) -> None:
        for kind in ("mousePressed", "mouseReleased"):
            await mouse(self._page, kind, x, y)
        self.clicks += 1

    async def enter(self, text: str) -> None:
        """Reach the field by its key, write, and press Enter."""
        await self._page.press("t", text="t", code=84)
        await self._page.expect("document.activeElement.id", "goto")
        await self._page.send("Input.insertText", text=text)
        await self._page.press("Enter", text="\r", code=ENTER)
        self.entries += 1


async def test_the_pod_on_a_gpu_twenty_minutes_ago_takes_an_entry_and_a_click(chromium: Browser) -> None:
    async with served(another_pod) as (url, hour, _), chromium.page(1366, 768) as page:
        await page.open(url)
        await page.until("document.querySelectorAll('.hour path').length")
        hand = Hand(page)
        await hand.enter("20m")
        await page.expect(f"{SHOWN}.startsWith('{memory(8)}')", True)
        await hand.click(".gpu .number")
        await page.expect_text(".gpupage", "research/job-8")
        assert (hand.entries, hand.clicks) == (1, 1)
        assert hour[12].taken_at - hour[8].taken_at == 20 * 60


async def test_the_same_takes_two_clicks_without_the_keyboard(chromium: Browser) -> None:
    async with served(another_pod) as (url, hour, _), chromium.page(1366, 768) as page:
        await page.open(url)
        hand = Hand(page)
        await hand.click_at(*await place_of(page, hour[8].taken_at + 60))
        await page.expect(f"{SHOWN}.startsWith('{memory(8)}')", True)
        await hand.click(".gpu .number")
        await page.expect_text(".gpupage", "research/job-8")
        assert hand.clicks == 2


async def test_the_field_takes_the_readers_own_clock(chromium: Browser) -> None:
    async with served() as (url, hour, _), chromium.page(1366, 768) as page:
        await page.send("Emulation.setTimezoneOverride", timezoneId="Asia/Kolkata")
        await page.open(url)
        await page.until("document.querySelectorAll('.hour path').length")
        clock = f"new Date({hour[5].taken_at + 61} * 1000).toTimeString()"
        for text, moment in (
            ((await page.run(clock))[:5], 5),
            (await page.run(f"new Date({hour[3].taken_at + 61} * 1000).toTimeString().slice(0, 8)"), 3),
            ("-40m", 4),
            ("900s", 9),
        ):
            await Hand(page).enter(text)
            await page.expect(f"{SHOWN}.startsWith('{memory(moment)}')", True)


@pytest.mark.parametrize("text", ["noon", "25:00", "14", "", "1e3", "14:03 tomorrow"])
async def test_what_cannot_be_read_is_answered_with_what_can(chromium: Browser, text: str) -> None:
    async with served() as (url, _, _), chromium.page(1366, 768) as page:
        await page.open(url)
        await page.until("document.querySelectorAll('.hour path').length")
        await Hand(page).enter(text)
        await page.expect_text(".tellings", "Write 14:03, 14:03:20, or 20m for 20 minutes ago.", "Kept is ")
        assert await page.run("location.search") == ""
        await page.expect("document.querySelector('#goto').ariaInvalid", "true")


async def test_a_time_before_the_hour_is_said_to_be_gone_and_an_old_link_too(chromium: Browser) -> None:
    async with served() as (url, hour, _), chromium.page(1366, 768) as page:
        await page.open(url)
        await page.until("document.querySelectorAll('.hour path').length")
        await Hand(page).enter("3h")
        await page.expect_text(".tellings", "Nothing is kept any more of ", "Kept is ")
        await page.open(f"{url}?at={hour[0].taken_at - 500:.0f}")
        await page.expect_text(".banner", "Nothing is kept any more of ", "so you see the present. Kept is ")
        said = await page.text(".banner")
        assert not re.search(r"\d{6}|\dZ", said), said
        await page.open(f"{url}?at={hour[-1].taken_at + 9000:.0f}")
        await page.expect_text(".banner", " has not come yet, so you see the present.")


async def test_the_page_of_a_pod_has_the_whole_hour_as_soon_as_it_is_opened(chromium: Browser) -> None:
    async with served() as (url, hour, _), chromium.page(1366, 900) as page:
        await page.open(f"{url}?pod=research%2Fpretrain-0")
        await page.expect("document.querySelectorAll('.chart path.line').length", 3)
        await page.expect_text(".over", "The last hour", "A moment every 5 min, since ")
        held = hour[-1].cards[0].tenants[0].booking.memory_bytes
        await page.expect(f"{CAPTION}[1]", numbers.memory(held))
        first = await page.run(f"new Date({hour[1].taken_at} * 1000).toTimeString().slice(0, 5)")
        await page.expect_texts(".chart .span span:first-child", [first] * 3, lambda text: text[-5:])


async def test_a_pod_that_has_ended_still_has_its_hour(chromium: Browser) -> None:
    async with served(another_pod) as (url, _, _), chromium.page(1366, 900) as page:
        await page.open(f"{url}?pod=research%2Fjob-4")
        await page.expect_text(".podpage", "It holds no GPU now", "The last hour")
        await page.expect(CHARTS, 0)  # one moment is no line
        await page.open(f"{url}?pod=research%2Fnever")
        await page.expect_text(".podpage", "There are no charts: no pod research/never was on a GPU here")


async def test_every_chart_has_the_xid_and_the_moment_that_is_shown(chromium: Browser) -> None:
    async with served() as (url, hour, _), chromium.page(1366, 900) as page:
        gpu, pod = hour[0].cards[2].gpu.uuid, hour[0].cards[2].tenants[0].container
        for query in (f"gpu={gpu}", f"pod={pod.namespace}%2F{pod.pod}"):
            await page.open(f"{url}?{query}")
            charts = await page.until(f"{CHARTS} > 2 && {CHARTS}")
            await page.expect("document.querySelectorAll('.plot .xid').length", charts)
            await page.expect("document.querySelectorAll('.plot .then').length", 0)
            assert f", XID {CAUSE} at " in await page.run("document.querySelector('.plot svg').ariaLabel")
            now = await page.run(CAPTION)
            await page.open(f"{url}?{query}&at={hour[3].taken_at + 1:.0f}")
            await page.expect("document.querySelectorAll('.plot .then').length", charts)
            await page.expect("document.querySelectorAll('.plot .xid').length", charts)
            assert "at " in (await page.run("document.querySelector('.plot svg').ariaLabel")).split(":", 1)[1][:5]
            assert len(await page.run(CAPTION)) == len(now)


async def test_the_pods_of_a_gpu_stand_on_each_other_in_their_colours(chromium: Browser) -> None:
    async with served() as (url, hour, _), chromium.page(1366, 900) as page:
        shared = hour[-1].cards[4]
        await page.open(f"{url}?gpu={shared.gpu.uuid}")
        names = sorted({f"{each.container.namespace}/{each.container.pod}" for each in shared.tenants})
        await page.expect("[...document.querySelectorAll('.parts a')].map(e => e.textContent)", names)
        looks = "[...document.querySelectorAll('.layer')].map(e => e.classList[1])"
        dots = "[...document.querySelectorAll('.parts .dot')].map(e => e.classList[1])"
        assert await page.run(looks) == await page.run(dots)
        await page.expect_text(".chart.wide", "Busy, by pod")
        await Hand(page).click(".parts a")
        await page.expect("new URLSearchParams(location.search).get('pod')", names[0])


async def test_a_paused_page_looks_paused_from_the_tab_to_the_edge(chromium: Browser) -> None:
    async with served() as (url, hour, _), chromium.page(1366, 768) as page:
        icon = "document.querySelector('link[rel=icon]').href.startsWith('data:')"
        await page.open(url)
        await page.expect(icon, True)  # it counts the problems
        assert "PAUSED" not in await page.run("document.title")
        await page.open(f"{url}?at={hour[8].taken_at + 1:.0f}")
        await page.expect_text(".banner.paused", "PAUSED", "paused at ", ", 20 min ago", "Nothing on it is live.")
        await page.expect("document.title.startsWith('PAUSED ')", True)
        await page.expect(icon, False)
        await page.expect("document.documentElement.classList.contains('past')", True)
        await page.expect("document.querySelector('.live').className", "live past")
        await page.expect_text("#state", "paused at ")
        await page.run("scrollTo(0, 400)")
        await page.frames()
        assert 0 <= await page.run("document.querySelector('.banner.paused').getBoundingClientRect().top") < 60
        await Hand(page).click(".banner.paused a")
        await page.expect_text("#state", "live")
        await page.expect("document.documentElement.classList.contains('past')", False)
        assert "PAUSED" not in await page.run("document.title")


@asynccontextmanager
async def replayed(file: Path) -> AsyncIterator[str]:
    """Serve a recording, as `podgpu agent --source=replay` does."""
    agent = open_agent(load({"source": ["replay"], "replay_file": [str(file)]}, {}))
    assert isinstance(agent, Playback)
    server = NodeServer(
        agent,
        history=open_recorded_history(agent),
        series_limit=10**5,
        max_requests=40,
        max_connections=100,
        max_streams=50,
    )
    await server.start([Address("127.0.0.1", 0)])
    try:
        yield f"http://127.0.0.1:{server.ports[0]}/"
    finally:
        await server.stop()


async def kept_file(page: Page, folder: Path) -> Path:
    """Press the button, and wait for the file."""
    await page.send("Browser.setDownloadBehavior", behavior="allow", downloadPath=str(folder))
    await Hand(page).click(".keep")
    await until(lambda: [file for file in folder.iterdir() if file.suffix == ".recording"])
    await page.expect_text(".kept", ".recording", "is in your downloads")
    return (await asyncio.to_thread(lambda: list(folder.iterdir())))[0]


async def test_keep_gives_a_file_that_podgpu_plays_and_the_page_opens(chromium: Browser, tmp_path: Path) -> None:
    async with served(another_pod) as (url, hour, _), chromium.page(1366, 900) as page:
        await page.open(f"{url}?at={hour[8].taken_at + 1:.0f}")
        await page.expect_text(".paused", "paused at ")
        file = await kept_file(page, tmp_path)
        await page.expect_text(".kept", f"podgpu agent --source=replay --replay.file={file.name}")
        await page.expect_text(".kept", "There is no store here, so this link works at most until ")
        wanted = await page.texts(".gpu .label")
        async with replayed(file) as again:
            await page.open(f"{again}?at={hour[8].taken_at + 1:.0f}")
            await page.expect_text(".paused", "paused at ")
            await page.expect_texts(".gpu .label", wanted)
            await page.expect(f"{SHOWN}.startsWith('{memory(8)}')", True)
            await page.open(f"{again}?pod=research%2Fjob-8&at={hour[8].taken_at + 1:.0f}")
            await page.expect_text(".podpage h2", "research/job-8")
        assert page.complaints == []


async def test_a_moment_of_which_no_file_can_be_made_says_why(chromium: Browser) -> None:
    async with served() as (url, _, _), chromium.page(1366, 900) as page:
        await page.open(url)
        await page.until("document.querySelectorAll('.hour path').length")
        real = "const real = fetch; globalThis.fetch = (path) => String(path).includes('recording')"
        await page.run(f"{real} ? Promise.resolve(new Response('the disk is full', {{status: 500}})) : real(path); 0")
        await Hand(page).click(".keep")
        await page.expect_text(".kept", "There is no file of ", "the disk is full")
        await page.run("document.querySelector('.kept .close').click()")
        await page.expect("document.querySelector('.kept').hidden", True)
        await page.expect("document.activeElement.className", "keep")


NOW = 1_700_000_000.0
DAY = 86_400.0


def cluster(at: float, pod: str) -> Cluster:
    node = fresh("gpu-a", card("GPU-a", tenant(pod)), origin="store" if at < NOW - DAY else "agent")
    made = Cluster(taken_at=at, version="1", name="east", interval_seconds=15.0, has_store=True, nodes=(node,))
    return reconclude(made, SETTINGS)


@asynccontextmanager
async def served_cluster(*, has_store: bool) -> AsyncIterator[str]:
    """A cluster that keeps two minutes, and whose store has days."""
    history: InMemoryHistory[Cluster, ClusterNode] = InMemoryHistory(
        BY_NODE, step=30.0, whole_every=3, most_bytes=4 << 20
    )
    for number in range(5):
        await history.keep(cluster(NOW + 30 * number, f"ml/now-{number}"))

    async def stored(at: float) -> PartedState[Cluster, ClusterNode] | None:
        then = cluster(at, "ml/long-ago")
        return PartedState(at, lambda: (replace(then, nodes=()), iter(then.nodes)), BY_NODE.join)

    server = ClusterServer(
        StubFeed(cluster(NOW + 120, "ml/now-4")),
        open_cluster_pages(Config()),
        max_requests=40,
        max_connections=100,
        max_streams=20,
        past=history,
        stored_moment=stored if has_store else None,
    )
    await server.start([Address("127.0.0.1", 0)])
    try:
        yield f"http://127.0.0.1:{server.ports[0]}/"
    finally:
        await server.stop()


async def test_with_a_store_the_link_outlives_the_hour(chromium: Browser, tmp_path: Path) -> None:
    async with served_cluster(has_store=True) as url, chromium.page(1366, 900) as page:
        await page.open(f"{url}?gpu=GPU-a&at={NOW + 61:.0f}")
        await page.expect_text(".gpupage", "ml/now-2")
        await kept_file(page, tmp_path)
        await page.expect_text(
            ".kept", "This link shows the moment for as long as the store has it", "--node-name=gpu-a"
        )
        link = await page.run("document.querySelector('.kept .link code').textContent")
        assert f"at={NOW + 60:.0f}" in link and "gpu=GPU-a" in link
        # A week later, it is a moment like any other.
        await page.open(f"{url}?gpu=GPU-a&at={NOW - 7 * DAY:.0f}")
        await page.expect_text(".banner.paused", "paused at ")
        await page.expect_text(".gpupage", "ml/long-ago", "This is read from a store.")
        assert page.complaints == []


async def test_a_cluster_says_that_each_agent_keeps_more(chromium: Browser) -> None:
    async with served_cluster(has_store=False) as url, chromium.page(1366, 900) as page:
        await page.open(f"{url}?pod=ml%2Fnow-3")
        await page.expect_text(".over", "A moment every 30 s", "The agent of each node keeps more moments")


@pytest.mark.parametrize(("scheme", "width"), [("light", 360), ("dark", 1366)])
async def test_axe_finds_nothing_and_nothing_is_wider_than_the_screen(
    chromium: Browser, scheme: str, width: int
) -> None:
    async with served() as (url, hour, _), chromium.page(width, 900) as page:
        await page.scheme(scheme)
        gpu = hour[0].cards[4].gpu.uuid
        for query in (f"gpu={gpu}", "pod=research%2Fpretrain-0", ""):
            await page.open(f"{url}?{query}&at={hour[7].taken_at + 1:.0f}")
            await page.expect_text(".paused", "paused at ")
            await page.until("document.querySelectorAll('.mark').length === 1")
            if query:
                await page.until(CHARTS)
            else:
                await Hand(page).click(".keep")
                await page.expect_text(".kept", "is in your downloads")
            assert await serious(page) == []
            assert await page.run("document.documentElement.scrollWidth") <= width
