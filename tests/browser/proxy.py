"""A TCP proxy whose network can be cut: connections stay open and not a byte comes through, or they are dropped."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress

CHUNK = 65536


class Proxy:
    """`port` is its own, `target` where it leads."""

    def __init__(self) -> None:
        self.target = self.port = 0
        self._open = asyncio.Event()
        self._open.set()
        self._writers: set[asyncio.StreamWriter] = set()

    def cut(self) -> None:
        self._open.clear()

    def mend(self) -> None:
        self._open.set()

    def drop(self) -> None:
        """Reset every connection, as a router does that forgot them."""
        for writer in list(self._writers):
            writer.transport.abort()

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._writers.add(writer)
        try:
            await self._open.wait()
            there, back = await asyncio.open_connection("127.0.0.1", self.target)
            self._writers.add(back)
            try:
                await asyncio.gather(self._pass(reader, back), self._pass(there, writer))
            finally:
                self._writers.discard(back)
                back.transport.abort()
        except OSError:
            pass
        finally:
            self._writers.discard(writer)
            writer.transport.abort()

    async def _pass(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(OSError):
            while data := await reader.read(CHUNK):
                await self._open.wait()
                writer.write(data)
                await writer.drain()
        writer.transport.abort()


@asynccontextmanager
async def proxied() -> AsyncIterator[Proxy]:
    proxy = Proxy()
    server = await asyncio.start_server(proxy.serve, "127.0.0.1", 0)
    proxy.port = server.sockets[0].getsockname()[1]
    try:
        yield proxy
    finally:
        server.close()
        proxy.mend()
        proxy.drop()
