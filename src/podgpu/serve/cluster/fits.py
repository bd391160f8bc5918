"""What fits, as `podgpu fit` advises: made in the background when it is asked for, and kept for an hour."""

import asyncio
import time
from collections.abc import Mapping

from podgpu.errors import ReasonedError, UserError
from podgpu.model.fit import FitStatement
from podgpu.serve.cluster.feed import Fits
from podgpu.serve.http.request import Request
from podgpu.serve.http.response import Response, busy_response, text_response
from podgpu.serve.pages import RenderedPage, compressed
from podgpu.serve.request_handler import Route
from podgpu.serve.routes import page_response, wants_gzip
from podgpu.supervise import brief
from podgpu.views.exposition import Format
from podgpu.views.fit import fit_table
from podgpu.views.fit_series import fit_page
from podgpu.views.row_table import json_text

KEPT_SECONDS = 3600.0
RETRY_SECONDS = 60.0  # after a fault
PATH, METRICS_PATH = "/api/v1/fit", "/metrics/fit"


class FitRoute:
    """No request waits for weeks to be read: until the first statement is there, the answer is to come again."""

    def __init__(self, fits: Fits) -> None:
        self._fits = fits
        self._statement: FitStatement | None = None
        self._fault = ""
        self._due = 0.0
        self._making: asyncio.Task[None] | None = None

    async def document(self, request: Request) -> Response:
        found = self._current()
        if found is None:
            return self._not_yet()
        return _page(RenderedPage(json_text(fit_table(found)).encode(), "application/json"), request)

    async def metrics(self, request: Request) -> Response:
        found = self._current()
        if found is None:
            return self._not_yet()
        return _page(RenderedPage(fit_page(found), Format.TEXT.value), request)

    def close(self) -> None:
        if self._making:
            self._making.cancel()

    def routes(self) -> Mapping[str, Route]:
        return {PATH: Route(self.document), METRICS_PATH: Route(self.metrics)}

    def _current(self) -> FitStatement | None:
        """Return the newest statement, and begin to make another if it is old."""
        if time.monotonic() >= self._due and (self._making is None or self._making.done()):
            self._making = brief(self._make())
        return self._statement

    async def _make(self) -> None:
        self._due = time.monotonic() + RETRY_SECONDS
        try:
            self._statement, self._fault = await self._fits.made(time.time()), ""
            self._due = time.monotonic() + KEPT_SECONDS
        except ReasonedError as fault:
            self._fault = fault.detail
        except UserError as error:
            self._fault = str(error)

    def _not_yet(self) -> Response:
        if self._fault:
            return text_response(502, self._fault)
        return busy_response("two weeks are being read from the store; come again in a minute")


def _page(plain: RenderedPage, request: Request) -> Response:
    return page_response(compressed(plain) if wants_gzip(request) else plain, request)
