"""The bill on the page, in a real browser: the numbers of the command, from the same statement."""

from typing import Any

import pytest
from msgspec.structs import replace

from podgpu.cli._output import FOR_PEOPLE
from podgpu.model import Coverage, GpuCoverage, Statement, StatementLine
from podgpu.model.statement import total_of
from podgpu.views.statement import report_table
from tests.browser.axe import serious
from tests.browser.chromium import Browser, Page
from tests.browser.stage import Document, Script, cluster_of, demo_document, staged

pytestmark = pytest.mark.asyncio(loop_scope="package")

HOUR = 3_600_000_000
START = 1_793_491_200.0  # 2026-11-01


def line(kind: str, held: float | None, busy: float | None, cost: int | None, **group: str) -> StatementLine:
    return StatementLine(
        kind=kind,
        group=group,
        held_us=None if held is None else round(held * HOUR),
        busy_us=None if busy is None else round(busy * HOUR),
        energy_mj=0,
        cost_units=cost,
        coverage=0.97 if group else None,
    )


def bill(by: str, *groups: str) -> Statement:
    sums = [(1210.5, 904.25), (620.0, 31.125), (96.75, 120.5), (3.5, 0.0)]
    lines: list[StatementLine] = [
        line("group", held, busy, round(held * 350), **{by: name})
        for name, (held, busy) in zip(groups, sums, strict=False)
    ]
    lines += [
        line("unattributed", None, 1.5, None),
        line("free", 913.125, None, 319_594),
        line("unseen", 15.0, None, 5250),
    ]
    seen = GpuCoverage(
        cluster="", node="gpu-node-001", uuid="GPU-1", model="H200", coverage=Coverage(seen_us=2900 * HOUR)
    )
    gaps = [
        GpuCoverage(
            cluster="",
            node=f"gpu-node-{number:03}",
            uuid=f"GPU-{number}",
            model="H200",
            coverage=Coverage(seen_us=10 * HOUR, unseen_us=3 * HOUR),
        )
        for number in range(2, 7)
    ]
    return Statement(
        start=START,
        end=START + 1_326_600,
        by=(by,),
        lines=tuple(lines),
        total=total_of(lines),
        currency="EUR",
        gpus=6,
        coverage=Coverage(seen_us=2950 * HOUR, unseen_us=15 * HOUR),
        by_gpu=(seen, *gaps),
        demo=True,
    )


BY_NAMESPACE = bill("namespace", "research", "search", "speech", "-hostile <b>")
BY_TEAM = bill("label_team", "blue", "green")


async def document() -> Document:
    found = cluster_of(await demo_document(), 2) | {"has_store": True}
    found["nodes"][0]["snapshot"]["pods"][0]["labels"] = {"team": "blue", "node": "mine"}
    return found


def staged_bill(document: Document) -> Script:
    script = Script(document)
    script.bills = {"namespace": BY_NAMESPACE, "team": BY_TEAM}
    return script


async def rows(page: Page) -> list[list[str]]:
    """The cells of the table, without what explains a row."""
    text = "cell => cell.firstChild?.textContent ?? ''"
    found: list[list[str]] = await page.until(
        "document.querySelector('.bill table') && "
        f"[...document.querySelectorAll('.bill tbody tr')].map(row => [...row.cells].map({text}))"
    )
    return found


def of_command(statement: Statement) -> list[list[str]]:
    assert "table" in FOR_PEOPLE
    table = report_table(statement, {}, has_total=True)
    wanted = ("GPU-HOURS", "BUSY-HOURS", "COST EUR")
    columns = [table.columns[0], *(column for column in table.columns if column.title in wanted)]
    return [[column.text(row) for column in columns] for row in table.rows]


async def test_the_bill_has_the_numbers_of_the_command(chromium: Browser) -> None:
    async with staged(staged_bill(await document())) as url, chromium.page(1440, 900) as page:
        await page.open(url + "?view=bill")
        found = await rows(page)
        assert [[name, held, used, cost] for name, held, used, _, cost, _ in found] == of_command(BY_NAMESPACE)
        assert [row[3] for row in found] == ["306.25", "588.88", "0.00", "3.50", "", "", "", "898.63"]
        assert [row[5] for row in found] == ["97%"] * 4 + [""] * 3 + ["99%"]
        about = "DEMO 1 Nov 2026 00:00 to 16 Nov 2026 08:30 UTC · GPU-hours and EUR · by held time · 99% seen"
        await page.expect_texts(".bill .title + p", [about])
        notice = (
            "Incomplete15 GPU hours of 5 GPUs were not seen, on gpu-node-002, gpu-node-003, gpu-node-004 "
            "and 2 more. See why the agents were not scraped."
        )
        await page.expect_texts(".bill .alerts", [notice])
        asked = next(request for request in page.requests if "/api/v1/report" in request)
        await page.expect("document.querySelector('.bill a[download]').href", f"{asked}&format=csv")
        await page.expect("getComputedStyle(document.querySelector('.filters')).display", "none")
        assert page.complaints == []


async def test_a_bill_is_grouped_by_a_label_that_pods_have(chromium: Browser) -> None:
    async with staged(staged_bill(await document())) as url, chromium.page() as page:
        await page.open(url)
        await page.run("[...document.querySelectorAll('.controls nav a')].find(e => e.textContent === 'Bill').click()")
        await page.until("document.querySelector('.bill table') !== null")
        options = "[...document.querySelectorAll('.bill option')].map(one => one.textContent)"
        await page.expect(options, ["By namespace", "By workload", "By label team"])
        choose = "s => { s.value = 'team'; s.dispatchEvent(new Event('change')) }"
        await page.run(f"({choose})(document.querySelector('.bill select'))")
        await page.until("document.querySelector('.bill tbody th')?.textContent === 'blue'")
        await page.expect("document.querySelector('.bill thead th').textContent", "Team")
        await page.expect("location.search", "?view=bill&by=team")


async def test_what_cannot_be_billed_says_why(chromium: Browser) -> None:
    async with staged(staged_bill(await document())) as url, chromium.page() as page:
        await page.open(url + "?view=bill&by=taem")
        await page.until("document.querySelector('.bill .empty').textContent.startsWith('--by=taem: no pod has')")
        await page.until("document.querySelector('.bill a[download]').hidden")


async def test_without_a_store_there_is_no_bill(chromium: Browser) -> None:
    without = await document() | {"has_store": False}
    async with staged(staged_bill(without)) as url, chromium.page() as page:
        await page.open(url)
        shown = "[...document.querySelectorAll('.controls nav a')].filter(e => !e.hidden).map(e => e.textContent)"
        await page.until(f"(tabs => tabs.includes('By GPU') && !tabs.includes('Bill'))({shown})")
        await page.open(url + "?view=bill")
        await page.expect_text(".bill .empty", "--prometheus.url")
        await page.run("fetch('api/v1/rows?by=idle').then(answer => answer.text())")  # after all it may ask for
        assert not [request for request in page.requests if "/api/v1/report" in request]


async def test_a_complete_bill_without_prices_has_no_notice_and_no_cost(chromium: Browser) -> None:
    def free(own: StatementLine) -> StatementLine:
        return replace(own, cost_units=None)

    seen = Coverage(seen_us=HOUR)
    plain: Any = replace(
        BY_NAMESPACE,
        lines=tuple(map(free, BY_NAMESPACE.lines)),
        total=free(BY_NAMESPACE.total),
        currency="",
        demo=False,
        coverage=seen,
        by_gpu=(),
    )
    script = Script(await document())
    script.bills = {"namespace": plain}
    async with staged(script) as url, chromium.page() as page:
        await page.open(url + "?view=bill")
        assert len((await rows(page))[0]) == 5
        await page.expect_text(".bill .title + p", "no prices")
        await page.expect_texts(".bill .alert", [])


@pytest.mark.parametrize(("scheme", "width"), [("light", 1440), ("dark", 390), ("light", 390), ("dark", 1440)])
async def test_the_bill_fits_and_axe_finds_nothing(chromium: Browser, scheme: str, width: int) -> None:
    async with staged(staged_bill(await document())) as url, chromium.page(width, 900) as page:
        await page.scheme(scheme)
        await page.open(url + "?view=bill")
        await page.until("document.querySelector('.bill table') !== null")
        await page.until(f"document.documentElement.scrollWidth <= {width}")
        overflowing = "[...document.querySelectorAll('.bill td')].filter(e => e.scrollWidth > e.clientWidth + 1).length"
        await page.expect(overflowing, 0)
        assert await serious(page) == []
