"""The page with a fleet of 8,000 GPUs in a real browser: what a frame costs while nodes change and a brush moves.

python -m bench.web.fleet [seconds]
"""

import asyncio
import copy
import statistics
import sys
from collections.abc import Sequence
from typing import Any

import msgspec

from bench.web import page as bench
from podgpu.serve.pages import BodyPart
from podgpu.views import json
from podgpu.views.cluster.json import slim
from tests.browser.chromium import Page, browser
from tests.browser.stage import Document, Script, cluster_of, demo_document, staged

NODES = 1000
ROUND_SECONDS = 15.0  # in which a cluster reads every node once
PARTS = 60  # of a round
LIMIT_MS = 16.0
SCRIPT = ("FunctionCall", "EvaluateScript", "v8.run", "RunMicrotasks")


class Rounds(Script):
    """Every part of a round has newer rows of some nodes, which are encoded before anything is measured."""

    def __init__(self, document: Document) -> None:
        super().__init__(document)
        first = self.state
        self._whole = (BodyPart(msgspec.json.encode(first)),)
        head = {name: value for name, value in first.items() if name != "nodes"}
        size = len(first["nodes"]) // PARTS + 1
        slices = [first["nodes"][at : at + size] for at in range(0, len(first["nodes"]), size)]
        self._changes = [
            [
                (
                    BodyPart(
                        msgspec.json.encode(
                            {**head, "taken_at": at + place, "rows": [_varied(row, turn) for row in rows]}
                        )
                    ),
                )
                for place, rows in enumerate(slices)
            ]
            for turn, at in enumerate((first["taken_at"], first["taken_at"] + PARTS))
        ]
        self._states: list[Document] = [{} for _ in range(2 * len(slices))]
        self._at = {id(state): number for number, state in enumerate(self._states)}

    async def document(self, state: Document) -> Sequence[BodyPart]:
        return self._whole

    async def change(self, before: Document, after: Document) -> Sequence[Sequence[BodyPart]]:
        turn, part = divmod(self._at[id(after)], len(self._changes[0]))
        return [self._changes[turn][part]]

    async def play(self) -> None:
        while True:
            for state in self._states:
                self._feed.publish(state)
                await asyncio.sleep(ROUND_SECONDS / len(self._changes[0]))


def _varied(row: Document, turn: int) -> Document:
    newer = copy.deepcopy(row)
    for card in newer["snapshot"]["cards"]:
        if "use" in card and "ratio" in card["use"]:
            card["use"]["ratio"] = min(1.0, card["use"]["ratio"] * (0.5 + 0.5 * turn))
    return newer


BRUSH = """new Promise(done => {
  const canvas = document.querySelector('.map canvas'), box = canvas.getBoundingClientRect();
  const send = (kind, part) => canvas.dispatchEvent(new PointerEvent(kind, {
    clientX: box.left + box.width * part, clientY: box.top + box.height * part, pointerId: 1, bubbles: true }));
  canvas.setPointerCapture = () => {};
  let frame = 0;
  const step = () => {
    const part = (frame % 120) / 120;
    if (frame % 120 === 0) send('pointerdown', part);
    send('pointermove', part);
    if (frame % 120 === 119) send('pointerup', part);
    frame += 1;
    if (frame < FRAMES) requestAnimationFrame(step); else done(true);
  };
  requestAnimationFrame(step);
})"""
WATCH = """new Promise(done => {
  let n = 0;
  const step = () => ++n < FRAMES ? requestAnimationFrame(step) : done(true);
  step();
})"""


async def traced(page: Page, script: str) -> list[float]:
    page.trace.clear()
    page.traced.clear()
    await page.send("Tracing.start", transferMode="ReportEvents", traceConfig={"includedCategories": bench.CATEGORIES})
    await page.run(script, 300)
    await page.send("Tracing.end")
    await asyncio.wait_for(page.traced.wait(), 120)
    return script_per_frame(page.trace)


def script_per_frame(trace: Sequence[Any]) -> list[float]:
    """Milliseconds of CPU time that the page's scripts took between two frames."""
    frames = [event for event in trace if event["name"] == "FireAnimationFrame"]
    threads = statistics.multimode((event["pid"], event["tid"]) for event in frames)
    main = threads[0]
    starts = sorted(event["ts"] for event in frames if (event["pid"], event["tid"]) == main)
    starts = [at for place, at in enumerate(starts) if not place or at - starts[place - 1] > bench.SAME_FRAME_US]
    calls = sorted(
        (event["ts"], event["ts"] + event.get("dur", 0), event.get("tdur", 0) / 1000)
        for event in trace
        if event["name"] in SCRIPT and (event["pid"], event["tid"]) == main and event["ph"] == "X"
    )
    found, place, end = [0.0] * len(starts), 0, 0.0
    for at, until, took in calls:
        if at < end:
            continue  # within the call before it
        end = until
        while place + 1 < len(starts) and starts[place + 1] <= at:
            place += 1
        found[place] += took
    return found[5:-5]


def told(when: str, found: Sequence[float]) -> None:
    cut = statistics.quantiles(found, n=100)
    over = sum(took > LIMIT_MS for took in found)
    print(
        f"{when}: {statistics.median(found):.1f} ms of script a frame at the median, "
        f"{cut[98]:.1f} at the 99th percentile, "
        f"{max(found):.1f} at most; {over} of {len(found)} frames over {LIMIT_MS:.0f} ms",
        flush=True,
    )


async def fleet() -> Document:
    node = msgspec.json.decode(
        json.encode(slim(json.decode(msgspec.json.encode(await demo_document())))), type=dict[str, Any]
    )
    return cluster_of(node | {"demo": False}, NODES)


async def measure(seconds: float) -> None:
    script = Rounds(await fleet())
    frames = str(int(seconds * 60))
    async with staged(script) as url, browser() as chromium, chromium.page(1440, 900) as page:
        await page.open(url)
        await page.until("document.querySelector('.map canvas').height > 0")
        cells = await page.run("document.querySelector('.map canvas').getBoundingClientRect().height")
        print(f"{NODES * 8} cells are {cells:.0f} pixels high", flush=True)
        told("while nothing changes", await traced(page, WATCH.replace("FRAMES", frames)))
        player = asyncio.create_task(script.play())
        told(
            f"while every node changes in {ROUND_SECONDS:.0f} s",
            await traced(page, WATCH.replace("FRAMES", frames)),
        )
        told("while a brush moves over it, too", await traced(page, BRUSH.replace("FRAMES", frames)))
        player.cancel()


if __name__ == "__main__":
    asyncio.run(measure(float(sys.argv[1]) if len(sys.argv) > 1 else 20.0))
