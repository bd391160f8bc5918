"""A kubelet that sends pings without an end."""

import asyncio
from pathlib import Path

import pytest
from h2.config import H2Configuration
from h2.connection import H2Connection
from h2.events import PingReceived

from podgpu.kube.kubelet import rpc
from podgpu.kube.kubelet.podresources import PodResources
from tests.fakekubelet.kubelet import POD_RESOURCES, kubelet_root
from tests.fakekubelet.rig import reason
from tests.kube.turns import Turns, running
from tests.patience import until

MIB = 1 << 20
PING_BYTES = 17  # of a frame


def descriptors() -> int:
    return sum(1 for _ in Path("/proc/self/fd").iterdir())


class PingServer(asyncio.Protocol):
    """Speaks HTTP/2 as far as it takes to send pings without an end. It reads nothing after the beginning."""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        connection = H2Connection(H2Configuration(client_side=False))
        connection.initiate_connection()
        for _ in range(100):
            connection.ping(bytes(8))
        transport.write(connection.data_to_send())
        transport.pause_reading()
        self._frame = b"\0\0\x08\x06\0\0\0\0\0" + bytes(8)
        self._transport = transport
        self._flood()

    def _flood(self) -> None:
        if not self._transport.is_closing():
            if self._transport.get_write_buffer_size() < MIB:
                self._transport.write(self._frame * 5000)
            asyncio.get_running_loop().call_later(0.01, self._flood)

    def eof_received(self) -> bool:
        return False


@pytest.mark.filterwarnings("ignore::ResourceWarning")
async def test_a_kubelet_that_only_pings_costs_no_descriptors(monkeypatch: pytest.MonkeyPatch) -> None:
    turns = Turns()
    noticed = rpc.GuardedProtocol._count

    def counted(self: rpc.GuardedProtocol, ping: PingReceived) -> None:
        turns.count()
        noticed(self, ping)

    monkeypatch.setattr(rpc.GuardedProtocol, "_count", counted)
    with kubelet_root() as root:
        (root / "pod-resources").mkdir()
        server = await asyncio.get_running_loop().create_unix_server(PingServer, root / POD_RESOURCES)
        part = PodResources(root, deadline=0.3)
        async with running(turns):
            await part.read()
            before = descriptors()
            for _ in range(5):
                await part.read()
                assert reason(part.status()) in ("deadline", "unavailable", "garbage")
            assert 0 < turns.most <= rpc.READ_BYTES // PING_BYTES
        await until(lambda: descriptors() <= before + 2)  # that of the server's side may linger
        await part.close()
        server.close()
