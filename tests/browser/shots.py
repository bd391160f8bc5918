"""Takes the pictures of the docs: python -m tests.browser.shots docs/images"""

import asyncio
import copy
import random
import sys
from pathlib import Path

from tests.browser.chromium import Browser, Page, browser
from tests.browser.stage import Document, Script, cluster_of, demo_document, staged
from tests.browser.test_bill import bill

SAMPLES = 50
SETTLE_SECONDS = 0.6


async def hour(script: Script, page: Page, first: Document) -> None:
    """Let the page see a while go by."""
    change = random.Random(14)
    for number in range(1, SAMPLES):
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
    script.publish(first | {"taken_at": first["taken_at"] + 10 * SAMPLES})
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


async def take(
    chromium: Browser, first: Document, path: Path, query: str, width: int, height: int, scheme: str
) -> None:
    script = Script(first)
    script.bills = {"team": bill("label_team", "research", "search", "speech")}
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
    cluster["nodes"][3]["snapshot"]["cards"][5] |= {
        "fault": {"reason": "lost", "call": "", "detail": "", "seconds": 240.0},
        "readings": [],
    }
    cluster["nodes"][7] |= {"state": "stale", "reason": "timeout", "detail": "Read the agent's log."}
    pod = "?pod=search%2Fscore-nightly-28841-kd5vt"
    async with browser() as chromium:
        await take(chromium, demo, folder / "page-light.png", "", 1280, 1000, "light")
        await take(chromium, demo, folder / "page-dark.png", "", 1280, 1000, "dark")
        await take(chromium, cluster, folder / "page-cluster.png", "", 1280, 840, "light")
        await take(chromium, cluster, folder / "page-workloads.png", "?view=workloads", 1280, 700, "dark")
        bills = cluster | {"has_store": True}
        await take(chromium, bills, folder / "page-bill.png", "?view=bill&by=team", 1280, 860, "light")
        await take(chromium, demo, folder / "page-pod.png", pod, 1280, 840, "light")
        await take(chromium, demo, folder / "page-phone.png", "", 360, 1200, "light")
        await take(chromium, demo, folder / "page-phone-dark.png", "?view=idle", 360, 900, "dark")


if __name__ == "__main__":
    asyncio.run(main(Path(sys.argv[1])))
