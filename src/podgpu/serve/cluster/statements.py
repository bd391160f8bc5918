"""What is made from a store and kept for a while: the bills of `podgpu report`, and the advice of `podgpu fit`."""

import asyncio
import time
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from functools import partial
from typing import Any, NamedTuple

from podgpu.errors import ReasonedError, UserError
from podgpu.model import Statement
from podgpu.model.fit import FitStatement
from podgpu.option.value import did_you_mean
from podgpu.serve.cluster.pages import BillMaker, FitMaker
from podgpu.serve.http.request import Request
from podgpu.serve.http.response import Response, busy_response, text_response
from podgpu.serve.request_handler import Route
from podgpu.serve.routes import JSON, fresh_response
from podgpu.supervise import SingleFlight, brief
from podgpu.views.exposition import Format
from podgpu.views.fit import fit_page, fit_table
from podgpu.views.row_table import csv_text, json_text
from podgpu.views.statement import report_csv, report_json

BILL_SECONDS, FIT_SECONDS = 60.0, 3600.0
RETRY_SECONDS = 60.0  # after a fault
MOST_KEPT = 8
MOST_WAITING = 4  # different bills

FIT_PATH, FIT_METRICS_PATH = "/api/v1/fit", "/metrics/fit"
PARAMETERS = ("by", "from", "to", "period", "namespace", "basis", "share", "per", "format")
CSV = "text/csv; charset=utf-8"
FORMATS = ("json", "csv")
_EMPTY = "store_empty"

Question = tuple[tuple[str, str], ...]


class _KeptBill(NamedTuple):
    made_at: float
    statement: Statement
    request: Mapping[str, Any]


class BillRoute:
    """Makes one bill at a time: a month of many nodes takes long, and much memory."""

    def __init__(self, make_bill: BillMaker) -> None:
        self._make_bill = make_bill
        self._kept: dict[Question, _KeptBill] = {}
        self._making: SingleFlight[_KeptBill] = SingleFlight()
        self._turn = asyncio.Lock()

    async def __call__(self, request: Request) -> Response:
        query = request.query
        form = query.get("format", "json")
        _check(query, form)
        # A bill is made once for all formats, so that they show the same numbers.
        question = tuple(sorted((name, text) for name, text in query.items() if name != "format"))
        try:
            bill = await self._bill(question)
        except ReasonedError as fault:
            return text_response(404 if fault.reason == _EMPTY else 502, fault.detail)
        if bill is None:
            return busy_response("other bills are being made; try again in a while")
        if form == "csv":
            headers = {"Content-Disposition": f'attachment; filename="{_file_name(bill)}"'}
            return fresh_response(report_csv(bill.statement, bill.request).encode(), CSV, request, headers)
        written = report_json(bill.statement, bill.request, has_periods="per" in query)
        return fresh_response(written.encode(), JSON, request)

    def close(self) -> None:
        self._making.close()

    async def _bill(self, question: Question) -> _KeptBill | None:
        """Return None if too many others are being made."""
        oldest = time.monotonic() - BILL_SECONDS
        self._kept = {key: bill for key, bill in self._kept.items() if bill.made_at > oldest}
        if bill := self._kept.get(question):
            return bill
        if question not in self._making.keys and len(self._making.keys) >= MOST_WAITING:
            return None
        return await self._making.result(question, lambda: self._make(question))

    async def _make(self, question: Question) -> _KeptBill:
        async with self._turn:
            statement, request = await self._make_bill(dict(question), time.time())
        while len(self._kept) >= MOST_KEPT:
            del self._kept[next(iter(self._kept))]
        bill = self._kept[question] = _KeptBill(time.monotonic(), statement, request)
        return bill


def _check(query: Mapping[str, str], form: str) -> None:
    if unknown := sorted(query.keys() - set(PARAMETERS)):
        advice = did_you_mean(unknown[0], PARAMETERS, f"there are {', '.join(PARAMETERS)}")
        raise UserError(f"unknown parameter {unknown[0]!r}; {advice}")
    if form not in FORMATS:
        raise UserError(f"{form!r} is no format of a bill; write format=json or format=csv")


def _file_name(bill: _KeptBill) -> str:
    """Return a name such as `podgpu-2026-11-01-2026-11-16.csv`."""
    first, last = (
        datetime.fromtimestamp(at, UTC).date().isoformat() for at in (bill.statement.start, bill.statement.end)
    )
    return f"podgpu-{first}-{last}.csv"


class FitRoute:
    """Makes advice in the background: no request waits until weeks are read. The first clients have to come again."""

    def __init__(self, make_fit: FitMaker) -> None:
        self._make_fit = make_fit
        self._statement: FitStatement | None = None
        self._fault = ""
        self._due = 0.0
        self._making: asyncio.Task[None] | None = None

    def close(self) -> None:
        if self._making:
            self._making.cancel()

    def routes(self) -> Mapping[str, Route]:
        return {
            FIT_PATH: Route(self._document),
            FIT_METRICS_PATH: Route(partial(self._written, fit_page, Format.TEXT.value)),
        }

    def _document(self, request: Request) -> Response:
        form = request.query.get("format", FORMATS[0])
        if form not in FORMATS:
            raise UserError(f"{form!r} is no format of advice; write format=json or format=csv")
        text, content_type = (csv_text, CSV) if form == "csv" else (json_text, JSON)
        return self._written(lambda fit: text(fit_table(fit)).encode(), content_type, request)

    def _written(self, write: Callable[[FitStatement], bytes], content_type: str, request: Request) -> Response:
        """Answer with the newest statement, and begin to make another if it is old."""
        if self._making is None or (self._making.done() and time.monotonic() >= self._due):
            self._making = brief(self._make())
        if self._statement:
            return fresh_response(write(self._statement), content_type, request)
        if self._fault:
            return text_response(502, self._fault)
        if self._making.done():
            self._making.result()  # raises what nobody expected
        return busy_response("two weeks are being read from the store; come again in a minute")

    async def _make(self) -> None:
        self._due = time.monotonic() + RETRY_SECONDS
        try:
            self._statement, self._fault = await self._make_fit(time.time()), ""
            self._due = time.monotonic() + FIT_SECONDS
        except ReasonedError as fault:
            self._fault = fault.detail
        except UserError as error:
            self._fault = str(error)
