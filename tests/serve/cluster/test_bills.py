"""Bills from the cluster's server: one at a time, kept for a while, and refused where the question is wrong."""

import asyncio
import gzip
from collections.abc import Mapping
from contextlib import AsyncExitStack
from typing import Any

import msgspec
import pytest

from podgpu.errors import ReasonedError, UserError
from podgpu.model import Coverage, Statement, StatementLine
from podgpu.serve.cluster import statements
from podgpu.views.statement import report_csv, report_json
from tests.patience import until
from tests.serve.cluster.test_server import CLUSTER, StubFeed, get, serving
from tests.serve.rig import connected

HOUR = 3_600_000_000
START = 1_793_491_200.0  # 2026-11-01
LINE = StatementLine(kind="group", group={"namespace": "ml"}, held_us=2 * HOUR, busy_us=HOUR, cost_units=700)
STATEMENT = Statement(
    start=START,
    end=START + 7200,
    by=("namespace",),
    lines=(LINE,),
    total=LINE,
    currency="EUR",
    gpus=1,
    coverage=Coverage(seen_us=2 * HOUR),
)
REQUEST = {"start": START, "end": START + 7200, "by": "namespace"}


class StubBills:
    def __init__(self) -> None:
        self.asked: list[Mapping[str, str]] = []
        self.running = 0
        self.most_running = 0
        self.answered = asyncio.Event()
        self.answered.set()

    async def __call__(self, query: Mapping[str, str], _now: float) -> tuple[Statement, Mapping[str, Any]]:
        self.asked.append(query)
        self.running += 1
        self.most_running = max(self.running, self.most_running)
        await self.answered.wait()
        self.running -= 1
        match query.get("by"):
            case "taem":
                raise UserError("--by=taem: no pod has such a label in this time; did you mean team?")
            case "late":
                raise ReasonedError("store_late", "store_late: no answer")
            case "nothing":
                raise ReasonedError("store_empty", "store_empty: no samples")
        return STATEMENT, REQUEST


async def test_a_bill_is_the_document_and_the_csv_of_the_command() -> None:
    async with serving(StubFeed(CLUSTER), bills=StubBills()) as server:
        document = await get(server, "/api/v1/report?from=2026-11")
        packed = await get(server, "/api/v1/report?from=2026-11", Accept_Encoding="gzip")
        table = await get(server, "/api/v1/report?from=2026-11&format=csv")
    assert document.text == report_json(STATEMENT, REQUEST)
    assert document.headers["content-type"] == "application/json"
    assert gzip.decompress(packed.body) == document.body
    assert table.text == report_csv(STATEMENT, REQUEST)
    assert table.headers["content-type"] == "text/csv; charset=utf-8"
    assert table.headers["content-disposition"] == 'attachment; filename="podgpu-2026-11-01-2026-11-01.csv"'
    assert msgspec.json.decode(document.body)["rows"][0]["cost"] == 7.0


async def test_a_bill_is_kept_for_a_minute_and_is_one_for_both_formats(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    stub = StubBills()
    async with serving(StubFeed(CLUSTER), bills=stub) as server:
        for query in ("by=team&from=2026-11", "from=2026-11&by=team&format=csv"):
            assert (await get(server, f"/api/v1/report?{query}")).status == 200
        assert stub.asked == [{"by": "team", "from": "2026-11"}]
        monkeypatch.setattr(statements, "BILL_SECONDS", 0.0)
        assert (await get(server, "/api/v1/report?by=team&from=2026-11")).status == 200
        assert len(stub.asked) == 2


async def test_the_same_bill_is_made_once_and_others_wait_their_turn() -> None:
    stub = StubBills()
    stub.answered.clear()
    async with serving(StubFeed(CLUSTER), bills=stub) as server, AsyncExitStack() as stack:
        clients = [await stack.enter_async_context(connected(server)) for _ in range(12)]
        for number, client in enumerate(clients):
            client.ask(f"/api/v1/report?by=label-{number % (statements.MOST_WAITING + 2)}")
        await until(lambda: stub.asked)
        refused = [await client.answer() for client in clients[statements.MOST_WAITING : statements.MOST_WAITING + 2]]
        assert {(answer.status, answer.text) for answer in refused} == {
            (503, "other bills are being made; try again in a while\n")
        }
        assert (await get(server, "/metrics")).status == 200
        stub.answered.set()
        assert (await clients[0].answer()).status == 200
        assert (await clients[6].answer()).status == 200
    assert stub.most_running == 1 and len(stub.asked) == statements.MOST_WAITING


async def test_no_more_bills_are_kept_than_memory_is_meant_for() -> None:
    stub = StubBills()
    async with serving(StubFeed(CLUSTER), bills=stub) as server:
        for number in (*range(statements.MOST_KEPT + 1), 0):
            assert (await get(server, f"/api/v1/report?by=label-{number}")).status == 200
    assert len(stub.asked) == statements.MOST_KEPT + 2, "the first was dropped for the last"


@pytest.mark.parametrize(
    ("query", "status", "text"),
    [
        ("by=taem", 400, "--by=taem: no pod has such a label in this time; did you mean team?\n"),
        ("by=late", 502, "store_late: no answer\n"),
        ("by=nothing", 404, "store_empty: no samples\n"),
        ("form=csv", 400, "unknown parameter 'form'; did you mean format?\n"),
        ("format=xlsx", 400, "'xlsx' is no format of a bill; write format=json or format=csv\n"),
    ],
)
async def test_what_cannot_be_billed_is_named(query: str, status: int, text: str) -> None:
    async with serving(StubFeed(CLUSTER), bills=StubBills()) as server:
        answer = await get(server, f"/api/v1/report?{query}")
    assert (answer.status, answer.text) == (status, text)


async def test_without_a_store_the_option_that_is_missing_is_named() -> None:
    async with serving(StubFeed(CLUSTER)) as server:
        answer = await get(server, "/api/v1/report")
    assert (answer.status, answer.text) == (404, "there is no store; give one with --prometheus.url\n")
