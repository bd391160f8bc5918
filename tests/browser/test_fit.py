"""What fits, on the page, in a real browser: the rows of the command, from the same statement."""

import pytest

from podgpu.model.fit import FitAdvice, FitStatement, WorkloadName
from podgpu.views.fit import fit_table
from tests.browser.chromium import Browser
from tests.browser.stage import Document, Script, cluster_of, demo_document, staged

pytestmark = pytest.mark.asyncio(loop_scope="package")
GIB = 1 << 30


def _name(namespace: str, name: str, kind: str = "Deployment") -> WorkloadName:
    return WorkloadName(namespace, kind, name, "main", "", "NVIDIA H200")


ROWS = (
    FitAdvice(
        workload=_name("lab", "notebook-5", "StatefulSet"),
        kind="release",
        why=(
            "Not used at all in the last 14 d. It holds 22.0 GiB of memory.",
            "Watched for 14 d, 100% of it seen.",
        ),
        certainty="high",
        peak_bytes=22 * GIB,
        memory_bytes=141 * GIB,
        busy_ratio=0.0,
        gpus=2.0,
        saved_gpus=2.0,
        saved_per_hour=7.0,
        change="replicas: 0",
    ),
    FitAdvice(
        workload=_name("assist", "chat"),
        kind="smaller",
        to="1g.18gb",
        why=(
            "1g.18gb has 16.0 GiB of memory and 14% of the card; with 20% headroom it needs 13.2 GiB and 9%.",
            "Watched for 14 d, 99% of it seen.",
            "Memory: at most 11.0 GiB of 141.0 GiB; 10.4 GiB in 99% of the minutes.",
        ),
        certainty="medium",
        peak_bytes=11 * GIB,
        memory_bytes=141 * GIB,
        busy_ratio=0.09,
        gpus=1.0,
        saved_gpus=6 / 7,
        saved_per_hour=3.0,
        change="nvidia.com/mig-1g.18gb: 1",
    ),
    FitAdvice(
        workload=_name("<b>hostile", "day"),
        kind="share",
        to="1/2 card",
        together=(_name("search", "night"),),
        why=("Their memory peaks fit side by side, and so does their busy time, minute by minute.",),
        certainty="high",
        gpus=1.0,
        saved_gpus=0.5,
        saved_per_hour=1.75,
    ),
    FitAdvice(workload=_name("speech", "asr"), kind="unknown", why=("A day is needed.",), gpus=0.25),
)
STATEMENT = FitStatement(
    start=1_793_000_000.0,
    end=1_794_209_600.0,
    rows=ROWS,
    coverage=0.991,
    gpus=4.25,
    saved_gpus=2.0 + 6 / 7 + 0.5,
    saved_per_hour=11.75,
    currency="EUR",
    demo=True,
)


async def document() -> Document:
    return cluster_of(await demo_document(), 2) | {"has_store": True}


async def test_the_view_has_the_rows_of_the_command(chromium: Browser) -> None:
    script = Script(await document())
    script.fit = STATEMENT
    async with staged(script) as url, chromium.page(1440, 900) as page:
        await page.open(url + "?view=fit")
        # The first answer is that it is being made; the page comes again by itself.
        await page.until("document.querySelector('.fit tbody tr') !== null")
        cells = "[...document.querySelectorAll('.fit tbody tr')].map(row => row.cells[%s].firstChild.textContent)"
        table = fit_table(STATEMENT)
        await page.expect(cells % 0, [table.columns[0].text(row) for row in table.rows])
        await page.expect(cells % 1, [row.kind for row in table.rows])
        about = (
            "DEMO 26 Oct 2026 07:33 to 9 Nov 2026 07:33 UTC · 99% seen · 4 workloads: 1 release, 1 smaller, 1 share, "
            "1 unknown · 3.36 of 4.25 GPUs to save, 11.75 EUR an hour"
        )
        await page.expect_texts(".fit .title + p", [about])
        await page.expect_texts(".fit pre", ["replicas: 0", "nvidia.com/mig-1g.18gb: 1"])
        await page.expect("document.querySelector('.fit b:not(.tag)')", None)
        assert page.complaints == []


async def test_a_store_without_samples_is_said_to_be_so(chromium: Browser) -> None:
    async with staged(Script(await document())) as url, chromium.page() as page:
        await page.open(url + "?view=fit")
        await page.until("document.querySelector('.fit .empty').textContent.startsWith('the store has no samples')")
