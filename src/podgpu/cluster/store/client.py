"""Queries a store over HTTP. All are instant queries in plain PromQL: every store answers them alike."""

import asyncio
import re
from collections.abc import Callable
from typing import Any, TypeVar
from urllib.parse import urlencode, urlsplit

from podgpu.cluster.store import response
from podgpu.cluster.store.options import StoreOptions
from podgpu.cluster.store.response import (
    CHOOSE_LESS,
    PARTIAL,
    TOO_LARGE,
    DecodeBudget,
    Notice,
    Point,
    Series,
    StoreFault,
    any_of,
    quoted,
)
from podgpu.errors import UserError
from podgpu.net.client import HttpAnswer, HttpClient
from podgpu.net.connection import HttpFault
from podgpu.net.login import Login
from podgpu.option.file import text_of
from podgpu.supervise import brief

K = TypeVar("K")
T = TypeVar("T")
Read = Callable[[int, bytes, DecodeBudget], tuple[list[T], list[Notice]]]

LARGEST_ANSWER = 128 << 20  # all nodes of a cluster with 8,000 GPUs take 70 MiB
AT_A_TIME = 4
_CONNECT_SECONDS = 5.0
_KUBERNETES = "kube_"  # what kube-state-metrics counts is scraped by a job of its own
_HEADERS = {
    "Accept": "application/json",
    "Accept-Encoding": "gzip",
    "Content-Type": "application/x-www-form-urlencoded",
}
_REASONS = {
    "timeout": "store_late",
    "unreachable": "store_unreachable",
    "tls": "store_tls",
    "certificates": "store_tls",
    "garbage": "store_garbage",
    "broken_off": "store_garbage",
    "too_large": TOO_LARGE,
    "credential": "store_refused",
}
_HEADER = re.compile(r"([A-Za-z0-9!#$%&'*+.^_`|~-]+)\s*:\s*(\S(?:.*\S)?)")
_SECRET = re.compile(r"auth|cookie|token|key|secret|password", re.IGNORECASE)
# Each is for one kind of store, and the others ignore it. VictoriaMetrics must not align the time to a step. Thanos
# must leave out copies of samples, and use no downsampled ones.
_MANNER = {"nocache": "1", "dedup": "true", "max_source_resolution": "0s"}
# With these, Thanos and a cluster of VictoriaMetrics answer with all data or not at all.
_WHOLE = {"partial_response": "false", "deny_partial_response": "1"}


class Store:
    """`notices` has the warnings that came with the store's answers."""

    def __init__(self, options: StoreOptions, *, whole: bool = False) -> None:
        """With `whole`, an answer from only a part of the store's data is a fault: sums of counters would be wrong."""
        if options.url is None:
            raise UserError("no store is given; write --prometheus.url=http://HOST:9090")
        self._url = f"{options.url}/api/v1/query"
        self._where = urlsplit(options.url).netloc
        self._options = options
        self._whole = whole
        self._manner = {**_MANNER, **(_WHOLE if whole else {})}
        self._client = HttpClient(_login(options), kept=AT_A_TIME, connect_seconds=_CONNECT_SECONDS)
        self._turns = asyncio.Semaphore(AT_A_TIME)
        self._decoding = asyncio.Lock()
        self._is_closed = False
        self._asking: set[asyncio.Task[Any]] = set()
        self.notices: set[Notice] = set()

    @property
    def jobs(self) -> tuple[str, ...]:
        """The scrape jobs that the user named."""
        return self._options.jobs

    def select(self, metric: str, *more: str) -> str:
        """Return a selector of the metric's series: by the user's own matchers, agents' jobs, and more of them."""
        jobs = self._options.jobs if not metric.startswith(_KUBERNETES) else ()
        inside = ",".join(filter(None, (self._options.selector, any_of("job", jobs) if jobs else "", *more)))
        return f"{metric}{{{inside}}}" if inside else metric

    def select_all(self, metrics: str) -> str:
        """Return a selector of these metrics' series, whichever job they are of."""
        return f"{{{','.join(filter(None, (f'__name__=~{quoted(metrics)}', self._options.selector)))}}}"

    async def points(self, query: str, at: float, budget: DecodeBudget | None = None) -> list[Point]:
        """Queries whose results are held together share a `budget`."""
        return await self._ask(query, at, response.points, budget)

    async def values(self, query: str, at: float, key: Callable[[bytes], K | None]) -> list[tuple[K, float]]:
        """Return the same, with a key for each series in place of its labels. `key` is given these as JSON."""
        return await self._ask(query, at, lambda status, body, budget: response.values(status, body, budget, key))

    async def series(self, query: str, at: float, budget: DecodeBudget | None = None) -> list[Series]:
        """Return the samples of a selector with a range, such as `up[5m]`."""
        return await self._ask(query, at, response.series, budget)

    async def close(self) -> None:
        self._is_closed = True
        # If one of several queries failed, the others are still running.
        left = list(self._asking)
        for asking in left:
            asking.cancel()
        await asyncio.gather(*left, return_exceptions=True)
        await self._client.close()

    async def _ask(self, query: str, at: float, read: Read[T], budget: DecodeBudget | None = None) -> list[T]:
        asking = brief(self._read_answer({"query": query, "time": f"{at:.3f}", **self._manner}, read, budget))
        self._asking.add(asking)
        try:
            found, notices = await asking
        finally:
            self._asking.discard(asking)
        if self._whole and (missing := [notice for notice in notices if notice.reason == PARTIAL]):
            raise StoreFault(PARTIAL, missing[0].detail)
        self.notices.update(notices)
        return found

    async def _read_answer(
        self, form: dict[str, str], read: Read[T], budget: DecodeBudget | None
    ) -> tuple[list[T], list[Notice]]:
        async with self._turns:
            answer = await self._answer(form)
        return await self._decoded(answer, read, budget or DecodeBudget())

    async def _answer(self, form: dict[str, str]) -> HttpAnswer:
        if self._is_closed:  # another of several queries failed: nobody waits for this one
            raise asyncio.CancelledError
        try:
            answer = await self._client.request(
                "POST",
                self._url,
                {**_HEADERS, **_headers(self._options)},
                urlencode(form).encode(),
                seconds=self._options.timeout,
                limit=LARGEST_ANSWER,
            )
        except UserError as error:  # of the file with headers
            raise StoreFault("store_refused", str(error)) from None
        except HttpFault as fault:
            raise self._fault(fault) from None
        if answer.headers.get("server") == "podgpu":
            detail = f"{self._options.url} is a podgpu agent or cluster, not a store"
            raise StoreFault("store_garbage", f"{detail}; give the address of Prometheus")
        if 300 <= answer.status < 400:
            detail = f"{self._where} redirects to {answer.headers.get('location', 'nowhere')}"
            raise StoreFault("store_refused", f"{detail}: give the store's own address")
        return answer

    async def _decoded(self, answer: HttpAnswer, read: Read[T], budget: DecodeBudget) -> tuple[list[T], list[Notice]]:
        """In a thread, since a large answer takes long, and one at a time, since it takes memory."""
        async with self._decoding:
            try:
                return await asyncio.to_thread(self._read, answer, read, budget)
            except asyncio.CancelledError:
                budget.stop()  # a process ends only after its threads
                raise

    def _read(self, answer: HttpAnswer, read: Read[T], budget: DecodeBudget) -> tuple[list[T], list[Notice]]:
        try:
            return read(answer.status, answer.plain(LARGEST_ANSWER), budget)
        except HttpFault as fault:
            raise self._fault(fault) from None

    def _fault(self, fault: HttpFault) -> StoreFault:
        reason = _REASONS[fault.reason]
        advice = f"; {CHOOSE_LESS}" if reason == TOO_LARGE else ""
        return StoreFault(reason, f"{self._where}: {fault.detail}{advice}")


def _login(options: StoreOptions) -> Login:
    """Refuse at once to send a secret in plain text over a network. Raises UserError."""
    if options.token_file and options.password_file:
        raise UserError("give either --prometheus.token-file or --prometheus.password-file, not both")
    login = Login(token_file=options.token_file, password_file=options.password_file, ca_file=options.ca_file)
    # A tenant's name in a header is no secret.
    login.check(options.url or "", has_secret=any(map(_SECRET.search, _headers(options))))
    try:
        if options.ca_file:
            login.context()
    except HttpFault as fault:
        raise UserError(f"{options.ca_file} holds no certificate ({fault.detail}); give a PEM file") from None
    return login


def _headers(options: StoreOptions) -> dict[str, str]:
    """Return what to send beside the login. Raises UserError."""
    path = options.headers_file
    if path is None:
        return {}
    found: dict[str, str] = {}
    text = text_of(path, kibibytes=64, advice="give a text file")
    for number, line in enumerate(text.splitlines(), start=1):
        if not line.strip() or line.startswith("#"):
            continue
        header = _HEADER.fullmatch(line.strip())
        if not header or not header[2].isprintable():
            raise UserError(f"{path}, line {number}: not a header; write it like 'X-Scope-OrgID: team-a'")
        found[header[1]] = header[2]
    return found
