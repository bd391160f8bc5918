"""What the page says, in a real browser."""

import re

import msgspec

from podgpu.model import Cluster
from podgpu.views import json
from podgpu.views.cluster import json as cluster_json
from tests.agreement.facts import (
    ADVICE,
    BUSY,
    GPUS,
    HELD,
    PROBLEMS,
    UNUSED,
    UNUSED_PODS,
    WASTE,
    Facts,
    listed,
)
from tests.browser.chromium import Browser, Page
from tests.browser.stage import Script, staged

_TILE = """[...document.querySelectorAll('.tile')].map((one) =>
  [...one.querySelectorAll('dt, dd.big, dd.dim')].map((part) => part.textContent))"""
_ALERTS = """[...document.querySelectorAll('.alert:not(.gone, .none) .what')].map((one) => {
  const next = one.querySelector('.next')?.textContent ?? '';
  const where = one.querySelector('.where') ? `${one.querySelector('.where').textContent}: ` : '';
  return [one.textContent.slice(where.length, one.textContent.length - next.length), next.trim()];
})"""


async def said(chromium: Browser, cluster: Cluster) -> dict[str, Facts]:
    """The overview of the page: its totals, and its list of problems with all of them shown."""
    (node, *others) = cluster.nodes
    written = cluster_json.encode(cluster) if others or node.snapshot is None else json.encode(node.snapshot)
    script = Script(msgspec.json.decode(written, type=dict))
    async with staged(script) as url, chromium.page(1400, 1200) as page:
        await page.open(url)
        await page.until("document.querySelector('.tile .big')?.textContent")
        await page.run("document.querySelector('.more:not([hidden])')?.click()")
        await page.expect(
            "document.querySelectorAll('.alert:not(.gone, .none)').length",
            len(script.state["insight"]["problems"]),
        )
        tiles = {name: (value, about) for name, value, about in await page.run(_TILE)}
        problems = await page.run(_ALERTS)
        waste = await _waste(page)
        assert not page.complaints
    return {"page": _totals(tiles) | _problems(problems) | {WASTE: waste}}


async def _waste(page: Page) -> str:
    """The sentences of the idle view, once the server's rows are there."""
    await page.run("document.querySelector('nav a[data-view=idle]').click()")
    await page.until(
        "document.querySelector('.idler, .empty:not([hidden])')?.textContent.includes('asked') === false"
    )
    return " ".join(" ".join(await page.texts(".waste:not([hidden]) li span")).split())


def _totals(tiles: dict[str, tuple[str, str]]) -> Facts:
    facts = {GPUS: tiles["GPUs"][0], UNUSED: tiles["Held, not used"][0].split()[0]}
    held = re.search(r"([0-9.,]+) of [0-9.,]+ GPUs?", tiles["Allocated"][1])
    busy = re.search(r"([0-9.,]+) of [0-9.,]+ GPUs?|([0-9.,]+) GPUs?", tiles["Truly busy"][1])
    pods = re.search(r"by ([0-9,]+) pods?", tiles["Held, not used"][1])
    facts |= {HELD: held[1]} if held else {}
    if busy and "not known" not in tiles["Truly busy"][1]:
        facts[BUSY] = busy[1] or busy[2]
    facts[UNUSED_PODS] = pods[1] if pods else "0"
    return facts


def _problems(found: list[list[str]]) -> Facts:
    return {PROBLEMS: listed(text for text, _ in found), ADVICE: listed(map(" ".join, found))}
