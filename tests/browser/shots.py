"""Takes the pictures of the docs: python -m tests.browser.shots docs/images

In `reviewed` is the first screen at every width and in every look, for a person to compare when the page changes.
"""

import asyncio
import base64
import copy
import random
import sys
from collections.abc import Mapping
from pathlib import Path

import msgspec
from msgspec.structs import replace

from podgpu.insight import InsightSettings
from podgpu.insight.moments import moment_of_cluster
from podgpu.model import Lanes, Moment, Prices, XidMark
from podgpu.views import json
from tests.browser.chromium import Browser, Page, browser
from tests.browser.stage import Document, Script, cluster_of, demo_document, staged
from tests.browser.test_bill import bill
from tests.browser.test_lanes import minute

SAMPLES = 50
MOMENTS = 240  # of an hour
UNSEEN = range(90, 97)  # of them, while an agent was away
NODES = 96
SETTLE_SECONDS = 0.6
SCREENS = {360: 780, 768: 1024, 1024: 768, 1366: 768, 1920: 1080}
LOOKS = {  # media, and its features
    "light": ("", {"prefers-color-scheme": "light"}),
    "dark": ("", {"prefers-color-scheme": "dark"}),
    "print": ("print", {"prefers-color-scheme": "light"}),
    "forced": ("", {"prefers-color-scheme": "dark", "forced-colors": "active"}),
}
PRICED = InsightSettings(idle_after=1800.0, prices=Prices(currency="EUR", gpu_hour={"*H200*": 3.5}))
WIDEST = 1024  # pixels of a reviewed picture: wider screens are drawn smaller


async def hour(script: Script, page: Page, first: Document) -> None:
    """Let the page see a while go by."""
    change = random.Random(14)
    samples = SAMPLES if len(first.get("nodes", ())) < NODES else 3
    for number in range(1, samples):
        newer = copy.deepcopy(first)
        newer["taken_at"] += 10 * number
        nodes = [row["snapshot"] for row in newer.get("nodes", ())]
        for snapshot in nodes:
            snapshot["taken_at"] += 10 * number
        for snapshot in nodes or [newer]:
            for card in snapshot["cards"]:
                factor = change.uniform(0.75, 1.02)
                _scale(card, factor)
        script.publish(newer)
        await asyncio.sleep(0.03)
        await page.run("new Promise(requestAnimationFrame)")
    script.publish(first | {"taken_at": first["taken_at"] + 10 * samples})
    await asyncio.sleep(SETTLE_SECONDS)
    if any("/api/v1/rows" in request for request in page.requests):
        await asyncio.sleep(first["interval_seconds"])  # they are asked for once an interval


def _scale(card: Document, factor: float) -> None:
    if "busy_ratio" in card.get("balance", {}):
        card["balance"]["busy_ratio"] *= factor
    for item in card["readings"]:
        if item["metric"] == "power_watts":
            item["value"] *= factor
    for tenant in card["tenants"]:
        for name in ("sm_ratio", "power_watts"):
            if name in tenant["booking"]:
                tenant["booking"][name] *= factor


def moments(script: Script) -> list[Moment]:
    """An hour that ends as the document is: each namespace rises and falls by itself, and an XID is in its midst."""
    change = random.Random(7)
    last = moment_of_cluster(script.cluster)
    levels = dict.fromkeys(last.namespaces, 1.0)
    found = []
    for number in range(MOMENTS):
        back = MOMENTS - 1 - number
        for name, level in levels.items():
            levels[name] = min(1.25, max(0.2, level + change.uniform(-0.08, 0.08) + 0.2 * (1 - level) / (back + 1)))
        busy = {name: value * levels[name] for name, value in last.namespaces.items()}
        if number not in UNSEEN:
            at = last.at - 15.0 * back
            hot = int(120 < number < 150)
            xids = (XidMark(at, 31, "gpu-node-1", 2, "GPU-2", "info"),) if number == 170 else ()
            found.append(
                replace(last, at=at, busy_gpus=sum(busy.values()), namespaces=busy, throttled_gpus=hot, xids=xids)
            )
    return found


def fleet(demo: Document) -> Document:
    """Many nodes, no two alike, with what can be wrong."""
    change = random.Random(27)
    document = cluster_of(demo | {"demo": False}, NODES)
    cards = [card for row in document["nodes"] for card in row["snapshot"]["cards"]]
    for card in cards:
        _scale(card, change.choice((0.05, 0.4, 0.7, 0.9, 1.0)))
    for card in change.sample(cards, 4):
        card |= {"fault": {"reason": "lost", "call": "", "detail": "", "seconds": 240.0}, "readings": []}
    for card in change.sample(cards, 3):
        card["readings"] += [{"metric": "xid_last_code", "value": 79.0}]
    for row in document["nodes"]:
        for number, pod in enumerate(row["snapshot"]["pods"]):
            pod["labels"] = {"team": ("research", "search", "speech", "vision")[(number + len(row["name"])) % 4]}
    document["nodes"][7] |= {"state": "stale", "reason": "timeout", "detail": "Read the agent's log."}
    return document


def told(first: Document) -> Script:
    """The document with its last hour and its bill."""
    script = Script(first, PRICED)
    script.bills = {"team": bill("label_team", "research", "search", "speech")}
    script.moments = moments(script)
    part = 0.55 / (script.moments[-1].busy_gpus or 1.0)  # as busy at last as the shared card is
    script.card_busy = [(moment.at, part * (moment.busy_gpus or 0.0)) for moment in script.moments]
    return script


async def review(chromium: Browser, first: Document, name: str, folder: Path) -> None:
    """Take the first screen at every width, in every look."""
    script = told(first)
    async with staged(script) as url, chromium.page() as page:
        await page.open(url)
        for width, height in SCREENS.items():
            for look, (media, features) in LOOKS.items():
                wanted = [{"name": feature, "value": value} for feature, value in features.items()]
                await page.send("Emulation.setEmulatedMedia", media=media, features=wanted)
                await page.size(width, height)
                script.publish(
                    script.state | {"taken_at": script.state["taken_at"] + 1}
                )  # the map is drawn again with it
                await asyncio.sleep(2 * SETTLE_SECONDS)
                await page.run(f"dispatchEvent(new Event('{'before' if media else 'after'}print'))")
                await page.frames()
                clip = {"x": 0, "y": 0, "width": width, "height": height, "scale": min(1.0, WIDEST / width)}
                shot = await page.send("Page.captureScreenshot", format="png", clip=clip)
                path = folder / f"{name}-{width}-{look}.png"
                await asyncio.to_thread(path.write_bytes, base64.b64decode(shot["data"]))
                print(path, path.stat().st_size)


async def take(
    chromium: Browser,
    first: Document,
    path: Path,
    query: str,
    width: int,
    height: int,
    scheme: str,
    lanes: Mapping[str, Lanes] = {},
) -> None:
    script = told(first)
    script.lanes = lanes
    async with staged(script) as url, chromium.page(width, height) as page:
        await page.scheme(scheme)
        await page.open(url + query)
        await hour(script, page, first)
        shot = await page.shot()
        await asyncio.to_thread(path.write_bytes, shot)
        print(path, len(shot))


async def main(folder: Path) -> None:
    demo = await demo_document()
    cluster = cluster_of(demo | {"demo": False}, 12)
    many = fleet(demo)
    snapshot, card, lanes = await minute()
    uuid = card.gpu.uuid
    shared = msgspec.json.decode(json.encode(snapshot), type=dict)
    pod = "?pod=search%2Fscore-nightly-28841-kd5vt"
    async with browser() as chromium:
        await take(chromium, demo, folder / "page-light.png", "", 1160, 872, "light")
        await take(chromium, demo, folder / "page-dark.png", "", 1160, 872, "dark")
        await take(chromium, many, folder / "page-fleet.png", "", 1280, 840, "light")
        await take(chromium, many, folder / "page-teams.png", "?view=teams&colour=team", 1280, 760, "dark")
        await take(chromium, cluster, folder / "page-workloads.png", "?view=workloads", 1280, 700, "dark")
        bills = cluster | {"has_store": True}
        await take(chromium, bills, folder / "page-bill.png", "?view=bill&by=team", 1280, 860, "light")
        await take(chromium, demo, folder / "page-pod.png", pod, 1280, 840, "light")
        gpu = folder / "page-gpu.png"
        await take(chromium, shared, gpu, f"?gpu={uuid}", 1280, 900, "light", {uuid: lanes})
        await take(chromium, demo, folder / "page-phone.png", "", 360, 1200, "light")
        await take(chromium, demo, folder / "page-phone-dark.png", "?view=idle", 360, 900, "dark")
        (folder / "reviewed").mkdir(exist_ok=True)
        await review(chromium, many, "fleet", folder / "reviewed")


if __name__ == "__main__":
    asyncio.run(main(Path(sys.argv[1])))
