"""The cap on pages that are being made."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from podgpu.serve import answer
from podgpu.serve.answer import Response
from podgpu.serve.connection import Connection
from podgpu.serve.crowd import Crowd
from podgpu.serve.desk import Desk
from podgpu.serve.guard.guard import Guard
from podgpu.serve.limits import Limits
from podgpu.serve.load import Load
from podgpu.serve.request import Request
from podgpu.serve.routes import Route
from tests.serve.rig import Client


class Kitchen:
    """A page that takes its time."""

    def __init__(self) -> None:
        self.ready = asyncio.Event()
        self.asked = asyncio.Semaphore(0)

    async def __call__(self, _request: Request) -> Response:
        self.asked.release()
        await self.ready.wait()
        return answer.text(200, "done")


@asynccontextmanager
async def clients(kitchen: Kitchen, max_requests: int, count: int) -> AsyncIterator[list[Client]]:
    load = Load(max_requests)
    table = {"/slow": Route(kitchen), "/-/healthy": Route(lambda _: answer.text(200, "healthy"), vital=True)}
    desk, crowd = Desk(table, load, Guard()), Crowd(Limits(), 100)
    loop = asyncio.get_running_loop()
    server = await loop.create_server(lambda: Connection(desk, crowd, Limits()), "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    made = [Client(*await asyncio.open_connection("127.0.0.1", port)) for _ in range(count)]
    try:
        yield made
    finally:
        for one in made:
            one.writer.transport.abort()
        server.close()


async def test_too_many_requests_are_answered_at_once() -> None:
    kitchen = Kitchen()
    async with clients(kitchen, 2, 4) as (first, second, third, probe):
        for client in (first, second):
            client.ask("/slow")
            await kitchen.asked.acquire()
        refused = await third.get("/slow")
        healthy = await probe.get("/-/healthy")
        kitchen.ready.set()
        served = [(await client.answer()).status for client in (first, second)]
        again = await third.get("/slow")
    assert refused.status == 503
    assert "retry-after" in refused.headers
    assert (healthy.status, served, again.status) == (200, [200, 200], 200)
