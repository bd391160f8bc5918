"""What the server makes of a question is what the command makes of it: the same bytes, the same refusals."""

import asyncio
import time
from datetime import UTC, datetime
from pathlib import Path

import msgspec
import pytest

from podgpu.cluster.report.bill import MOST_HOURS, bill_of_query, dated
from podgpu.cluster.store.options import StoreOptions
from podgpu.cluster.store.response import StoreFault
from podgpu.errors import UserError
from podgpu.model import Prices
from podgpu.views.statement import report_csv, report_json
from tests.cli.report.test_stores import OneHour, Thanos, report
from tests.cluster.store.stub import StubStore, serving
from tests.patience import until

NOW = time.time()
PERIOD = {"from": "2026-11-01T10:00", "to": "2026-11-01T11:00"}


async def test_the_bytes_are_those_of_the_command(capsys: pytest.CaptureFixture[str]) -> None:
    store = OneHour()
    _, as_json, _ = await report(capsys, store)
    _, as_csv, _ = await report(capsys, store, "-o", "csv")
    async with serving(store):
        statement, request = await bill_of_query(StoreOptions(url=store.url), None, PERIOD, NOW)
    assert report_json(statement, request) == as_json
    assert report_csv(statement, request) == as_csv


@pytest.fixture
def prices(tmp_path: Path) -> Path:
    file = tmp_path / "prices.json"
    file.write_text('{"currency": "EUR", "gpu_hour": {"*": 1}}')
    return file


@pytest.mark.parametrize(
    "words",
    [
        {"from": "soon"},
        {"from": "2026-11-02"},
        {"basis": "hold"},
        {"basis": "energy"},
        {"share": "fair"},
        {"by": "taem"},
    ],
    ids=str,
)
async def test_a_wrong_word_is_refused_in_the_same_sentence(
    words: dict[str, str], capsys: pytest.CaptureFixture[str], prices: Path
) -> None:
    store = OneHour()
    flags = [f"--{name}={text}" for name, text in words.items()]
    code, _, err = await report(capsys, store, f"--price={prices}", *flags)
    assert code == 2
    async with serving(store):
        eur = Prices(currency="EUR", gpu_hour={"*": 1.0})
        with pytest.raises(UserError) as refused:
            await bill_of_query(StoreOptions(url=store.url), eur, {**PERIOD, **words}, NOW)
    assert err == f"podgpu: {refused.value}\n"


async def test_a_fault_of_the_store_has_the_same_sentence(capsys: pytest.CaptureFixture[str]) -> None:
    store = Thanos()
    _, _, err = await report(capsys, store)
    async with serving(store):
        with pytest.raises(StoreFault) as fault:
            await bill_of_query(StoreOptions(url=store.url), None, PERIOD, NOW)
    assert err == f"podgpu: {fault.value.detail}\n" and fault.value.reason == "store_partial"


async def test_no_longer_time_is_billed_on_request_than_a_month() -> None:
    with pytest.raises(UserError, match=f"more than {MOST_HOURS} hours before .* run podgpu report"):
        await bill_of_query(StoreOptions(url="http://127.0.0.1:1"), None, {"from": "32d"}, NOW)
    with pytest.raises(StoreFault):  # is asked, and not there
        await bill_of_query(StoreOptions(url="http://127.0.0.1:1"), None, {"from": "31d"}, NOW)


async def test_a_period_that_is_not_over_is_said_to_be_so() -> None:
    store = OneHour()
    async with serving(store):
        statement, _ = await bill_of_query(StoreOptions(url=store.url), None, {"from": "1h", "to": "2199-01"}, NOW)
    assert statement.notices[-1].startswith("--to=2199-01 is in the future")


async def test_a_bill_that_is_not_wanted_any_more_is_not_made() -> None:
    store = StubStore(delay=0.2)
    async with serving(store):
        task = asyncio.create_task(bill_of_query(StoreOptions(url=store.url), None, PERIOD, NOW))
        await until(lambda: store.asked)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        await asyncio.sleep(0.3)
        asked = len(store.asked)
        await asyncio.sleep(0.3)
        assert len(store.asked) == asked


async def test_a_served_bill_can_have_its_days_and_a_named_time() -> None:
    store = OneHour()
    async with serving(store):
        options = StoreOptions(url=store.url)
        statement, request = await bill_of_query(options, None, {**PERIOD, "per": "hour"}, NOW)
        whole, _ = await bill_of_query(options, None, PERIOD, NOW)
        for wrong in ({"per": "week"}, {"period": "last-year"}, {**PERIOD, "period": "last-month"}):
            with pytest.raises(UserError):
                await bill_of_query(options, None, wrong, NOW)
    assert statement.lines == whole.lines
    (hour,) = msgspec.json.decode(report_json(statement, request, has_periods=True))["periods"]
    assert hour["name"] == "2026-11-01, 1 h"
    assert hour["gpu_hours"] == sum(line.gpu_hours or 0.0 for line in whole.lines if line.kind == "group")


def test_a_named_time_has_the_two_times_of_the_command() -> None:
    now = datetime(2026, 11, 18, 9, tzinfo=UTC).timestamp()
    asked = dated({"by": "team", "period": "last-month"}, now)
    assert {name: asked[name] for name in ("from", "to")} == {"from": "2026-10-01T00:00Z", "to": "2026-11-01T00:00Z"}
    assert dated(PERIOD, now) == PERIOD
