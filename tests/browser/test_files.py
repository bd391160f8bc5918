"""CSV and JSON of what a list shows, pods that wait, and commands, in a real browser."""

import csv
import json
from io import StringIO
from typing import Any

import pytest

from tests.browser.axe import serious
from tests.browser.chromium import Browser, Page
from tests.browser.stage import Document, Script, cluster_of, demo_document, staged

pytestmark = pytest.mark.asyncio(loop_scope="package")

VIEWS = ("gpus", "workloads", "nodes", "namespaces", "teams", "idle")
# Files are not saved, but kept where a test can read them.
KEEP = """(() => {
  window.saved = [];
  URL.createObjectURL = (blob) => (blob.text().then(text => window.saved.push(text)), 'blob:none');
  HTMLAnchorElement.prototype.click = function () { window.named = this.download; };
})()"""
SAID = "0/12 nodes are available: 12 Insufficient nvidia.com/gpu."


async def saved(page: Page, form: str) -> str:
    await page.run("window.saved.length = 0")
    buttons = "[...document.querySelectorAll('.controls .files button')]"
    await page.run(f"{buttons}.find(e => e.textContent === '{form}').click()")
    return str(await page.until("window.saved[0]"))


async def document() -> Document:
    found = cluster_of(await demo_document(), 2)
    for row in found["nodes"]:
        for pod in row["snapshot"]["pods"]:
            pod["labels"] = {"team": "=blue()"}
    return found


def waiting(found: Document) -> Document:
    since = found["taken_at"] - 5400
    asks = {"namespace": "lab", "name": "next-0", "asks": {"nvidia.com/gpu": "8"}, "since": since, "reason": SAID}
    return found | {"pending": [asks, {"namespace": "lab", "name": "next-1", "asks": {"nvidia.com/mig-1g.18gb": "1"}}]}


@pytest.mark.parametrize("view", VIEWS)
async def test_a_list_is_saved_as_it_is_shown(chromium: Browser, view: str) -> None:
    async with staged(Script(await document())) as url, chromium.page(1366, 4000) as page:
        await page.open(f"{url}?view={view}&namespace=lab")
        await page.until("document.querySelector('.list .item') !== null")
        await page.run(KEEP)
        lines = list(csv.DictReader(StringIO(await saved(page, "CSV"))))
        rows: list[dict[str, Any]] = json.loads(await saved(page, "JSON"))["rows"]
        shown = await page.run("document.querySelectorAll('.list .item:not(.node)').length")
        assert len(lines) == len(rows) == shown > 0
        named = "pod" if view == "idle" else "name"
        assert [line[named].removeprefix("'") for line in lines] == [row[named] for row in rows]
        assert str(await page.run("window.named")).startswith(f"podgpu-{view}-")
        if view == "teams":
            assert lines[0]["name"] == "'=blue()"


async def test_a_failure_to_save_is_said(chromium: Browser) -> None:
    script = Script(await document())
    async with staged(script) as url, chromium.page() as page:
        await page.open(url)
        script.are_rows_broken = True
        await page.run("document.querySelector('.controls .files button').click()")
        await page.expect_text(".controls .files [role=status]", "Not saved")


async def test_pods_that_wait_say_for_what_and_what_is_free(chromium: Browser) -> None:
    async with staged(Script(waiting(await document()))) as url, chromium.page() as page:
        await page.open(url)
        tab = "[...document.querySelectorAll('.controls nav a')].find(e => e.textContent === 'Waiting')"
        await page.run(f"{tab}.click()")
        cells = "[...document.querySelectorAll('.pending tbody tr')].map(row => [...row.cells].map(e => e.textContent))"
        first, second = await page.until(f"(rows => rows.length === 2 && rows)({cells})")
        assert first[:2] == ["lab/next-0", "8 nvidia.com/gpu"]
        assert first[2].startswith("1 h 30 min")
        assert first[3:] == [SAID, "No whole GPU is free."]
        assert second[2:4] == ["not known", "The scheduler has not said why."]
        links = "[...document.querySelectorAll('.pending .files a')].map(e => e.search)"
        await page.expect(links, ["?by=pending&format=csv", "?by=pending"])
        assert page.complaints == []


async def test_where_no_pod_waits_there_is_no_such_tab(chromium: Browser) -> None:
    async with staged(Script(await document())) as url, chromium.page() as page:
        await page.open(url)
        await page.expect("document.querySelector('nav a[data-view=pending]').hidden", value=True)


@pytest.mark.parametrize(("scheme", "width"), [("light", 1366), ("dark", 360)])
async def test_the_list_of_pods_that_wait_fits_and_axe_finds_nothing(
    chromium: Browser, scheme: str, width: int
) -> None:
    async with staged(Script(waiting(await document()))) as url, chromium.page(width, 900) as page:
        await page.scheme(scheme)
        await page.open(f"{url}?view=pending")
        await page.until("document.querySelector('.pending tbody') !== null")
        await page.until(f"document.documentElement.scrollWidth <= {width}")
        assert await serious(page) == []


async def test_a_command_is_copied_by_one_click_and_its_text_is_seen(chromium: Browser) -> None:
    found = await demo_document()
    async with staged(Script(found)) as url, chromium.page() as page:
        await page.open(f"{url}?pod=research%2Fpretrain-0")
        wanted = [
            "kubectl logs -n research pretrain-0 -c trainer",
            "kubectl describe pod -n research pretrain-0",
            "podgpu why research/pretrain-0",
        ]
        await page.expect_texts(".commands code", wanted)
        await page.run("document.querySelector('.commands button').focus()")
        await page.press("Enter", text="\r", code=13)
        await page.until("document.querySelector('.commands button').dataset.done")
        await page.open(f"{url}?gpu={found['cards'][0]['gpu']['uuid']}")
        await page.expect(
            "[...document.querySelectorAll('.commands code')].map(e => e.textContent)[0]", "kubectl cordon gpu-node-1"
        )
        assert await serious(page) == []


async def test_the_list_of_a_node_has_its_commands(chromium: Browser) -> None:
    async with staged(Script(await document())) as url, chromium.page() as page:
        await page.open(f"{url}?node=gpu-node-002")
        wanted = ["kubectl cordon gpu-node-002", "kubectl describe node gpu-node-002"]
        await page.expect_texts(".commands li:not(:last-child) code", wanted)
        await page.run("document.querySelector('select[aria-label=Node]').value = ''")
        await page.run("document.querySelector('select[aria-label=Node]').dispatchEvent(new Event('change'))")
        await page.expect_texts(".commands code", [])
