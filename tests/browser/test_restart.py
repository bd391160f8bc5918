"""The page over the real demo, which is stopped and started again."""

import asyncio
import re
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from tests.browser.chromium import Browser
from tests.browser.stage import Document, Script, cluster_of, demo_document, staged
from tests.browser.steadiness import MOST_SHIFT, shift, watch
from tests.patience import PATIENCE
from tests.ports import quiet_port

pytestmark = pytest.mark.asyncio(loop_scope="package")


@asynccontextmanager
async def demo(port: int) -> AsyncIterator[str]:
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "podgpu", "demo", f"--web.listen-address=127.0.0.1:{port}", "--interval=1s",
        stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.DEVNULL,
    )  # fmt: skip
    try:
        assert process.stdout is not None
        async with asyncio.timeout(PATIENCE):
            while not (found := re.search(rb"page\s+(http://\S+)", await process.stdout.readline())):
                pass
        yield found.group(1).decode()
    finally:
        process.terminate()
        await process.wait()


async def test_the_page_goes_on_when_the_agent_comes_back(chromium: Browser) -> None:
    port = quiet_port()
    async with chromium.page() as page:
        async with demo(port) as url:
            await page.open(url)
            await page.expect_text(".banner", "DEMO")
            await page.until("document.querySelector('#state').textContent.startsWith('live')")
        await page.until("document.querySelector('#state').textContent.includes('connecting again')")
        assert len(await page.texts(".gpu")) == 8, "the last numbers stay"
        async with demo(port):
            await page.until("document.querySelector('#state').textContent.startsWith('live')")
        assert page.complaints == []


STATE = "document.querySelector('#state').textContent"


def unread(document: Document, reason: str, *, later: float) -> Document:
    """What an agent says before its first reading, or while there is none."""
    fault = {"reason": reason, "call": "", "detail": "", "seconds": 0.0}
    part = {"name": "simulator", "up": False, "fault": fault, "duration_seconds": 0.0}
    taken = document["taken_at"] + later
    return document | {"cards": [], "pods": [], "sharing": [], "parts": [part], "taken_at": taken}


def without_pods(document: Document, *, later: float) -> Document:
    """Cards that are read before the kubelet has answered."""
    started = unread(document, "starting", later=later)["parts"]
    cards = [card | {"tenants": [], "rest": [], "balance": None} for card in document["cards"]]
    return document | {"cards": cards, "parts": started, "taken_at": document["taken_at"] + later}


async def test_the_rows_and_the_focus_stay_while_a_source_starts_or_says_nothing(chromium: Browser) -> None:
    document = await demo_document()
    script = Script(document)
    async with staged(script) as url, chromium.page() as page:
        await watch(page)
        await page.open(url)
        await page.until(f"{STATE}.startsWith('live')")
        await page.run("document.querySelector('.gpu .seg[href]').focus()")
        await page.run("window.held = document.activeElement")
        for without, said in (
            (unread(document, "starting", later=1), "starting, waiting for simulator"),
            (without_pods(document, later=2), "starting, waiting for simulator"),
            (unread(document, "stale", later=3), "nothing from simulator"),
        ):
            script.publish(without)
            await page.until(f"{STATE}.startsWith('{said}')")
            await page.until("getComputedStyle(document.querySelector('.list')).opacity < 1")
            assert len(await page.texts(".gpu")) == 8
            assert await page.run("document.activeElement === held")
        await page.expect_text(".alert:not(.gone) .what", "simulator")
        script.publish(document | {"taken_at": document["taken_at"] + 4})
        await page.until(f"{STATE}.startsWith('live')")
        await page.frames()
        assert await page.run("document.activeElement === held && blurs === 0")
        worst, _, moved = await shift(page)
        assert worst <= MOST_SHIFT, moved
        assert page.complaints == []


async def test_a_page_opened_at_the_start_says_what_it_waits_for(chromium: Browser) -> None:
    document = await demo_document()
    script = Script(unread(document, "starting", later=0))
    async with staged(script) as url, chromium.page() as page:
        await page.send("Page.navigate", url=url)
        await page.until("document.querySelector('.loading').textContent.includes('simulator is starting')")
        script.publish(document)
        await page.until("document.querySelectorAll('.gpu').length === 8")
        assert page.complaints == []


async def test_the_rows_of_a_node_stay_in_a_cluster_while_its_agent_starts(chromium: Browser) -> None:
    cluster = cluster_of(await demo_document(), 2)
    script = Script(cluster)
    first, other = cluster["nodes"]
    started = first | {"snapshot": unread(first["snapshot"], "starting", later=1)}
    async with staged(script) as url, chromium.page(1280, 1400) as page:
        await page.open(url)
        await page.until("document.querySelectorAll('.gpu').length === 16")
        script.publish(cluster | {"nodes": [started, other]})
        await page.expect_texts(".node .tag:not([hidden])", ["starting"])
        assert await page.run("document.querySelectorAll('.gpu.old').length") == 8
        script.publish(cluster)
        await page.expect_texts(".node .tag:not([hidden])", [])
        assert await page.run("document.querySelectorAll('.gpu.old').length") == 0
        assert page.complaints == []


SILENCE = """(async () => {
  const [opened, later, checks] = [[], new Map(), []];
  let now = 0;
  Object.assign(globalThis, {
    postMessage: () => {},
    setTimeout: (work) => (later.set(later.size + 1, work), later.size),
    clearTimeout: (number) => later.delete(number),
    setInterval: (check) => checks.push(check),
    EventSource: class {
      static CLOSED = 2;
      constructor() { opened.push(this); }
      addEventListener(kind, take) { this[kind] = take; }
      close() {}
    },
  });
  Date.now = () => now;
  await import('./page/worker.js');
  onmessage({ data: { url: 'api/v1/events' } });
  const [first] = opened;
  first.full({ data: '{"interval_seconds": 1}' });
  first.readyState = EventSource.CLOSED;
  first.onerror();
  for (now = 60000; now < 600000; now += 60000) checks[0]();
  for (const work of later.values()) work();
  return opened.length;
})()"""


async def test_however_long_a_server_refuses_one_stream_is_opened_again(chromium: Browser) -> None:
    async with staged(Script(await demo_document())) as url, chromium.page() as page:
        await page.open(url)
        assert await page.run(SILENCE) == 2
