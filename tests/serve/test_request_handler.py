"""The cap on pages that are being made."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from podgpu.serve.guard.guard import Guard
from podgpu.serve.http.connection import ServerConnection
from podgpu.serve.http.connections import Connections
from podgpu.serve.http.request import Limits, Request
from podgpu.serve.http.response import Response, text_response
from podgpu.serve.request_handler import Load, RequestHandler, Route
from tests.serve.rig import Client


class SlowPage:
    """A page that takes its time."""

    def __init__(self) -> None:
        self.ready = asyncio.Event()
        self.asked = asyncio.Semaphore(0)

    async def __call__(self, _request: Request) -> Response:
        self.asked.release()
        await self.ready.wait()
        return text_response(200, "done")


@asynccontextmanager
async def clients(page: SlowPage, max_requests: int, count: int) -> AsyncIterator[list[Client]]:
    load = Load(max_requests)
    table = {
        "/slow": Route(page),
        "/-/healthy": Route(lambda _: text_response(200, "healthy"), vital=True),
    }
    handler, connections = RequestHandler(table, load, Guard()), Connections(Limits(), 100)
    loop = asyncio.get_running_loop()
    server = await loop.create_server(lambda: ServerConnection(handler, connections), "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    made = [Client(*await asyncio.open_connection("127.0.0.1", port)) for _ in range(count)]
    try:
        yield made
    finally:
        for client in made:
            client.writer.transport.abort()
        server.close()


async def test_too_many_requests_are_answered_at_once() -> None:
    page = SlowPage()
    async with clients(page, 2, 4) as (first, second, third, probe):
        for client in (first, second):
            client.ask("/slow")
            await page.asked.acquire()
        refused = await third.get("/slow")
        healthy = await probe.get("/-/healthy")
        page.ready.set()
        served = [(await client.answer()).status for client in (first, second)]
        again = await third.get("/slow")
    assert refused.status == 503
    assert "retry-after" in refused.headers
    assert (healthy.status, served, again.status) == (200, [200, 200], 200)
