"""The same pages behind other HTTP servers, for `python -m bench.stress --server aiohttp` or `--server uvicorn`.

podgpu does not need either of them: `pip install aiohttp uvicorn` first. docs/architecture.md has the table.
"""

import asyncio
import socket
from collections.abc import Mapping, Sequence
from typing import Any

from bench.stress.served import Changing
from podgpu.config import Config
from podgpu.option.value import NATIVE, Address
from podgpu.serve.http.request import Request
from podgpu.serve.pages import NodePages, register_pages
from podgpu.serve.request_handler import Load, Route
from podgpu.serve.routes import NodeRoutes

BACKLOG = 4096
KEPT_SECONDS = 75


def _table() -> Mapping[str, Route]:
    return NodeRoutes(Changing(), NodePages(20_000, register_pages(Config().of)), Load(40)).table(NATIVE)


class AiohttpServer:
    ports: tuple[int, ...] = ()

    async def start(self, _addresses: Sequence[Address]) -> None:
        from aiohttp import web

        table = _table()

        async def handler(theirs: web.Request) -> web.Response:
            headers = {name.lower(): value for name, value in theirs.headers.items()}
            request = Request(
                theirs.method,
                theirs.path,
                dict(theirs.query),
                headers,
                theirs.remote or "",
                pairs=tuple(theirs.query.items()),
            )
            response = await table[theirs.path].run(request)
            return web.Response(status=response.status, body=response.body, headers=response.fields)

        application = web.Application()
        application.router.add_route("*", "/{path:.*}", handler)
        runner = web.AppRunner(application, access_log=None, keepalive_timeout=KEPT_SECONDS)
        await runner.setup()
        site = web.TCPSite(runner, "127.0.0.1", 0, backlog=BACKLOG)
        await site.start()
        self.ports = tuple(address[1] for address in runner.addresses)


class UvicornServer:
    ports: tuple[int, ...] = ()

    async def start(self, _addresses: Sequence[Address]) -> None:
        import uvicorn

        table = _table()

        async def application(scope: Any, receive: Any, send: Any) -> None:
            headers = {name.decode(): value.decode() for name, value in scope["headers"]}
            request = Request(scope["method"], scope["path"], {}, headers, scope["client"][0])
            response = await table[scope["path"]].run(request)
            fields = [(name.encode(), value.encode()) for name, value in response.fields.items()]
            fields.append((b"Content-Length", str(len(response.body)).encode()))
            await send({"type": "http.response.start", "status": response.status, "headers": fields})
            await send({"type": "http.response.body", "body": response.body})

        config = uvicorn.Config(
            application,
            http="httptools",
            lifespan="off",
            log_level="error",
            backlog=BACKLOG,
            timeout_keep_alive=KEPT_SECONDS,
        )
        listening = socket.create_server(("127.0.0.1", 0), backlog=BACKLOG)  # clients may come before it serves
        self._task = asyncio.ensure_future(uvicorn.Server(config).serve([listening]))
        self.ports = (listening.getsockname()[1],)


SERVERS = {"aiohttp": AiohttpServer, "uvicorn": UvicornServer}
