"""What the page says, in a real browser."""

import re

import msgspec

from podgpu import numbers
from podgpu.insight.rows import workloads
from podgpu.model import Card, Cluster
from podgpu.views import json
from podgpu.views.cluster import json as cluster_json
from tests.agreement.certainty import of_legend, of_text
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
    dark_of_text,
    listed,
    of_group,
    of_node,
    of_pod,
)
from tests.agreement.tables import STATES
from tests.browser.chromium import Browser, Page
from tests.browser.stage import Script, staged

SHOWN = 40  # nodes whose rows are all on a tall screen
_TILE = """[...document.querySelectorAll('.tile')].map((one) =>
  [...one.querySelectorAll('dt, dd.big, dd.dim')].map((part) => part.textContent))"""
# The numbers of each pod, by what they are.
_TENANTS = """Object.fromEntries([...document.querySelectorAll('.gpupage .box:has(h3 a)')].map(box => [
  box.querySelector('h3 a').textContent, Object.fromEntries([...box.querySelectorAll('.facts tbody tr')].map(
    row => [row.children[0].textContent, row.children[1].textContent]))]))"""
_WORKLOADS = """[...document.querySelectorAll('.item.workload')].map((one) => [
  ...['.who a', '.who small', '.busy .label'].map((part) => one.querySelector(part).textContent)])"""
_CHOICES = "[...document.querySelectorAll('select[aria-label=Node] option')].map((one) => one.value)"
_ROWS = """[...document.querySelectorAll('.item.work')].map((one) => [
  ...['.who a', '.who .tag'].map((part) => one.querySelector(part).textContent)])"""
_HEADS = """[...document.querySelectorAll('.item.node')].map((one) => [
  ...['h2', '.tag'].map((part) => one.querySelector(part).textContent)])"""
_ALERTS = """[...document.querySelectorAll('.alert:not(.gone, .none) .what')].map((one) => {
  const next = one.querySelector('.next')?.textContent ?? '';
  const where = one.querySelector('.where') ? `${one.querySelector('.where').textContent}: ` : '';
  return [one.textContent.slice(where.length, one.textContent.length - next.length), next.trim()];
})"""


async def said(chromium: Browser, cluster: Cluster) -> dict[str, Facts]:
    """The overview of the page and, of the demo, the pages of its GPUs, each now and in the past; and its workloads."""
    (node, *others) = cluster.nodes
    written = cluster_json.encode(cluster) if others or node.snapshot is None else json.encode(node.snapshot)
    script = Script(msgspec.json.decode(written, type=dict))
    script.past = script.state
    async with staged(script) as url, chromium.page(1400, 1200) as page:
        found = {"page": await _overview(page, url, script)}
        if cluster.demo and not cluster.replayed:
            past = f"at={script.state['taken_at']:.0f}"
            for card in _cards(cluster):
                name = f"page of GPU {card.gpu.index}"
                found[name] = await _gpu(page, f"{url}?gpu={card.gpu.uuid}", card)
                found[f"{name}, in the past"] = await _gpu(page, f"{url}?gpu={card.gpu.uuid}&{past}", card)
                await page.expect_text("#state", "paused")
            found["page, in the past"] = await _overview(page, f"{url}?{past}", script)
            await page.expect_text("#state", "paused")
        assert not page.complaints
        if others:
            found |= await _nodes(chromium, url, cluster)
        if cluster.demo and not cluster.replayed:
            found["page of workloads"] = await _workloads(chromium, f"{url}?view=workloads", cluster)
    return found


async def _overview(page: Page, url: str, script: Script) -> Facts:
    """Its totals, its list of problems with all of them shown, and who wastes what."""
    await page.open(url)
    await page.until("document.querySelector('.tile .big')?.textContent")
    await page.run("document.querySelector('.more:not([hidden])')?.click()")
    await page.expect(
        "document.querySelectorAll('.alert:not(.gone, .none)').length",
        len(script.state["insight"]["problems"]),
    )
    tiles = {name: (value, about) for name, value, about in await page.run(_TILE)}
    problems = await page.run(_ALERTS)
    legend = await page.text(".legend")
    waste = await _waste(page)
    told = dark_of_text(await page.text("#state")) if "nodes" in script.state else {}
    return _totals(tiles) | _problems(problems) | of_legend(legend) | told | {WASTE: waste}


async def tiles(chromium: Browser, cluster: Cluster) -> dict[str, tuple[str, str]]:
    """The totals, each with what is said below it."""
    script = Script(msgspec.json.decode(cluster_json.encode(cluster), type=dict))
    async with staged(script) as url, chromium.page(1400, 1200) as page:
        await page.open(url)
        await page.until("document.querySelector('.tile .big')?.textContent")
        return {name: (value, about) for name, value, about in await page.run(_TILE)}


async def _nodes(chromium: Browser, url: str, cluster: Cluster) -> dict[str, Facts]:
    """Which nodes are dark, by the rows of nodes, by the filter, and by the list of GPUs. Only what fits is there."""
    async with chromium.page(1400, 9000) as page:
        await page.open(f"{url}?view=nodes")
        await page.until("document.querySelector('.item.work')")
        rows = {of_node(name): _is_dark(tag) for name, tag in await page.run(_ROWS)}
        about = await page.text(".fleet .title p")
        await page.open(f"{url}?state=dark")
        await page.until("document.querySelector('.tile .big')?.textContent")
        listed_nodes = {of_node(name): _is_dark(tag) for name, tag in await page.run(_HEADS)}
        choices = await page.run(_CHOICES)
        assert not page.complaints
    dark = [node.name for node in cluster.nodes if node.is_dark]
    chosen = {of_node(name): "dark" if name in choices else "left out" for name in dark}
    if len(dark) <= SHOWN:
        listed_nodes = dict.fromkeys(map(of_node, dark), "left out") | listed_nodes
    return {"page by node": rows, "page, dark alone": listed_nodes, "page, filter": chosen, "fleet": of_fleet(about)}


def _is_dark(tag: str) -> str:
    return "dark" if tag.startswith("dark") else ""


def of_fleet(text: str) -> Facts:
    found = re.match(r"([0-9,]+) GPUs? on|GPUs not known on", text)
    assert found, text
    return {GPUS: found[1] or numbers.UNKNOWN}


def _cards(cluster: Cluster) -> list[Card]:
    """Those that answer. A pod is on one card of them, unless they have instances."""
    cards = [card for node in cluster.nodes if node.snapshot for card in node.snapshot.cards]
    return [card for card in cards if card.fault is None and not card.instances]


async def _gpu(page: Page, url: str, card: Card) -> Facts:
    """The numbers of each pod on a GPU."""
    await page.open(url)
    await page.expect(f"Object.values({_TENANTS}).filter(facts => facts.Busy).length", len(card.tenants))
    facts: Facts = {}
    for pod, rows in (await page.run(_TENANTS)).items():
        state = rows.get("State", "").split(" ")[0]
        facts |= of_text(pod, rows["Busy"])
        if "Certainty" in rows:
            facts[of_pod(pod, "certainty")] = rows["Certainty"]
        if "Proven" in rows:
            least, most = re.fullmatch(r"between (\d+)% and (\d+)%", rows["Proven"]).groups()  # type: ignore[union-attr]
            facts[of_pod(pod, "proven")] = f"{least}–{most}%"
        facts[of_pod(pod, "power")] = rows["Power"]
        facts[of_pod(pod, "memory")] = rows["Memory"].removesuffix(" GiB").replace("not known", numbers.UNKNOWN)
        facts[of_pod(pod, "state")] = state if state in STATES else ""
    return facts


async def _workloads(chromium: Browser, url: str, cluster: Cluster) -> Facts:
    """The busy time of each workload: how many GPUs it is, then its share with its range. Only what fits is there."""
    facts: Facts = {}
    async with chromium.page(1400, 9000) as page:
        await page.open(url)
        await page.expect(f"{_WORKLOADS}.length", len(workloads(cluster)))
        for name, about, busy in await page.run(_WORKLOADS):
            namespace, *_ = about.split(" · ")
            facts |= of_text(of_group("workloads", namespace, name), busy.split(" · ")[-1].partition(" of ")[0])
        assert not page.complaints
    return facts


async def _waste(page: Page) -> str:
    """The sentences behind the rows of who wastes, all of them in the idle view, once the server's rows are there."""
    await page.run("document.querySelector('nav a[data-view=idle]').click()")
    waits = "document.querySelector('.idler, .empty:not([hidden])')?.textContent.includes('Waiting')"
    await page.until(f"{waits} === false")
    sentences = await page.run("[...document.querySelectorAll('.answer.waste tbody tr')].map((one) => one.title)")
    return " ".join(" ".join(sentences).split())


def _totals(tiles: dict[str, tuple[str, str]]) -> Facts:
    facts = {GPUS: tiles["GPUs"][0], UNUSED: tiles["Held, not used"][0].split()[0]}
    held = re.search(r"([0-9.,]+) of [0-9.,]+ GPUs?", tiles["Allocated"][1])
    busy = re.search(r"([0-9.,]+) of [0-9.,]+ GPUs?|([0-9.,]+) GPUs?", tiles["Truly busy"][1])
    pods = re.search(r"by ([0-9,]+) pods?", tiles["Held, not used"][1])
    facts |= {HELD: held[1]} if held else {HELD: numbers.UNKNOWN} if "not known" in tiles["Allocated"][1] else {}
    if busy and "not known" not in tiles["Truly busy"][1]:
        facts[BUSY] = busy[1] or busy[2]
    facts[UNUSED_PODS] = pods[1] if pods else "0" if facts[UNUSED] != numbers.UNKNOWN else numbers.UNKNOWN
    return facts


def _problems(found: list[list[str]]) -> Facts:
    return {PROBLEMS: listed(text for text, _ in found), ADVICE: listed(map(" ".join, found))}
