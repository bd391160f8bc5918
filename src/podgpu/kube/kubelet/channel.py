"""A connection to the kubelet that lets nobody keep it busy: grpclib answers every ping, and waits to send the answers.

What is sent here is a few bytes for each call. If they pile up, the other side does not read.
"""

import time
from asyncio import BaseTransport, Transport
from pathlib import Path
from typing import cast

from grpclib.client import Channel, Handler
from grpclib.encoding.base import CodecBase
from grpclib.protocol import H2Protocol
from h2.events import PingReceived

READ_BYTES = 32 << 10  # at once: as many frames as fit in there are answered before anybody else has a turn
PINGS = 200  # that come for free, and as many more each second


class GuardedProtocol(H2Protocol):
    _pings = 0
    _began = 0.0
    _transport: Transport

    def connection_made(self, transport: BaseTransport) -> None:
        super().connection_made(transport)
        self._transport = cast("Transport", transport)
        self._began = time.monotonic()
        self._transport.max_size = READ_BYTES  # type: ignore[attr-defined] # of the event loop's own transports
        self.processor.processors[PingReceived] = self._count

    def pause_writing(self) -> None:
        self.hang_up()

    def hang_up(self) -> None:
        """Close at once. Otherwise what is still to be sent to a peer that reads nothing would keep it open."""
        self._transport.abort()

    def _count(self, _: PingReceived) -> None:
        self._pings += 1
        if self._pings > PINGS * (1 + time.monotonic() - self._began):
            self.hang_up()


class GuardedChannel(Channel):
    _protocol: GuardedProtocol | None

    def __init__(self, socket: Path, codec: CodecBase) -> None:
        super().__init__(path=str(socket), codec=codec)

    def _protocol_factory(self) -> GuardedProtocol:
        return GuardedProtocol(Handler(), self._config, self._h2_config)

    def close(self) -> None:
        protocol = self._protocol
        super().close()
        if protocol is not None:
            protocol.hang_up()
