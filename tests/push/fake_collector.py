"""Plays an OTLP collector on a loopback port: decodes what it gets, and answers as the test wants."""

import asyncio
import gzip
import ssl
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Self

from aiohttp import web
from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import (
    ExportMetricsServiceRequest,
    ExportMetricsServiceResponse,
)

from tests.ports import quiet_port
from tests.push.points import Points, points_of


@dataclass
class FakeCollector:
    answers: list[tuple[int, Mapping[str, str]]] = field(default_factory=list)  # before it takes what it gets
    delay: float = 0.0
    rejects: int = 0
    headers: list[Mapping[str, str]] = field(default_factory=list)
    requests: list[ExportMetricsServiceRequest] = field(default_factory=list)
    paths: list[str] = field(default_factory=list)
    port: int = field(default_factory=quiet_port)
    tls: ssl.SSLContext | None = None

    def __post_init__(self) -> None:
        self._runner: web.AppRunner | None = None

    @property
    def url(self) -> str:
        return f"{'https' if self.tls else 'http'}://127.0.0.1:{self.port}"

    @property
    def points(self) -> Points:
        return points_of(self.requests[-1])

    async def __aenter__(self) -> Self:
        app = web.Application(client_max_size=1 << 26)
        app.router.add_post("/{path:.*}", self._answer)
        self._runner = web.AppRunner(app, shutdown_timeout=0.2)
        await self._runner.setup()
        site = web.TCPSite(self._runner, "127.0.0.1", self.port, reuse_address=True, ssl_context=self.tls)
        await site.start()
        return self

    async def __aexit__(self, *_: object) -> None:
        if self._runner:
            await self._runner.cleanup()

    async def _answer(self, request: web.Request) -> web.Response:
        body = await request.read()
        self.paths.append(request.path)
        self.headers.append(dict(request.headers))
        await asyncio.sleep(self.delay)
        if self.answers:
            status, headers = self.answers.pop(0)
            return web.Response(status=status, headers=headers)
        if body[:2] == b"\x1f\x8b":  # not yet unpacked by the server
            body = gzip.decompress(body)
        self.requests.append(ExportMetricsServiceRequest.FromString(body))
        answer = ExportMetricsServiceResponse()
        if self.rejects:
            answer.partial_success.rejected_data_points = self.rejects
            answer.partial_success.error_message = "too old"
        return web.Response(body=answer.SerializeToString(), content_type="application/x-protobuf")
