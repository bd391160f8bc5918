"""A server on a real socket that answers with raw bytes, and a client of it."""

import asyncio
import ssl
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

import pytest

from podgpu.net.client import HttpAnswer, HttpClient
from podgpu.net.connection import REASONS, HttpFault
from podgpu.net.login import Login
from tests.patience import PATIENCE

OK = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"


class Server:
    """Answers every request with `answer` of its head; `heads` are those that came."""

    def __init__(self, answer: bytes | Callable[[str], bytes], *, hangs_up: bool = False) -> None:
        self.answer = answer
        self.hangs_up = hangs_up
        self.heads: list[str] = []
        self.bodies: list[bytes] = []
        self.connections = 0
        self.writers: list[asyncio.StreamWriter] = []
        self.url = ""

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        self.writers.append(writer)
        try:
            while True:
                head = (await reader.readuntil(b"\r\n\r\n")).decode()
                self.heads.append(head)
                length = [line for line in head.splitlines() if line.startswith("Content-Length: ")]
                self.bodies.append(await reader.readexactly(int(length[0].split()[1])) if length else b"")
                writer.write(self.answer(head) if callable(self.answer) else self.answer)
                await writer.drain()
                if self.hangs_up:
                    break
        except (asyncio.IncompleteReadError, ConnectionError):
            pass
        writer.close()


@asynccontextmanager
async def serving(
    answer: bytes | Callable[[str], bytes], *, hangs_up: bool = False, tls: ssl.SSLContext | None = None
) -> AsyncIterator[Server]:
    found = Server(answer, hangs_up=hangs_up)
    server = await asyncio.start_server(found.serve, "127.0.0.1", 0, ssl=tls)
    found.url = f"{'https' if tls else 'http'}://127.0.0.1:{server.sockets[0].getsockname()[1]}"
    try:
        yield found
    finally:
        server.close()
        for writer in found.writers:
            writer.close()


@asynccontextmanager
async def client(login: Login | None = None, **options: Any) -> AsyncIterator[HttpClient]:
    made = HttpClient(login, **options)
    try:
        yield made
    finally:
        await made.close()


async def get(made: HttpClient, url: str, *, seconds: float = PATIENCE, limit: int = 1 << 20) -> HttpAnswer:
    return await made.request("GET", url, seconds=seconds, limit=limit)


async def fault_of(
    url: str, login: Login | None = None, *, seconds: float = PATIENCE, limit: int = 1 << 20
) -> HttpFault:
    async with client(login) as made:
        with pytest.raises(HttpFault) as caught:
            await get(made, url, seconds=seconds, limit=limit)
    assert caught.value.reason in REASONS and caught.value.detail
    return caught.value
