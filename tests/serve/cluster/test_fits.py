"""What fits, from the cluster's server: no request waits for it, and it is kept."""

import asyncio

import pytest

from podgpu.errors import ReasonedError
from podgpu.model.fit import FitAdvice, FitStatement, WorkloadName
from podgpu.serve.cluster import statements
from podgpu.views.fit import fit_table
from podgpu.views.row_table import json_text
from tests.patience import PATIENCE, until
from tests.serve.cluster.test_server import CLUSTER, StubFeed, get, serving

CHAT = WorkloadName("ml", "Deployment", "chat", "main", "", "NVIDIA H200")
STATEMENT = FitStatement(
    start=1_793_000_000.0,
    end=1_794_209_600.0,
    rows=(FitAdvice(workload=CHAT, kind="smaller", to="1g.18gb", certainty="high", gpus=1.0, saved_gpus=0.75),),
)


class StubFits:
    def __init__(self) -> None:
        self.asked = 0
        self.fault: Exception | None = None
        self.answered = asyncio.Event()

    async def __call__(self, _now: float) -> FitStatement:
        self.asked += 1
        await self.answered.wait()
        if self.fault:
            raise self.fault
        return STATEMENT


async def test_requests_do_not_wait_and_the_statement_is_made_once() -> None:
    stub = StubFits()
    async with serving(StubFeed(CLUSTER), fits=stub) as server:
        first = [await get(server, path) for path in (statements.FIT_PATH, statements.FIT_METRICS_PATH)]
        assert [answer.status for answer in first] == [503, 503]
        assert "come again" in first[0].text
        stub.answered.set()
        document = await get(server, statements.FIT_PATH)
        while document.status == 503:
            document = await get(server, statements.FIT_PATH)
        page = await get(server, statements.FIT_METRICS_PATH)
    assert document.text == json_text(fit_table(STATEMENT))
    assert 'model="NVIDIA H200",advice="smaller",to="1g.18gb",certainty="high"} 1.0\n' in page.text
    assert "\npodgpu_workload_fit_saved_gpus{" in page.text
    assert "busy_ratio" not in page.text, "what is unknown is absent"
    assert stub.asked == 1


async def test_an_old_statement_is_shown_until_the_next_is_there(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(statements, "FIT_SECONDS", 0.0)
    stub = StubFits()
    stub.answered.set()
    async with serving(StubFeed(CLUSTER), fits=stub) as server:
        while (await get(server, statements.FIT_PATH)).status == 503:
            pass
        asked = stub.asked
        stub.answered.clear()
        assert (await get(server, statements.FIT_PATH)).status == 200
        await until(lambda: stub.asked > asked)
        assert (await get(server, statements.FIT_PATH)).status == 200, "while the next is being made"


async def test_a_store_that_does_not_answer_is_named() -> None:
    stub = StubFits()
    stub.fault = ReasonedError("store_late", "store_late: no answer")
    stub.answered.set()
    async with serving(StubFeed(CLUSTER), fits=stub) as server:
        answer = await get(server, statements.FIT_PATH)
        while answer.status == 503:
            answer = await get(server, statements.FIT_PATH)
        assert (answer.status, answer.text) == (502, "store_late: no answer\n")


async def test_a_statement_that_cannot_be_made_is_a_failure_and_not_awaited_for_ever() -> None:
    stub = StubFits()
    stub.fault = ZeroDivisionError("by zero")
    stub.answered.set()
    async with asyncio.timeout(PATIENCE), serving(StubFeed(CLUSTER), fits=stub) as server:
        answer = await get(server, statements.FIT_PATH)
        while answer.status == 503:
            answer = await get(server, statements.FIT_PATH)
        assert (answer.status, "log" in answer.text) == (500, True)


async def test_advice_is_a_file_of_csv_too() -> None:
    stub = StubFits()
    stub.answered.set()
    async with serving(StubFeed(CLUSTER), fits=stub) as server:
        answer = await get(server, f"{statements.FIT_PATH}?format=csv")
        while answer.status == 503:
            answer = await get(server, f"{statements.FIT_PATH}?format=csv")
        wrong = await get(server, f"{statements.FIT_PATH}?format=xml")
    assert answer.headers["content-type"] == "text/csv; charset=utf-8"
    assert answer.text.startswith("advice,cluster,namespace,")
    assert wrong.status == 400


async def test_without_a_store_there_is_none() -> None:
    async with serving(StubFeed(CLUSTER)) as server:
        assert (await get(server, statements.FIT_PATH)).status == 404
