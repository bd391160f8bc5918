"""A dcgm-exporter down to the bytes that it sends, so that it can send wrong ones."""

import asyncio
from asyncio import StreamReader, StreamWriter
from collections.abc import Awaitable, Callable
from contextlib import suppress

from tests.ports import quiet_port

HEAD = "HTTP/1.1 {status}\r\nContent-Type: text/plain\r\n{more}Connection: close\r\n\r\n"

Send = Callable[[StreamWriter], Awaitable[None]]


class Exporter:
    """`send` answers a request. By default it sends the whole page."""

    def __init__(self, page: Callable[[], bytes]) -> None:
        self.page = page
        self.send: Send = self.sound
        self._port = quiet_port()  # it may go and come back
        self._server: asyncio.Server | None = None
        self._answers: set[asyncio.Task[None]] = set()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._port}/metrics"

    async def start(self) -> None:
        """Listen, on the same port as before if there was one."""
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", self._port)

    async def stop(self) -> None:
        if self._server:
            self._server.close()
        for answer in self._answers:
            answer.cancel()
        await asyncio.gather(*self._answers, return_exceptions=True)

    async def sound(self, writer: StreamWriter) -> None:
        await self.answer(self.page())(writer)

    @staticmethod
    def answer(body: bytes, status: str = "200 OK", *, more: str = "", length: int | None = None) -> Send:
        """Send these bytes. `length` is how many are promised, if not as many as there are."""
        promised = f"Content-Length: {len(body) if length is None else length}\r\n"

        async def send(writer: StreamWriter) -> None:
            writer.write(HEAD.format(status=status, more=promised + more).encode() + body)
            await writer.drain()

        return send

    async def _serve(self, reader: StreamReader, writer: StreamWriter) -> None:
        task = asyncio.current_task()
        assert task
        self._answers.add(task)
        try:
            with suppress(ConnectionError, asyncio.IncompleteReadError):
                await reader.readuntil(b"\r\n\r\n")
                await self.send(writer)
        finally:
            self._answers.discard(task)
            writer.close()
