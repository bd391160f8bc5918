"""A connection until its TLS handshake is done."""

import asyncio
import ssl
from typing import cast

from podgpu.serve.crowd import Crowd
from podgpu.serve.entry.origin import origin
from podgpu.serve.limits import Limits
from podgpu.supervise import brief


class Handshake(asyncio.Protocol):
    """Counts as one of the crowd, so that clients who do not get on with it have a deadline and make room for others.

    `inner` takes over afterwards. It also gets what the client sent right behind its handshake.
    """

    def __init__(
        self, inner: asyncio.Protocol, context: ssl.SSLContext, crowd: Crowd, limits: Limits
    ) -> None:
        self._inner = inner
        self._context = context
        self._crowd = crowd
        self._limits = limits
        self._early = b""
        self._lost = False
        self._raw: asyncio.Transport | None = None
        self._task: asyncio.Task[None] | None = None
        self.quiet_since: float | None = None
        self.stalled_since: float | None = None
        self.address = ""
        self.is_proven = False
        self.scraped_at: float | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._raw = cast("asyncio.Transport", transport)
        self.address = origin(transport.get_extra_info("peername"))
        loop = asyncio.get_running_loop()
        if not self._crowd.admit(self, loop.time()):
            self._raw.abort()  # an answer would take a handshake
            return
        self.quiet_since = loop.time()
        self._raw.pause_reading()
        self._task = brief(self._shake(self._raw))

    def data_received(self, data: bytes) -> None:
        self._early += data

    def connection_lost(self, exc: BaseException | None) -> None:
        self._lost = True
        self._crowd.leave(self)

    def check(self, now: float) -> None:
        if self.quiet_since is not None and now - self.quiet_since > self._limits.head_seconds:
            self.abort()

    def abort(self) -> None:
        self._crowd.leave(self)
        if self._task is not None:
            self._task.cancel()
        if self._raw is not None:
            self._raw.abort()

    async def _shake(self, raw: asyncio.Transport) -> None:
        try:
            wire = await asyncio.get_running_loop().start_tls(
                raw, self, self._context, server_side=True, ssl_shutdown_timeout=self._limits.write_seconds
            )
        except OSError:  # not logged: any client could fill the log with it
            raw.abort()
            return
        finally:
            self._crowd.leave(self)
        if wire is not None and not self._lost:
            self._hand_over(wire)

    def _hand_over(self, wire: asyncio.Transport) -> None:
        wire.set_protocol(self._inner)
        self._inner.connection_made(wire)
        if self._early:
            self._inner.data_received(self._early)
