"""A device plugin that offers made-up GPUs over the kubelet's own socket, so that pods are really given them.

python -m tests.kubernetes.device_plugin nvidia.com/gpu=GPU-1,GPU-2 nvidia.com/gpu.shared=GPU-3::0,GPU-3::1
"""

import asyncio
import sys
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

from grpclib.client import Channel, UnaryUnaryMethod
from grpclib.const import Cardinality, Handler
from grpclib.server import Server, Stream

from tests.fakekubelet.kubelet import PlainCodec
from tests.kubernetes.node import KUBELET

FOLDER = KUBELET / "device-plugins"
_SERVICE = "/v1beta1.DevicePlugin"
_UNARY = Cardinality.UNARY_UNARY


class Plugin:
    """Offers the devices of one resource. Each is healthy, and to be given one needs no preparation."""

    def __init__(self, resource: str, devices: Sequence[str]) -> None:
        self._devices = devices
        self.resource = resource
        self.endpoint = resource.replace("/", "_") + ".sock"

    def __mapping__(self) -> dict[str, Handler]:
        calls = {
            "GetDevicePluginOptions": (self._nothing, _UNARY),
            "ListAndWatch": (self._list, Cardinality.UNARY_STREAM),
            "Allocate": (self._allocate, _UNARY),
        }
        return {
            f"{_SERVICE}/{name}": Handler(call, kind, bytes, bytes) for name, (call, kind) in calls.items()
        }

    async def _nothing(self, stream: Stream[bytes, bytes]) -> None:
        await stream.recv_message()
        await stream.send_message(b"")

    async def _list(self, stream: Stream[bytes, bytes]) -> None:
        await stream.recv_message()
        offered = (field(1, each.encode()) + field(2, b"Healthy") for each in self._devices)
        await stream.send_message(b"".join(field(1, each) for each in offered))
        await asyncio.Event().wait()

    async def _allocate(self, stream: Stream[bytes, bytes]) -> None:
        asked = await stream.recv_message()
        await stream.send_message(field(1, b"") * count_fields(asked or b""))


def field(number: int, data: bytes) -> bytes:
    """Write a protobuf field of bytes, or of a message."""
    assert len(data) < 1 << 14
    size = [len(data)] if len(data) < 0x80 else [len(data) & 0x7F | 0x80, len(data) >> 7]
    return bytes([number << 3 | 2, *size]) + data


def count_fields(message: bytes) -> int:
    """Count the fields of a message, each of bytes."""
    count, at = 0, 0
    while at < len(message):
        size, at = message[at + 1], at + 2
        if size & 0x80:
            size, at = size & 0x7F | message[at] << 7, at + 1
        count, at = count + 1, at + size
    return count


async def register(plugin: Plugin) -> None:
    """Tell the kubelet where the plugin listens."""
    request = field(1, b"v1beta1") + field(2, plugin.endpoint.encode()) + field(3, plugin.resource.encode())
    channel = Channel(path=str(FOLDER / "kubelet.sock"), codec=PlainCodec())
    try:
        call: Any = partial(UnaryUnaryMethod, channel, "/v1beta1.Registration/Register", bytes, bytes)
        await call()(request)
    finally:
        channel.close()


async def offer(plugins: Sequence[Plugin], folder: Path = FOLDER) -> None:
    """Serve until the task is cancelled. A kubelet that starts again removes the sockets; so do we ours then."""
    for plugin in plugins:
        server = Server([plugin], codec=PlainCodec())
        await server.start(path=str(folder / plugin.endpoint))
        await register(plugin)
    await asyncio.Event().wait()


def main(words: Sequence[str]) -> None:
    resources = (word.partition("=") for word in words)
    asyncio.run(offer([Plugin(name, ids.split(",")) for name, _, ids in resources]))


if __name__ == "__main__":
    main(sys.argv[1:])
