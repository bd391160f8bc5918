"""What each path of a cluster's server answers."""

from collections.abc import Awaitable, Callable, Mapping

import msgspec

from podgpu.errors import UserError
from podgpu.serve import answer
from podgpu.serve.answer import Response
from podgpu.serve.cluster.feed import ClusterFeed, History
from podgpu.serve.cluster.menu import ClusterMenu
from podgpu.serve.cluster.pages import ClusterPage, ClusterPages, Stale
from podgpu.serve.cluster.questions import Questions
from podgpu.serve.cluster.rows import ClusterRows
from podgpu.serve.cluster.views import MetricsView
from podgpu.serve.load import Load
from podgpu.serve.menu import asked, form_of
from podgpu.serve.request import Request
from podgpu.serve.routes import Handler, Route, answered, is_known, rows_kind, under_policy, wants_gzip
from podgpu.views.dialects import PREFIX
from podgpu.views.json import encode

MOST_HOURS = 31 * 24


class ClusterRoutes:
    def __init__(
        self,
        feed: ClusterFeed,
        pages: ClusterPages,
        menu: ClusterMenu,
        history: History | None,
        questions: Questions[bytes],
        load: Load,
    ) -> None:
        self._feed = feed
        self._history = history
        self._questions = questions
        self._pages = pages
        self._menu = menu
        self._load = load
        self._all_rows = ClusterRows(lambda: feed.cluster)

    @property
    def dialects(self) -> list[str]:
        return self._menu.dialects

    def table(self, dialect: str) -> Mapping[str, Route]:
        pages = {path: Route(self._page(path)) for path in self._menu.views}
        return {
            **pages,
            "/api/v1/snapshot": Route(self._snapshot, waits=True),
            "/api/v1/rows": Route(self._rows),
            "/api/v1/history": Route(self._past, waits=True),
            "/metrics": pages[PREFIX + dialect],
            "/healthz": Route(self._alive, vital=True, open=True),
            "/-/healthy": Route(self._healthy, vital=True, open=True),
            "/-/ready": Route(self._ready, vital=True, open=True),
        }

    def _page(self, path: str) -> Handler:
        queried = self._menu.queried.get(path)
        if path in self._menu.metrics:
            return self._metrics(path, self._menu.metrics[path])

        @_fresh
        async def page(request: Request) -> Response:
            form, gzipped = form_of(path, request.headers.get("accept")), wants_gzip(request)
            if request.query and queried is not None:
                view = queried(request.query)
                return _answer(await self._pages.once(view, form, gzipped=gzipped), request)
            response = _answer(await self._pages.page(path, form, gzipped=gzipped), request)
            return under_policy(response) if path == "/" else response

        return page

    def _metrics(self, path: str, view: MetricsView) -> Handler:
        @_fresh
        async def metrics(request: Request) -> Response:
            form, gzipped = form_of(path, request.headers.get("accept")), wants_gzip(request)
            try:
                wanted = asked(request)
            except UserError as error:
                return answer.text(400, str(error))
            if wanted is None:
                return _answer(await self._pages.page(path, form, gzipped=gzipped), request)
            return _answer(await self._pages.some(path, view, wanted, form, gzipped=gzipped), request)

        return metrics

    async def _snapshot(self, request: Request) -> Response:
        """Pass on a node's snapshot with everything in it: the cluster's own are slim."""
        name = request.query.get("node", "")
        if not name:
            return answer.text(400, "name a node, such as /api/v1/snapshot?node=NAME")
        try:
            found = await self._questions.ask(("node", name), lambda: self._document(name))
        except UserError as error:
            return answer.text(404, str(error))
        return Response(200, found, "application/json")

    async def _document(self, name: str) -> bytes:
        return encode(await self._feed.full(name))

    async def _rows(self, request: Request) -> Response:
        by = rows_kind(request)
        if isinstance(by, Response):
            return by
        return answered(await self._all_rows.page(by, gzipped=wants_gzip(request)), request)

    def _alive(self, _request: Request) -> Response:
        """What zxporter says."""
        return answer.text(200, "OK")

    async def _past(self, request: Request) -> Response:
        """Answer with a pod's use over hours, from the store."""
        namespace, _, pod = request.query.get("pod", "").partition("/")
        hours = _hours(request.query.get("hours", "24"))
        if not (namespace and pod and hours):
            wanted = f"/api/v1/history?pod=NAMESPACE/POD&hours=24, with 1 to {MOST_HOURS} hours"
            return answer.text(400, f"write {wanted}")
        history = self._history
        if history is None:
            return answer.text(404, "there is no store; give one with --prometheus.url")
        try:
            found = await self._questions.ask(
                ("pod", namespace, pod, hours), lambda: _past_of(history, namespace, pod, hours * 3600)
            )
        except UserError as error:
            return answer.text(502, str(error))
        return Response(200, found, "application/json")

    def _healthy(self, _request: Request) -> Response:
        return answer.text(200, "healthy")

    def _ready(self, _request: Request) -> Response:
        if self._load.stopping:
            return answer.busy("stopping")
        return answer.text(200, "ready") if self._feed.ready else answer.busy("no node has been read yet")


async def _past_of(history: History, namespace: str, pod: str, seconds: int) -> bytes:
    return msgspec.json.encode(await history.of(namespace, pod, seconds))


def _fresh(handler: Callable[[Request], Awaitable[Response]]) -> Handler:
    """Answer 503 rather than with what is too old."""

    async def checked(request: Request) -> Response:
        try:
            return await handler(request)
        except Stale as stale:
            return answer.busy(str(stale))

    return checked


def _hours(text: str) -> int | None:
    if not (text.isascii() and text.isdigit() and len(text) <= len(str(MOST_HOURS))):
        return None
    return int(text) if 1 <= int(text) <= MOST_HOURS else None


def _answer(page: ClusterPage, request: Request) -> Response:
    headers = {"ETag": page.etag}
    if page.gzipped:
        headers["Content-Encoding"] = "gzip"
    if is_known(page.etag, request.headers.get("if-none-match", "")):
        return Response(304, b"", page.content_type, headers)
    return Response(200, b"", page.content_type, headers, page.pieces)
