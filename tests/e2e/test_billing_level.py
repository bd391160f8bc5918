"""A bill from the few series of `--series.level=billing` is the bill from all of them."""

import json
import re
import time
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from podgpu import catalog
from podgpu.cli.main import main
from podgpu.model import Snapshot
from podgpu.views import exposition
from podgpu.views import json as snapshot_json
from podgpu.views.exposition import Format
from podgpu.views.native import families
from podgpu.views.series import BILLED, BILLING, PROCESS, SeriesFilter, count
from tests.e2e import victoria
from tests.e2e.past import DAY, MINUTE
from tests.e2e.rig import demo, eventually, get

pytestmark = pytest.mark.skipif(victoria.PROGRAM is None, reason="victoria-metrics is not installed")

ROOT = Path(__file__).parents[2]
SNAPSHOTS = 6
LEVELS = {
    "all": SeriesFilter(level=PROCESS, detail=True),
    "billing": SeriesFilter(level=BILLING),
}


@pytest.fixture(scope="module")
def snapshots(tmp_path_factory: pytest.TempPathFactory) -> list[Snapshot]:
    """Readings of the demo, one after the other."""
    found: list[Snapshot] = []

    def is_new(snapshot: Snapshot) -> bool:
        return not found or snapshot.taken_at > found[-1].taken_at

    with demo(["native"], tmp_path_factory.mktemp("demo") / "log", "--interval=0.5s") as agent:
        address = f"{agent.urls['native']}/api/v1/snapshot"
        while len(found) < SNAPSHOTS:
            found.append(eventually(lambda: snapshot_json.decode(get(address).body), is_new))
    return found


@pytest.fixture(scope="module")
def start() -> int:
    """So that midnight UTC is in between whenever the test runs."""
    return int(time.time()) // DAY * DAY - DAY - 2 * MINUTE


@pytest.fixture(scope="module")
def store(snapshots: list[Snapshot], start: int, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Each reading is scraped twice, a minute after the other: with all series, and with those of bills."""
    with victoria.victoria(tmp_path_factory.mktemp("store")) as url:
        for level, choice in LEVELS.items():
            for number, snapshot in enumerate(snapshots):
                page = exposition.render(families(snapshot, {}, choice=choice), Format.TEXT).decode()
                stamp = (start + number * MINUTE) * 1000
                lines = (
                    re.sub(r"^(\w+){", rf'\1{{level="{level}",', line)
                    for line in page.splitlines()
                    if not line.startswith("#")
                )
                victoria.keep(url, "".join(f"{line} {stamp}\n" for line in lines))
        yield url


@pytest.fixture
def prices(tmp_path: Path) -> Path:
    file = tmp_path / "prices.yaml"
    file.write_text("currency: EUR\ngpu_hour: {'*': 350.0}\nkwh: 30\n")
    return file


@pytest.mark.parametrize("basis", ["held", "used", "greater", "energy"])
@pytest.mark.parametrize("by", ["namespace", "workload", "pod", "team"])
def test_the_bill_is_the_same(
    by: str, basis: str, store: str, start: int, prices: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    def bill(level: str) -> Any:
        times = [datetime.fromtimestamp(start + at * MINUTE, UTC).isoformat() for at in (0, SNAPSHOTS - 1)]
        words = [
            f"--from={times[0]}",
            f"--to={times[1]}",
            f"--by={by}",
            f"--basis={basis}",
            f"--price={prices}",
        ]
        chosen = [f"--prometheus.url={store}", f'--prometheus.selector=level="{level}"']
        code = main(["report", *words, *chosen, "-o", "json"])
        found = capsys.readouterr()
        assert code == 0, found.err
        return json.loads(found.out)

    whole, small = bill("all"), bill("billing")
    assert len(whole["rows"]) > 3 and whole["total"]["cost"] > 0
    assert small == whole


def test_the_docs_have_its_count(snapshots: list[Snapshot]) -> None:
    """Of the demo's node with 8 GPUs."""
    found = count(families(snapshots[-1], {}, choice=LEVELS["billing"]))
    page = (ROOT / "docs/scale.md").read_text()
    row = re.search(r"with `--series.level=billing` \| ([0-9,]+) \|", page)
    assert row and int(row[1].replace(",", "")) == found


def test_the_rule_of_the_docs_keeps_the_same_families() -> None:
    page = (ROOT / "docs/operations.md").read_text()
    rule = re.search(r"regex: (podgpu_\(build_info.*)", page)
    assert rule
    assert {name for name in catalog.families() if re.fullmatch(rule[1], name)} == BILLED
