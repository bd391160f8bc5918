"""Plays a dcgm-exporter on a loopback port: one page, or what goes wrong with it."""

import asyncio
import socket
from dataclasses import dataclass, field
from pathlib import Path
from typing import Self

from aiohttp import web

RECORDED = Path(__file__).parents[2] / "recorded" / "dcgm-exporter"


def recorded(name: str) -> bytes:
    return (RECORDED / f"{name}.prom").read_bytes()


@dataclass
class FakeExporter:
    page: bytes = b""
    status: int = 200
    delay: float = 0.0
    headers: dict[str, str] = field(default_factory=dict)
    host: str = "127.0.0.1"

    def __post_init__(self) -> None:
        self.requests: list[web.BaseRequest] = []
        self.open = 0
        self.most_open = 0

    @property
    def url(self) -> str:
        return f"http://{self.host}:{self._port}/metrics"

    async def __aenter__(self) -> Self:
        listener = socket.socket()
        listener.bind((self.host, 0))
        self._port = listener.getsockname()[1]
        app = web.Application()
        app.router.add_get("/{path:.*}", self._answer)
        self._runner = web.AppRunner(app, shutdown_timeout=0.2)
        await self._runner.setup()
        await web.SockSite(self._runner, listener, backlog=128).start()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._runner.cleanup()

    async def _answer(self, request: web.Request) -> web.Response:
        self.requests.append(request)
        self.open += 1
        self.most_open = max(self.most_open, self.open)
        try:
            await asyncio.sleep(self.delay)
            return web.Response(status=self.status, body=self.page, headers=self.headers)
        finally:
            self.open -= 1
