"""A store that answers what a test tells it to, over a real socket."""

import asyncio
import json
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

from aiohttp import web


@dataclass
class StubStore:
    """`answer` is sent for every question, after `delay` seconds. `asked` keeps the questions."""

    status: int = 200
    answer: Any = None
    body: bytes | None = None
    headers: dict[str, str] = field(default_factory=dict)
    delay: float = 0.0
    asked: list[dict[str, str]] = field(default_factory=list)
    seen: list[web.BaseRequest] = field(default_factory=list)
    url: str = ""

    async def handle(self, request: web.BaseRequest) -> web.Response:
        self.seen.append(request)
        self.asked.append({name: str(value) for name, value in (await request.post()).items()})
        await asyncio.sleep(self.delay)
        body = self.body if self.body is not None else json.dumps(self.answer).encode()
        return web.Response(status=self.status, body=body, headers=self.headers)


@asynccontextmanager
async def serving(stub: StubStore, tls: ssl.SSLContext | None = None) -> AsyncIterator[StubStore]:
    runner = web.ServerRunner(web.Server(stub.handle))
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0, ssl_context=tls)
    await site.start()
    stub.url = f"{'https' if tls else 'http'}://127.0.0.1:{runner.addresses[0][1]}"
    try:
        yield stub
    finally:
        for _ in range(20):  # a connection that was accepted just now must be made before it can be closed
            await asyncio.sleep(0)
        await runner.cleanup()


def vector(*rows: tuple[dict[str, str], str], **more: Any) -> dict[str, Any]:
    result = [{"metric": labels, "value": [1.0, value]} for labels, value in rows]
    return {"status": "success", "data": {"resultType": "vector", "result": result}, **more}


def matrix(*rows: tuple[dict[str, str], list[tuple[float, str]]]) -> dict[str, Any]:
    result = [{"metric": labels, "values": values} for labels, values in rows]
    return {"status": "success", "data": {"resultType": "matrix", "result": result}}


def error(kind: str, message: str) -> dict[str, Any]:
    return {"status": "error", "errorType": kind, "error": message}
