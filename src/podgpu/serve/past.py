"""The past: a moment of the last hour, the timeline, charts of GPUs and pods, recordings. docs/api.md has them all."""

import time
from collections.abc import Awaitable, Callable, Coroutine, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Generic, Protocol, TypeVar

import msgspec

from podgpu.errors import UserError
from podgpu.model import Lanes
from podgpu.option import times
from podgpu.serve.http.request import Request
from podgpu.serve.http.response import Response, busy_response, text_response
from podgpu.serve.pages import RenderedPage
from podgpu.serve.past_pages import LineIsFullError, Maker, PackedPage, PastPages
from podgpu.serve.past_recording import (
    CONTENT_TYPE,
    MOST_MINUTES,
    USUAL_MINUTES,
    file_name,
    recording,
    times_around,
)
from podgpu.serve.request_handler import Route
from podgpu.serve.routes import JSON, facts_query, fresh_response, page_response, rows_query, wants_gzip, whole_number
from podgpu.supervise import SingleFlight
from podgpu.views.facts import FactsQuery
from podgpu.views.rows_file import RowsQuery

MOST_STEPS = 1000
USUAL_STEPS = 240
MOST_HOURS = 31 * 24
LEAST_STEP = 0.001
STORED_BYTES = 8 << 20  # of pages from a store, compressed; and one page more
LATEST = 253_402_300_799  # the end of the year 9999
SCHEMA = 1
_NO_STORE = "there is no store; give podgpu cluster one with --prometheus.url"
_OFF = "no history is kept here; give --history.size a size"

State_co = TypeVar("State_co", covariant=True)
Part_co = TypeVar("Part_co", covariant=True)


class PastState(Protocol[State_co, Part_co]):
    """What was the newest state at a time, to be read once, in a thread."""

    taken_at: float

    def parts(self) -> tuple[State_co, Iterator[Part_co]]:
        """Return the state without its parts, and the parts, each of which is decoded when it is asked for."""

    def whole(self) -> State_co: ...

    def abandon(self) -> None:
        """End the reading."""


Past = TypeVar("Past", bound=PastState[Any, Any])
Past_co = TypeVar("Past_co", bound=PastState[Any, Any], covariant=True)


class History(Protocol[Past_co]):
    """What the server needs of a history."""

    @property
    def span(self) -> tuple[float, float] | None:
        """The times of the first and the last moment, in seconds since 1970."""

    @property
    def step(self) -> float:
        """Seconds between two moments."""

    @property
    def shown_seconds(self) -> float:
        """The usual length of a timeline."""

    def found(self, moment: float) -> float | None:
        """Return when the state was taken that was the newest then; None if it is not kept."""

    def at(self, moment: float) -> Past_co | None:
        """Return the state that was the newest then; None if it is not kept."""

    @property
    def parts(self) -> int:
        """How many cards or nodes a state has."""

    def times(self, start: float, end: float) -> Sequence[float]:
        """Return the times of the moments in between."""

    def at_each(self, times: Iterable[float]) -> Sequence[Past_co]:
        """Return the states of these moments."""

    async def timeline(self, start: float, end: float, step: float) -> Mapping[str, Any]:
        """Return what happened in each step."""

    async def gpu_hour(self, uuid: str) -> Mapping[str, Any] | None:
        """Return the main numbers of a card or MIG instance, each with its times; None if it is not known."""

    async def pod_hour(self, pod: str) -> Mapping[str, Any] | None:
        """Return the main numbers of a pod, each with its times; None if it was on no GPU."""


Asked = Callable[[], Coroutine[Any, Any, Mapping[str, Any] | None]]
# Makes a timeline of the last hours. Raises UserError.
StoredTimeline = Callable[[int], Awaitable[Mapping[str, Any]]]
# Reads a moment from a store; None if that has nothing of it. Raises UserError.
StoredMoment = Callable[[float], Awaitable[Past | None]]


@dataclass(slots=True)
class PastRoutes(Generic[Past]):
    """`document` renders a state as the document of that time, part by part, `rows` its rows of one kind.

    `facts` are those of one pod or GPU. `recorded` renders it for a recording, as the document of a cluster. `lanes`
    says who was at work on a card in the last full minute, if there is a log of context switches. `stored` makes longer
    timelines, if there is a store. `stored_moment` reads moments that are no longer kept. `note` says where there is
    more than here.
    """

    history: History[Past] | None
    document: Callable[[Past], Iterable[bytes]]
    rows: Callable[[Past, RowsQuery], Iterable[bytes]]
    facts: Callable[[Past, FactsQuery], Iterable[bytes]]
    recorded: Callable[[Past], Iterable[bytes]]
    lanes: Callable[[str], Lanes | None] | None = None
    stored: StoredTimeline | None = None
    stored_moment: StoredMoment[Past] | None = None
    note: str = ""
    _pages: PastPages = field(default_factory=PastPages)
    # Those of the store have a line of their own: it may be slow.
    _stored_pages: PastPages = field(default_factory=lambda: PastPages(STORED_BYTES))
    _charts: SingleFlight[Mapping[str, Any] | None] = field(default_factory=SingleFlight)
    _reading: Sequence[Past] = ()

    def over(self, present: Mapping[str, Route]) -> Mapping[str, Route]:
        """Add the routes of the past to those of an address. Where both have a path, the query decides."""

        async def history(request: Request) -> Response:
            before = present.get("/api/v1/history")
            is_longer = "pod" in request.query and "hours" in request.query
            if before and (is_longer or not request.query.keys() & {"at", "gpu", "pod"}):
                return await before.run(request)
            return await self._past(request)

        async def rows(request: Request) -> Response:
            if "at" not in request.query:
                return await present["/api/v1/rows"].run(request)
            query = rows_query(request)
            content_type = query.content_type
            return await self._at(request, query, lambda past: self.rows(past, query), content_type)

        async def facts(request: Request) -> Response:
            if "at" not in request.query:
                return await present["/api/v1/facts"].run(request)
            asked = facts_query(request)
            return await self._at(request, asked, lambda past: self.facts(past, asked))

        return {
            **present,
            "/api/v1/history": Route(history, waits=True),
            "/api/v1/rows": Route(rows, waits=lambda request: "at" in request.query),
            "/api/v1/recording": Route(self._recording, waits=True),
            "/api/v1/facts": Route(facts, waits=lambda request: "at" in request.query),
            "/api/v1/timeline": Route(self._timeline, waits=True),
        }

    def close(self) -> None:
        """End what is being read, so that the process need not wait for it."""
        for work in (self._pages, self._stored_pages, self._charts):
            work.close()
        for past in self._reading:
            past.abandon()

    async def _past(self, request: Request) -> Response:
        if "at" in request.query:
            return await self._at(request, "", self.document)
        if "pod" in request.query:
            return await self._pod(request)
        uuid = request.query.get("gpu", "")
        if not uuid:
            raise UserError(
                "write /api/v1/history?at=TIME, /api/v1/history?gpu=UUID or /api/v1/history?pod=NAMESPACE/POD"
            )
        history = self.history
        found = await self._charts.result(("gpu", uuid), _asked(history.gpu_hour, uuid)) if history else None
        lanes = self.lanes(uuid) if self.lanes else None
        if found is None and lanes is None:
            return text_response(404, f"nothing is kept of a GPU {uuid}" if history else _OFF)
        more = {"lanes": lanes} if lanes else {}
        return self._written(
            {"schema": SCHEMA, "gpu": uuid, **(found or {"series": {}}), **self._noted, **more}, request
        )

    async def _pod(self, request: Request) -> Response:
        history, pod = self.history, request.query["pod"]
        if "hours" in request.query:
            return text_response(404, _NO_STORE)
        if not pod:
            raise UserError("write /api/v1/history?pod=NAMESPACE/POD")
        if history is None:
            return text_response(404, _OFF)
        found = await self._charts.result(("pod", pod), _asked(history.pod_hour, pod))
        if found is None:
            return text_response(404, f"no pod {pod} was on a GPU here in the time that is kept")
        return self._written({"schema": SCHEMA, "pod": pod, **found, **self._noted}, request)

    @property
    def _noted(self) -> Mapping[str, str]:
        return {"note": self.note} if self.note else {}

    async def _at(
        self, request: Request, kind: Hashable, write: Callable[[Past], Iterable[bytes]], content_type: str = JSON
    ) -> Response:
        """Answer with a page of a moment, which all who ask for the same share."""

        def begin(history: History[Past], taken_at: float) -> Maker | None:
            past = history.at(taken_at)
            if past is None or past.taken_at != taken_at:  # it was forgotten meanwhile
                return None
            return self._maker((past,), lambda: write(past))

        async def begin_stored(read: StoredMoment[Past], at: float) -> Maker | None:
            past = await read(at)
            return (lambda: PackedPage(write(past))) if past is not None else None

        page = await self._made(request, kind, begin, begin_stored)
        return page if isinstance(page, Response) else _packed_response(page, request, content_type)

    async def _recording(self, request: Request) -> Response:
        """Answer with a file of the minutes around a moment."""
        minutes = whole_number("minutes", request.query.get("minutes", str(USUAL_MINUTES)), MOST_MINUTES)

        def begin(history: History[Past], taken_at: float) -> Maker | None:
            states = history.at_each(times_around(history, taken_at, minutes))
            if not states:
                return None
            return self._maker(states, lambda: recording(states, self.recorded))

        page = await self._made(request, ("recording", minutes), begin)
        if isinstance(page, Response):
            return page
        named = {"Content-Disposition": f'attachment; filename="{file_name(_moment(request.query["at"]))}"'}
        return _packed_response(page, request, CONTENT_TYPE, named)

    def _maker(self, states: Sequence[Past], parts: Callable[[], Iterable[bytes]]) -> Maker:
        """Return what makes a page. Until it is made, the reading of these states can be ended; then they go."""
        self._reading = states

        def make() -> PackedPage:
            try:
                return PackedPage(parts())
            finally:
                self._reading = ()

        return make

    async def _made(
        self,
        request: Request,
        kind: Hashable,
        begin: Callable[[History[Past], float], Maker | None],
        begin_stored: Callable[[StoredMoment[Past], float], Awaitable[Maker | None]] | None = None,
    ) -> PackedPage | Response:
        """Make a page of the moment that is asked for, in turn with others, or say why there is none."""
        history, read, page = self.history, self.stored_moment, None
        if history is None:
            return text_response(404, _OFF)
        at = _moment(request.query.get("at", ""))
        taken_at = history.found(at)
        try:
            if taken_at is not None:
                page = await self._pages.page((taken_at, kind), lambda: begin(history, taken_at))
            elif read and begin_stored and at < time.time():
                page = await self._stored_pages.page((at, kind), lambda: begin_stored(read, at))
        except LineIsFullError as full:
            return busy_response(str(full))
        except UserError as error:
            return text_response(502, str(error))
        return page or text_response(404, f"nothing is kept of that time; {_kept(history.span)}")

    async def _timeline(self, request: Request) -> Response:
        history, query = self.history, request.query
        if "hours" in query:
            return await self._longer(request)
        if history is None:
            return text_response(404, _OFF)
        end = _moment(query["to"]) if "to" in query else (history.span or (0.0, time.time()))[1]
        start = _moment(query["from"]) if "from" in query else end - history.shown_seconds
        step = _step(query["step"]) if "step" in query else _usual_step(end - start, history.step)
        if not 0 <= end - start <= MOST_STEPS * step:
            raise UserError(f"from must be before to, and at most {MOST_STEPS} steps before it")
        return self._written(await history.timeline(start, end, step), request)

    async def _longer(self, request: Request) -> Response:
        """Answer from the store. The page can show only the moments that are kept here."""
        hours = whole_number("hours", request.query["hours"], MOST_HOURS)
        if self.stored is None:
            return text_response(404, _NO_STORE)
        try:
            return self._written(await self.stored(hours), request)
        except UserError as error:
            return text_response(502, str(error))

    def _written(self, timeline: Mapping[str, Any], request: Request) -> Response:
        span, step = (self.history.span, self.history.step) if self.history else (None, 0.0)
        kept = dict(zip(("from", "to"), span, strict=True)) if span else {}
        stored = {"is_stored": True} if self.stored_moment else {}
        return _json({**timeline, "kept": kept, "moment_seconds": step, **stored}, request)


def _kept(span: tuple[float, float] | None) -> str:
    if span is None:
        return "nothing is kept yet"
    begins, ends = (times.utc_text(at, "seconds") for at in span)
    return f"kept is {begins} to {ends}"


def _asked(hour: Callable[[str], Awaitable[Mapping[str, Any] | None]], name: str) -> Asked:
    async def answer() -> Mapping[str, Any] | None:
        return await hour(name)

    return answer


def _moment(text: str) -> float:
    """Parse seconds since 1970, or a time as people write it."""
    try:
        moment = float(text)
    except ValueError:
        return times.parse_time(text, time.time())
    if not -LATEST <= moment <= LATEST:  # or NaN
        raise UserError(f"{text!r} is not a time; write seconds since 1970, or how long ago, such as 40m")
    return moment


def _step(text: str) -> float:
    step = float(text) if text.replace(".", "", 1).isdecimal() and text.isascii() else 0.0
    if not LEAST_STEP <= step <= LATEST:
        raise UserError(f"{text!r} is not a step; write seconds, such as step=15")
    return step


def _usual_step(length: float, least: float) -> float:
    """Return a multiple of the `least` step, for about as many steps as can be drawn well."""
    return max(1, round(length / USUAL_STEPS / least)) * least


def _json(document: Mapping[str, Any], request: Request) -> Response:
    return fresh_response(msgspec.json.encode(document), JSON, request)


def _packed_response(
    page: PackedPage, request: Request, content_type: str = JSON, headers: Mapping[str, str] | None = None
) -> Response:
    gzipped = wants_gzip(request)
    mark = f"{page.checksum:08x}-{page.size:x}{'-gzip' if gzipped else ''}"
    parts = page.gzipped() if gzipped else page.plain()
    response = page_response(RenderedPage(b"", content_type, gzipped, parts, mark), request, headers)
    return response if gzipped else replace(response, length=page.size)
