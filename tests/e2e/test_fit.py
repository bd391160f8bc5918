"""`podgpu fit` over a day in a real Prometheus and a real VictoriaMetrics, against the workloads that were made up."""

import asyncio
import json
import re
import time
from collections.abc import Iterator
from pathlib import Path
from random import Random

import pytest

from podgpu.cli.main import main
from podgpu.cluster.fit.statement import USUAL_SECONDS, stored_evidence
from podgpu.cluster.fit.store_reader import stored_use
from podgpu.cluster.fit.workload_use import PeriodUse
from podgpu.cluster.report.bill import read_apart
from podgpu.cluster.report.queries import TimeWindow
from podgpu.cluster.store.client import Store
from podgpu.cluster.store.options import StoreOptions
from podgpu.cluster.store.response import StoreFault
from podgpu.insight.fit.statement import FitPeriodFacts
from podgpu.model.fit import FitTerms
from tests.e2e import prometheus, victoria
from tests.e2e.fit_past import IDLE_WATTS, StoredPast
from tests.e2e.stores import STORES, keeping
from tests.insight.fit.planted import (
    DAY,
    Planter,
    demo_weeks,
    fine,
    half_unseen,
    idle,
    out_of_memory,
    oversized,
    portion,
    throttled,
)
from tests.insight.fit.weeks import advice

pytestmark = pytest.mark.skipif(
    prometheus.PROGRAM is None or victoria.PROGRAM is None,
    reason="prometheus or victoria-metrics is not installed",
)

PAGE = (Path(__file__).parents[2] / "docs/fit.md").read_text()
MINUTES = DAY + 60
FAMILIES = (idle, oversized, portion, throttled, out_of_memory, fine, half_unseen)


@pytest.fixture(scope="module")
def past() -> StoredPast:
    planter = Planter(Random(30))
    return StoredPast([make(planter) for make in FAMILIES], MINUTES)


@pytest.fixture(scope="module", params=STORES)
def store(request: pytest.FixtureRequest, past: StoredPast, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with keeping(request.param, past.lines, tmp_path_factory.mktemp("store")) as url:
        yield url


@pytest.fixture(scope="module")
def read(store: str, past: StoredPast) -> PeriodUse:
    return asked(store, TimeWindow(past.start, past.end))


def asked(store: str, window: TimeWindow) -> PeriodUse:
    async def ask() -> PeriodUse:
        client = Store(StoreOptions(url=store), whole=True)
        try:
            return await stored_use(client, window, window.end)
        finally:
            await client.close()

    return asyncio.run(ask())


def test_four_minutes_after_scraping_began_there_is_evidence_and_it_is_a_small_part_of_two_weeks(
    store: str, past: StoredPast
) -> None:
    """Coverage is of the period that was asked for, as in a bill."""
    now = past.start + 240
    found = asked(store, TimeWindow(now - USUAL_SECONDS, now))
    assert found.uses and found.period.step == 60
    assert found.coverage == pytest.approx(240 / USUAL_SECONDS, rel=0.3)


def test_without_a_whole_minute_the_reason_is_not_that_there_are_no_samples(store: str, past: StoredPast) -> None:
    now = past.start + 130.0
    facts = FitPeriodFacts(start=now - 40, end=now)
    with pytest.raises(StoreFault, match="has podgpu's samples, but not of a whole step of 60 seconds"):
        asyncio.run(read_apart(StoreOptions(url=store), lambda client: stored_evidence(client, facts, now)))


def test_the_evidence_is_what_was_made_up(read: PeriodUse, past: StoredPast) -> None:
    assert {use.workload for use in read.uses} == {each.use.workload for each in past.workloads}
    for use in read.uses:
        made = past.use(use.workload)
        assert use.series.memory == made.series.memory, use.workload
        assert use.series.most == pytest.approx(made.series.most, abs=1e-4), use.workload
        assert use.series.least == pytest.approx(made.series.least, abs=1e-4), use.workload
        assert (use.card, use.replicas, use.nodes) == (made.card, made.replicas, made.nodes)
        assert (use.held.kind, use.held.profile) == (made.held.kind, made.held.profile)
        assert use.held.memory_limit_bytes == made.held.memory_limit_bytes
        assert use.watched_seconds == pytest.approx(made.watched_seconds, abs=600)
        assert use.seen_ratio == pytest.approx(made.seen_ratio, abs=0.01)


def test_the_command_says_what_the_rules_say(store: str, past: StoredPast, capsys: pytest.CaptureFixture[str]) -> None:
    times = [time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(at)) for at in (past.start, past.end)]
    arguments = [f"--prometheus.url={store}", f"--from={times[0]}", f"--to={times[1]}", "-o", "json"]
    assert main(["fit", *arguments, "--release-after=1d"]) == 0
    found = json.loads(capsys.readouterr().out)
    right = advice(past.workloads, 0, MINUTES, FitTerms(release_seconds=DAY * 60.0))
    assert {row["workload_name"]: (row["advice"], row["to"]) for row in found["rows"]} == {
        name.name: (row.kind, row.to) for name, row in right.items()
    }
    [part] = (row for row in found["rows"] if row["workload_name"].startswith("portion"))
    assert part["change"].startswith("nvidia.com/gpumem: ")


def test_the_example_of_the_page_is_real(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Of two weeks of the demo's workloads, at steps of a quarter of an hour."""
    prices = tmp_path / "prices.yaml"
    prices.write_text("{currency: EUR, gpu_hour: {NVIDIA H200: 3.50}}")
    past = StoredPast(list(demo_weeks()), 14 * DAY // 15, 900)
    with victoria.victoria(tmp_path / "store") as url:
        victoria.keep(url, "\n".join([*past.lines, ""]))
        times = [time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(at)) for at in (past.start, past.end)]
        arguments = [f"--prometheus.url={url}", f"--from={times[0]}", f"--to={times[1]}", f"--price={prices}"]
        assert main(["fit", *arguments, "--explain"]) == 0
    _, *printed = [line.rstrip() for line in capsys.readouterr().out.splitlines()]  # without the times
    table, explained = re.findall(r"```(?:console|text)\n(.*?)\n```", PAGE, re.DOTALL)
    assert printed[: len(table.splitlines()) - 2] == table.splitlines()[2:]
    assert explained in "\n".join(printed)


def test_a_plan_places_the_workloads_of_the_store_on_fewer_cards(
    store: str, past: StoredPast, capsys: pytest.CaptureFixture[str]
) -> None:
    times = [time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(at)) for at in (past.start, past.end)]
    arguments = [f"--prometheus.url={store}", f"--from={times[0]}", f"--to={times[1]}", "--plan=parts"]
    assert main(["fit", *arguments, "-o", "json"]) == 0
    found = json.loads(capsys.readouterr().out)
    placed = {place["workload"]["name"] for pool in found["layout"] for card in pool["cards"] for place in card}
    assert placed == {each.use.workload.name for each in past.workloads}
    assert sum(row["cards_now"] for row in found["rows"]) == len(past.workloads)  # a card of its own for each
    for row in found["rows"]:
        assert row["least_cards"] <= row["cards"] <= row["cards_now"]
        assert row["idle_watts"] == IDLE_WATTS * (row["cards_now"] - row["cards"])
    assert main(["fit", *arguments]) == 0
    assert "plan parts: " in capsys.readouterr().out
    assert main(["fit", *arguments, "-o", "metrics"]) == 2
    assert "leave out --plan" in capsys.readouterr().err
