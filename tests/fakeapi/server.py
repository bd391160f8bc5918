"""Plays the API server on a loopback port: paged lists, watches with a history, refusals, a token that rotates."""

import asyncio
import json
import re
import socket
import ssl
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Self

import aiohttp
from aiohttp import web

from tests.ports import quiet_port

PODS = "/api/v1/pods"


@dataclass(frozen=True)
class Seen:
    path: str
    query: Mapping[str, str]
    token: str
    headers: Mapping[str, str]
    body: Any = None
    at: float = field(default_factory=time.monotonic)

    @property
    def is_watch(self) -> bool:
        return "watch" in self.query


@dataclass
class Plan:
    """An answer in place of the real one, `times` times."""

    wanted: Callable[[Seen], bool]
    status: int
    body: bytes
    headers: Mapping[str, str]
    times: int


@dataclass
class FakeApi:
    pods: list[dict[str, Any]] = field(default_factory=list)
    version: int = 1
    objects: dict[str, Any] = field(default_factory=dict)
    lists_of: dict[str, list[dict[str, Any]]] = field(default_factory=dict)  # other kinds, by path; watches say nothing
    reviews: dict[str, Callable[[Any], Any]] = field(default_factory=dict)  # what a POST there is answered
    token: str = ""
    tls: ssl.SSLContext | None = None
    requests: list[Seen] = field(default_factory=list)
    delay: float = 0.0
    piece: int = 1 << 20  # bytes written to a watch at once
    oldest: int = 0  # a watch from before this version is refused: 410
    gone_in_stream: bool = True
    on_refused_token: Callable[[], object] | None = None
    selects: bool = False  # whether lists are cut to what a label selector asks for
    pods_at: dict[str, str] = field(default_factory=dict)  # addresses behind the proxy, by the name of the pod

    def __post_init__(self) -> None:
        self.history: list[tuple[int, bytes]] = []
        self.open_watches = 0
        self._plans: list[Plan] = []
        self._news = asyncio.Event()
        self._life = object()
        self._runner: web.AppRunner | None = None
        self._port = quiet_port()  # it may go and come back

    @property
    def url(self) -> str:
        return f"{'https' if self.tls else 'http'}://127.0.0.1:{self._port}"

    @property
    def lists(self) -> list[Seen]:
        return [seen for seen in self.requests if seen.path == PODS and not seen.is_watch]

    @property
    def watches(self) -> list[Seen]:
        return [seen for seen in self.requests if seen.is_watch]

    async def __aenter__(self) -> Self:
        await self.start()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.stop()

    async def start(self) -> None:
        """Listen, on the same port as before if there was one."""
        app = web.Application()
        app.router.add_get("/{path:.*}", self._answer)
        app.router.add_post("/{path:.*}", self._answer)
        self._runner = web.AppRunner(app, shutdown_timeout=0.2)
        await self._runner.setup()
        listener = socket.socket()
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind(("127.0.0.1", self._port))
        await web.SockSite(self._runner, listener, ssl_context=self.tls).start()

    async def stop(self) -> None:
        self.end_watches()
        if self._runner:
            await self._runner.cleanup()
            self._runner = None

    def refuse(
        self,
        status: int,
        *,
        times: int = 1,
        body: bytes = b"",
        headers: Mapping[str, str] | None = None,
        wanted: Callable[[Seen], bool] = lambda _: True,
    ) -> Plan:
        plan = Plan(wanted, status, body, headers or {}, times)
        self._plans.append(plan)
        return plan

    def send(self, line: bytes, version: int = 0) -> None:
        """Write to every open watch, and to later ones that start before `version`."""
        self.history.append((version, line))
        self._wake()

    def event(self, kind: str, item: dict[str, Any]) -> None:
        self.send(event(kind, item), int(item["metadata"]["resourceVersion"]))

    def end_watches(self) -> None:
        self._life = object()
        self._wake()

    def _wake(self) -> None:
        self._news.set()
        self._news = asyncio.Event()

    async def _answer(self, request: web.Request) -> web.StreamResponse:
        token = request.headers.get("Authorization", "").removeprefix("Bearer ")
        body = await request.json() if request.method == "POST" else None
        seen = Seen(request.path, dict(request.query), token, dict(request.headers), body)
        self.requests.append(seen)
        ends = asyncio.get_running_loop().time() + self.delay
        while self.delay and asyncio.get_running_loop().time() < ends:  # noqa: ASYNC110 - a test may let the answer go
            await asyncio.sleep(0.005)
        for plan in self._plans:
            if plan.times and plan.wanted(seen):
                plan.times -= 1
                return web.Response(status=plan.status, body=plan.body, headers=dict(plan.headers))
        if self.token and token != self.token:
            if self.on_refused_token:
                self.on_refused_token()
            return _status(401, "Unauthorized")
        return self._review(seen) if request.method == "POST" else await self._found(request, seen)

    async def _found(self, request: web.Request, seen: Seen) -> web.StreamResponse:
        if "/proxy/" in seen.path:
            return await self._pass_on(seen)
        if seen.path == PODS and self.selects and "labelSelector" in seen.query:
            return self._list(seen, [pod for pod in self.pods if _is_selected(pod, seen)])
        if seen.path == PODS:
            return await self._watch(request, seen) if seen.is_watch else self._list(seen, self.pods)
        if seen.path in self.lists_of:
            items = self.lists_of[seen.path]
            return await self._watch(request, seen) if seen.is_watch else self._list(seen, items)
        if seen.path in self.objects:
            return web.json_response(self.objects[seen.path])
        if within := re.fullmatch(r"/api/v1/namespaces/([^/]+)/pods", seen.path):
            inside = [pod for pod in self.pods if pod["metadata"].get("namespace") == within[1]]
            return self._list(seen, [pod for pod in inside if not self.selects or _is_selected(pod, seen)])
        return _status(404, f"{seen.path} not found")

    def _review(self, seen: Seen) -> web.Response:
        if seen.path not in self.reviews:
            return _status(404, f"{seen.path} not found")
        return web.json_response({**seen.body, "status": self.reviews[seen.path](seen.body["spec"])}, status=201)

    def _list(self, seen: Seen, found: list[dict[str, Any]]) -> web.Response:
        begin = int(seen.query.get("continue", "0"))
        limit = int(seen.query.get("limit", "0")) or len(found)
        metadata = {"resourceVersion": str(self.version)}
        if begin + limit < len(found):
            metadata["continue"] = str(begin + limit)
        items = found[begin : begin + limit]
        return web.json_response({"kind": "List", "metadata": metadata, "items": items})

    async def _pass_on(self, seen: Seen) -> web.Response:
        """Answer as the pod behind the proxy does, at the address that `pods_at` has for its name."""
        _, _, rest = seen.path.partition("/pods/")
        pod, _, path = rest.partition("/proxy")
        url = self.pods_at.get(pod.partition(":")[0])
        if url is None:
            return _status(503, "error trying to reach service: connection refused")
        names = ("Accept-Encoding", "If-None-Match")
        headers = {name: seen.headers[name] for name in names if name in seen.headers}
        async with (
            aiohttp.ClientSession(auto_decompress=False) as session,
            session.get(url + path, params=seen.query, headers=headers) as answer,
        ):
            kept = {name: answer.headers[name] for name in ("ETag", "Content-Encoding") if name in answer.headers}
            return web.Response(status=answer.status, body=await answer.read(), headers=kept)

    async def _watch(self, request: web.Request, seen: Seen) -> web.StreamResponse:
        begin = int(seen.query["resourceVersion"])
        if begin < self.oldest and not self.gone_in_stream:
            return _status(410, "too old resource version")
        response = web.StreamResponse(headers={"Content-Type": "application/json"})
        response.enable_chunked_encoding()
        await response.prepare(request)
        if begin < self.oldest:
            await response.write(error(410, "too old resource version"))
            return response
        self.open_watches += 1
        try:
            await self._tell(response, seen.path, begin, float(seen.query["timeoutSeconds"]))
        finally:
            self.open_watches -= 1
        return response

    async def _tell(self, response: web.StreamResponse, path: str, begin: int, seconds: float) -> None:
        life, ends = self._life, asyncio.get_running_loop().time() + seconds
        at = next((i for i, (version, _) in enumerate(self.history) if version > begin), len(self.history))
        while True:
            while at < len(self.history):
                line = self.history[at][1] if path == PODS else b""
                for start in range(0, len(line), self.piece):
                    await response.write(line[start : start + self.piece])
                at += 1
            if life is not self._life:
                return
            try:
                await asyncio.wait_for(self._news.wait(), ends - asyncio.get_running_loop().time())
            except TimeoutError:
                return


def _is_selected(pod: dict[str, Any], seen: Seen) -> bool:
    wanted = dict(term.split("=", 1) for term in seen.query["labelSelector"].split(","))
    labels: dict[str, str] = pod["metadata"].get("labels", {})
    return wanted.items() <= labels.items()


def event(kind: str, item: object) -> bytes:
    return json.dumps({"type": kind, "object": item}).encode() + b"\n"


def error(code: int, message: str) -> bytes:
    return event("ERROR", {"kind": "Status", "code": code, "message": message})


def bookmark(version: int) -> bytes:
    return event("BOOKMARK", {"kind": "Pod", "metadata": {"resourceVersion": str(version)}})


def _status(code: int, message: str) -> web.Response:
    return web.json_response({"kind": "Status", "code": code, "message": message}, status=code)
