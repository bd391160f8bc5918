"""Asks a store over HTTP. All questions are instant queries in plain PromQL: every store answers them alike."""

import asyncio
import ssl
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TypeVar
from urllib.parse import urlsplit

import aiohttp

from podgpu.cluster.store import answer
from podgpu.cluster.store.answer import Point, Series
from podgpu.cluster.store.fault import PARTIAL, Notice, StoreFault
from podgpu.cluster.store.login import Login
from podgpu.cluster.store.options import Options
from podgpu.errors import UserError

T = TypeVar("T")
Read = Callable[[int, bytes], tuple[list[T], list[Notice]]]

LARGEST_ANSWER = 256 << 20
AT_A_TIME = 4
_CONNECT_SECONDS = 5.0
# Each is for one kind of store, and the others ignore it. VictoriaMetrics must not move the time to an earlier one.
# Thanos must leave out copies of samples, and take none that stand for several.
_MANNER = {"nocache": "1", "dedup": "true", "max_source_resolution": "0s"}
# How Thanos and a cluster of VictoriaMetrics are told to answer with all or nothing.
_WHOLE = {"partial_response": "false", "deny_partial_response": "1"}


class Store:
    """`notices` gathers what the store said beside its answers."""

    def __init__(self, options: Options, *, whole: bool = False) -> None:
        """With `whole`, an answer from half of the store's data is a fault: differences of counters would be wrong."""
        if options.url is None:
            raise UserError("no store is given; write --prometheus.url=http://HOST:9090")
        self._url = f"{options.url}/api/v1/query"
        self._where = urlsplit(options.url).netloc
        self._options = options
        self._whole = whole
        self._manner = {**_MANNER, **(_WHOLE if whole else {})}
        self._login = Login(options)
        self._context = _trusted(options)
        self._places = asyncio.Semaphore(AT_A_TIME)
        self._session: aiohttp.ClientSession | None = None
        self._is_closed = False
        self.notices: set[Notice] = set()

    def select(self, metric: str, *more: str) -> str:
        """Name the series of a metric that the user chose, and that match what is given."""
        inside = ",".join(one for one in (self._options.selector, *more) if one)
        return f"{metric}{{{inside}}}" if inside else metric

    async def points(self, query: str, at: float) -> list[Point]:
        return await self._ask(query, at, answer.points)

    async def series(self, query: str, at: float) -> list[Series]:
        """Return the samples of a selector with a range, such as `up[5m]`."""
        return await self._ask(query, at, answer.series)

    async def close(self) -> None:
        self._is_closed = True
        if self._session:
            await self._session.close()
            self._session = None

    async def _ask(self, query: str, at: float, read: Read[T]) -> list[T]:
        async with self._places:
            with _faults(self._where, self._options.timeout):
                status, body = await self._answer({"query": query, "time": f"{at:.3f}", **self._manner})
        # It takes long for a large answer, and nothing else may wait for it.
        found, notices = await asyncio.to_thread(read, status, body)
        if self._whole and (missing := [one for one in notices if one.reason == PARTIAL]):
            raise StoreFault(PARTIAL, missing[0].detail)
        self.notices.update(notices)
        return found

    async def _answer(self, form: dict[str, str]) -> tuple[int, bytes]:
        if self._is_closed:  # one of several questions failed, and the others went on
            raise StoreFault("store_unreachable", f"{self._where} is not asked any more")
        if self._session is None:
            timeout = aiohttp.ClientTimeout(total=self._options.timeout, sock_connect=_CONNECT_SECONDS)
            self._session = aiohttp.ClientSession(timeout=timeout, cookie_jar=aiohttp.DummyCookieJar())
        headers = {"Accept": "application/json", "User-Agent": "podgpu", **self._login.headers()}
        async with self._session.post(
            self._url, data=form, headers=headers, ssl=self._context, allow_redirects=False
        ) as response:
            if 300 <= response.status < 400:
                detail = f"{self._where} redirects to {response.headers.get('Location', 'nowhere')}"
                raise StoreFault("store_refused", f"{detail}: give the store's own address")
            body = bytearray()
            async for chunk in response.content.iter_any():
                body += chunk
                if len(body) > LARGEST_ANSWER:
                    raise StoreFault("store_too_large", f"an answer has more than {LARGEST_ANSWER >> 20} MiB")
            return response.status, bytes(body)


def _trusted(options: Options) -> ssl.SSLContext | bool:
    if options.ca_file is None:
        return True
    try:
        return ssl.create_default_context(cafile=str(options.ca_file))
    except OSError as error:  # ssl.SSLError is a subclass
        raise UserError(f"{options.ca_file} holds no certificate ({error}); give a PEM file") from None


@contextmanager
def _faults(where: str, seconds: float) -> Iterator[None]:
    try:
        yield
    except TimeoutError:
        raise StoreFault("store_late", f"{where} gave no answer within {seconds:g} s") from None
    except aiohttp.ClientSSLError as error:
        raise StoreFault("store_tls", f"{where}: {error}") from None
    except (aiohttp.ClientResponseError, aiohttp.ClientPayloadError, aiohttp.InvalidURL) as error:
        raise StoreFault("store_garbage", f"{where}: {error}") from None
    except (aiohttp.ClientError, OSError) as error:
        raise StoreFault("store_unreachable", f"{where}: {error or type(error).__name__}") from None
