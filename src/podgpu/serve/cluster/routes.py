"""What each path of a cluster's server answers."""

import asyncio
from collections.abc import Callable, Coroutine, Hashable, Mapping
from functools import partial
from typing import Any

import msgspec

from podgpu.errors import UserError
from podgpu.serve.cluster.pages import (
    BillMaker,
    ClusterFeed,
    ClusterPages,
    ClusterRows,
    FitMaker,
    StalePage,
    UsageHistory,
)
from podgpu.serve.cluster.statements import FIT_METRICS_PATH, FIT_PATH, BillRoute, FitRoute
from podgpu.serve.cluster.views import ClusterMetricsView, ClusterPageRegistry
from podgpu.serve.http.request import Request
from podgpu.serve.http.response import Response, busy_response, text_response
from podgpu.serve.pages import HTML, RenderedPage, asked, form_of
from podgpu.serve.past import MOST_HOURS
from podgpu.serve.request_handler import Load, Route
from podgpu.serve.routes import (
    JSON,
    facts_query,
    fresh_response,
    page_response,
    probes,
    rows_query,
    under_policy,
    wants_gzip,
    whole_number,
)
from podgpu.supervise import SingleFlight
from podgpu.views.cluster import page
from podgpu.views.dialects import PREFIX
from podgpu.views.facts import facts_document
from podgpu.views.json import encode


class ClusterRoutes:
    def __init__(
        self,
        feed: ClusterFeed,
        pages: ClusterPages,
        registry: ClusterPageRegistry,
        history: UsageHistory | None,
        bills: BillMaker | None,
        fits: FitMaker | None,
        load: Load,
    ) -> None:
        self._feed = feed
        self._pages = pages
        self._registry = registry
        self._history = history
        self._bills = BillRoute(bills) if bills else None
        self._fits = FitRoute(fits) if fits else None
        self._load = load
        self._fetches: SingleFlight[bytes] = SingleFlight()
        self._all_rows = ClusterRows(lambda: feed.cluster)

    def table(self, dialect: str) -> Mapping[str, Route]:
        pages = {path: Route(partial(self._page, path)) for path in self._registry.views}
        return {
            **pages,
            "/api/v1/snapshot": Route(self._snapshot, waits=True),
            "/api/v1/rows": Route(self._rows),
            "/api/v1/facts": Route(self._facts),
            "/api/v1/history": Route(self._past, waits=True),
            "/api/v1/report": Route(self._bills or _no_store, waits=True),
            **(self._fits.routes() if self._fits else dict.fromkeys((FIT_PATH, FIT_METRICS_PATH), Route(_no_store))),
            "/metrics": pages[PREFIX + dialect],
            **probes(self._load, lambda: self._feed.ready, "no node has been read yet"),
        }

    def close(self) -> None:
        self._fetches.close()
        if self._bills:
            self._bills.close()
        if self._fits:
            self._fits.close()

    async def _page(self, path: str, request: Request) -> Response:
        """Answer with 503 rather than with a page that is too old."""
        gpu = request.query.get("gpu", "") if path == "/" else ""
        if gpu and (card := page.card(self._feed.cluster, gpu)):
            return under_policy(page_response(RenderedPage(card, HTML), request))
        try:
            response = page_response(await self._rendered(path, request), request)
        except StalePage as stale:
            return busy_response(str(stale))
        return under_policy(response) if path == "/" else response

    async def _rendered(self, path: str, request: Request) -> RenderedPage:
        form, gzipped = form_of(path, request.headers.get("accept")), wants_gzip(request)
        view, queried = self._registry.views[path], self._registry.queried.get(path)
        if isinstance(view, ClusterMetricsView) and (wanted := asked(request)) is not None:
            return await self._pages.some(path, view, wanted, form, gzipped=gzipped)
        if request.query and queried is not None:
            return await self._pages.once(queried(request.query), form, gzipped=gzipped)
        return await self._pages.page(path, form, gzipped=gzipped)

    async def _snapshot(self, request: Request) -> Response:
        """Pass on a node's snapshot with everything in it: the cluster holds slim ones."""
        name = request.query.get("node", "")
        if not name:
            raise UserError("name a node, such as /api/v1/snapshot?node=NAME")

        async def fetch() -> bytes:
            return encode(await self._feed.full(name))

        return await self._fetched(("node", name), fetch, 404)

    async def _rows(self, request: Request) -> Response:
        page = await self._all_rows.page(rows_query(request), gzipped=wants_gzip(request))
        return page_response(page, request)

    async def _facts(self, request: Request) -> Response:
        body = await asyncio.to_thread(facts_document, self._feed.cluster, facts_query(request))
        return fresh_response(body, JSON, request)

    async def _past(self, request: Request) -> Response:
        """Answer with a pod's use over some hours, from the store."""
        namespace, _, pod = request.query.get("pod", "").partition("/")
        hours = whole_number("hours", request.query.get("hours", "24"), MOST_HOURS)
        if not (namespace and pod):
            raise UserError(f"write /api/v1/history?pod=NAMESPACE/POD&hours=24, with 1 to {MOST_HOURS} hours")
        history, seconds = self._history, hours * 3600
        if history is None:
            return _no_store(request)

        async def fetch() -> bytes:
            return msgspec.json.encode(await history.of(namespace, pod, seconds))

        return await self._fetched(("pod", namespace, pod, hours), fetch, 502)

    async def _fetched(self, key: Hashable, fetch: Callable[[], Coroutine[Any, Any, bytes]], refusal: int) -> Response:
        """Fetch a document once for all requests that wait for it. `refusal` is the status if there is none."""
        try:
            return Response(200, await self._fetches.result(key, fetch), JSON)
        except UserError as error:
            return text_response(refusal, str(error))


def _no_store(_request: Request) -> Response:
    return text_response(404, "there is no store; give one with --prometheus.url")
