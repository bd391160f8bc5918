"""The bill on the page, in a real browser: the numbers of the command, from the same statement."""

from typing import Any

import pytest
from msgspec.structs import replace

from podgpu.cli._output import FOR_PEOPLE
from podgpu.model import ChargePeriod, Coverage, GpuCoverage, Statement, StatementLine
from podgpu.model.statement import total_of
from podgpu.views.statement import report_csv, report_table
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
        charged=None if held is None else round(held * HOUR),
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
OCTOBER = replace(bill("namespace", "research", "search"), start=1_790_812_800.0, end=START)
DAY = 86_400.0


def day(number: int, held: float, busy: float, length: float = DAY) -> ChargePeriod:
    begins = START + number * DAY
    lines = (line("group", held, busy, round(held * 350), namespace="research"), line("free", 24.0, None, 8400))
    return ChargePeriod(start=begins, end=begins + length, lines=lines)


DAILY = replace(BY_NAMESPACE, periods=(day(0, 20.0, 15.0), day(1, 10.0, 2.5), day(2, 4.0, 4.0, 8.5 * 3600)))


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


async def test_waste_is_told_in_money_too(chromium: Browser) -> None:
    async with staged(staged_bill(await document())) as url, chromium.page(1440, 900) as page:
        await page.open(url + "?view=bill")
        wasted = ["1,071.88 EUR", "2,061.06 EUR", "0.00 EUR", "12.25 EUR", "3,145.19 EUR"]
        await page.expect_texts(".bill td[data-name=Wasted] small", wasted)


async def test_last_months_bill_as_csv_takes_three_clicks(chromium: Browser) -> None:
    script = staged_bill(await document())
    script.bills = {**script.bills, "last-month": OCTOBER}
    clicks = 0

    async def click(selector: str, name: str) -> None:
        nonlocal clicks
        clicks += 1
        found = f"[...document.querySelectorAll('{selector}')].find(e => e.textContent === '{name}' && !e.hidden)"
        await page.until(f"Boolean({found})")
        await page.run(f"{found}.click()")

    async with staged(script) as url, chromium.page(1366, 768) as page:
        await page.open(url)
        await click(".controls nav a", "Bill")
        await click(".bill nav a", "Last month")
        await page.expect_text(".bill .title + p", "1 Oct 2026 00:00 to 1 Nov 2026 00:00 UTC")
        await page.run("addEventListener('click', e => (window.saved = e.target.href, e.preventDefault()))")
        await click(".bill a[download]", "CSV")
        saved = await page.run("fetch(window.saved).then(answer => answer.text())")
        assert clicks == 3
        assert saved == report_csv(OCTOBER, {"by": "namespace"})
        await page.expect("location.search", "?view=bill&of=last-month")


async def test_a_bill_is_of_any_days_and_by_any_basis(chromium: Browser) -> None:
    async with staged(staged_bill(await document())) as url, chromium.page() as page:
        await page.open(url + "?view=bill")
        choose = "(e, v) => { e.value = v; e.dispatchEvent(new Event('change')) }"
        for name, value in (("First day, UTC", "2026-10-05"), ("Last day, UTC", "2026-10-12"), ("Basis", "energy")):
            await page.run(f"({choose})(document.querySelector('.bill [aria-label=\"{name}\"]'), '{value}')")
        await page.expect("location.search", "?view=bill&from=2026-10-05&to=2026-10-12&basis=energy")
        query = "by=namespace&from=2026-10-05&to=2026-10-13&basis=energy&per=day"
        await page.expect("document.querySelector('.bill a[download]').search", f"?{query}&format=csv")


async def test_the_trend_is_a_chart_and_a_table(chromium: Browser) -> None:
    script = staged_bill(await document())
    script.bills = {"namespace": DAILY}
    async with staged(script) as url, chromium.page() as page:
        await page.open(url + "?view=bill")
        await page.expect("document.querySelectorAll('.trend .used').length", 3)
        await page.expect("document.querySelectorAll('.trend .wasted').length", 2)
        rows = "[...document.querySelectorAll('.trend tbody tr')].map(row => [...row.cells].map(e => e.textContent))"
        await page.expect(
            rows,
            [
                ["2026-11-01", "20.00", "15.00", "5.00", "17.50", "70.00"],
                ["2026-11-02", "10.00", "2.50", "7.50", "26.25", "35.00"],
                ["2026-11-03, 8 h 30 min", "4.00", "4.00", "0.00", "0.00", "14.00"],
            ],
        )
        assert await serious(page) == []


async def test_a_bill_is_grouped_by_a_label_that_pods_have(chromium: Browser) -> None:
    async with staged(staged_bill(await document())) as url, chromium.page() as page:
        await page.open(url)
        await page.run("[...document.querySelectorAll('.controls nav a')].find(e => e.textContent === 'Bill').click()")
        await page.until("document.querySelector('.bill table') !== null")
        options = (
            "[...document.querySelectorAll('.bill select[aria-label=\"Bill by\"] option')].map(one => one.textContent)"
        )
        await page.expect(options, ["By namespace", "By workload", "By label team"])
        choose = "s => { s.value = 'team'; s.dispatchEvent(new Event('change')) }"
        await page.run(f"({choose})(document.querySelector('.bill select[aria-label=\"Bill by\"]'))")
        await page.until("document.querySelector('.bill tbody th')?.textContent === 'blue'")
        await page.expect("document.querySelector('.bill thead th').textContent", "Team")
        await page.expect("location.search", "?view=bill&by=team")


async def test_what_cannot_be_billed_says_why(chromium: Browser) -> None:
    async with staged(staged_bill(await document())) as url, chromium.page() as page:
        await page.open(url + "?view=bill&by=taem")
        await page.until("document.querySelector('.bill .empty').textContent.startsWith('--by=taem: no pod has')")
        await page.until("document.querySelector('.bill .files').hidden")


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
