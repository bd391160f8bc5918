"""The page with a thousand GPUs in a real browser: how soon it can be used, how smoothly it scrolls, what it holds.

python -m bench.web.page [seconds of watching the heap]
"""

import asyncio
import copy
import random
import statistics
import sys
from collections.abc import Sequence
from typing import Any

import msgspec

from podgpu.model import Snapshot
from podgpu.serve.pages import BodyPart
from podgpu.views import json
from podgpu.views.cluster.json import slim
from tests.browser.chromium import Page, browser
from tests.browser.stage import Document, Script, cluster_of, demo_document, staged

NODES = 125  # of eight GPUs each
ROWS = 3  # in a part of a change, as the server divides them
VARIANTS = 4
SCROLLED = 600  # frames
SAME_FRAME_US = 2000  # two functions may be called for one frame
CATEGORIES = ["toplevel", "devtools.timeline", "disabled-by-default-devtools.timeline"]

CLOCKS = """
window.clocks = {};
const Ours = window.Worker;
window.Worker = class extends Ours {
  constructor(...all) {
    super(...all);
    super.addEventListener('message', () => { clocks.arrived ??= performance.now(); });
  }
};
new MutationObserver(() => {
  if (clocks.drawn || !document.querySelector('.item')) return;
  clocks.drawn = performance.now();
  requestAnimationFrame(() => setTimeout(() => { clocks.ready = performance.now(); }));
}).observe(document, { subtree: true, childList: true });
"""
SCROLL = f"""new Promise(done => {{
  const frames = []; let last = performance.now(), at = 0;
  const step = now => {{
    frames.push(now - last); last = now; at += 48;
    if (at > document.documentElement.scrollHeight) at = 0;
    scrollTo(0, at);
    if (frames.length < {SCROLLED}) requestAnimationFrame(step); else done(frames.slice(5));
  }};
  requestAnimationFrame(step);
}})"""


class Ready(Script):
    """Documents that are encoded before anything is measured: the server shares the machine with the browser."""

    def __init__(self, documents: Sequence[Document]) -> None:
        super().__init__(documents[0])
        self.documents = documents
        self._whole = {id(document): (BodyPart(msgspec.json.encode(document)),) for document in documents}
        self._parts = {id(document): self._divided(document) for document in documents}

    async def document(self, state: Document) -> Sequence[BodyPart]:
        return self._whole[id(state)]

    async def change(self, before: Document, after: Document) -> Sequence[Sequence[BodyPart]]:
        return self._parts[id(after)]

    async def play(self) -> None:
        """Change every node once a second."""
        number = 0
        while True:
            number += 1
            self.publish(self.documents[number % VARIANTS])
            await asyncio.sleep(1)

    @staticmethod
    def _divided(document: Document) -> list[Sequence[BodyPart]]:
        rows = document["nodes"]
        head = {name: value for name, value in document.items() if name != "nodes"}
        return [
            (BodyPart(msgspec.json.encode({**(head if at == 0 else {}), "rows": rows[at : at + ROWS]})),)
            for at in range(0, len(rows), ROWS)
        ]


async def documents() -> list[Document]:
    full = msgspec.json.encode(await demo_document())
    snapshot: Snapshot = json.decode(full)
    slimmed = msgspec.json.decode(json.encode(slim(snapshot)), type=dict[str, Any])
    first = cluster_of(slimmed | {"demo": False}, NODES)
    return [first, *(_varied(first, number) for number in range(1, VARIANTS))]


def _varied(first: Document, number: int) -> Document:
    document = copy.deepcopy(first)
    document["taken_at"] += number
    for row in document["nodes"]:
        row["snapshot"]["taken_at"] += number
        for card in row["snapshot"]["cards"]:
            for tenant in card["tenants"]:
                ratio = tenant["booking"].get("sm_ratio")
                if ratio:
                    tenant["booking"]["sm_ratio"] = min(1.0, ratio * random.uniform(0.5, 1.2))
    return document


def busy_per_frame(trace: Sequence[Any]) -> list[float]:
    """Milliseconds of CPU time that the page's own thread took for each frame."""
    threads = {
        (event["pid"], event["tid"])
        for event in trace
        if event["name"] == "thread_name" and event["args"]["name"] == "CrRendererMain"
    }
    frames: dict[tuple[int, int], list[float]] = {}
    for event in trace:
        if event["name"] == "FireAnimationFrame" and (event["pid"], event["tid"]) in threads:
            frames.setdefault((event["pid"], event["tid"]), []).append(event["ts"])
    main = max(frames, key=lambda key: len(frames[key]))
    starts: list[float] = []
    for at in sorted(frames[main]):
        if not starts or at - starts[-1] > SAME_FRAME_US:
            starts.append(at)
    tasks = sorted(
        (event["ts"], event.get("tdur", 0) / 1000)
        for event in trace
        if event["name"] == "RunTask" and (event["pid"], event["tid"]) == main and event["ph"] == "X"
    )
    found, place = [0.0] * len(starts), 0
    for at, took in tasks:
        while place + 1 < len(starts) and starts[place + 1] <= at:
            place += 1
        found[place] += took
    return found[5:-5]


async def heap_mib(page: Page) -> float:
    await page.send("HeapProfiler.collectGarbage", patience=60)
    return float((await page.send("Runtime.getHeapUsage"))["usedSize"]) / 2**20


def p95(values: Sequence[float]) -> float:
    return statistics.quantiles(values, n=20)[18]


async def scrolled(page: Page) -> tuple[list[float], list[float]]:
    page.trace.clear()
    page.traced.clear()
    await page.send("Tracing.start", transferMode="ReportEvents", traceConfig={"includedCategories": CATEGORIES})
    frames = await page.run(SCROLL, 300)
    await page.send("Tracing.end")
    await asyncio.wait_for(page.traced.wait(), 120)
    return frames, busy_per_frame(page.trace)


async def report(when: str, page: Page) -> None:
    frames, busy = await scrolled(page)
    print(
        f"scrolling, {when}: a frame takes {p95(busy):.1f} ms of processor time at the 95th percentile, "
        f"{statistics.median(busy):.1f} at the median; frames are {p95(frames):.1f} ms apart"
    )


async def measure(seconds: float) -> None:
    script = Ready(await documents())
    async with staged(script) as url, browser() as chromium, chromium.page(1280, 900) as page:
        await page.send("Page.addScriptToEvaluateOnNewDocument", source=CLOCKS)
        await page.open(url)
        await page.until("clocks.ready > 0")
        clocks = await page.run("clocks")
        print(
            f"interactive {clocks['ready'] - clocks['arrived']:.0f} ms after the document of {NODES * 8} GPUs arrived"
        )
        await report("while nothing changes", page)
        player = asyncio.create_task(script.play())
        await report("while every node changes each second", page)
        start = await heap_mib(page)
        heaps = []
        while seconds > 0:
            await asyncio.sleep(min(20.0, seconds))
            seconds -= 20
            heaps.append(await heap_mib(page))
            print(f"heap {heaps[-1]:.1f} MiB", flush=True)
        if heaps:
            print(f"heap: {start:.1f} MiB at first, {heaps[-1]:.1f} at last, {max(heaps):.1f} at most")
        player.cancel()


if __name__ == "__main__":
    asyncio.run(measure(float(sys.argv[1]) if len(sys.argv) > 1 else 600.0))
