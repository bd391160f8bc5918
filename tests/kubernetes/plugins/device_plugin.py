"""A device plugin that offers made-up GPUs over the kubelet's own socket, so that pods are really given them."""

import asyncio
from collections.abc import Sequence
from contextlib import suppress

from grpclib.client import Channel, UnaryUnaryMethod
from grpclib.const import Cardinality, Handler
from grpclib.server import Stream

from tests.fakekubelet.kubelet import PlainCodec
from tests.kubernetes.cluster.node import KUBELET
from tests.kubernetes.plugins.wire import field, fields, once, serve

FOLDER = KUBELET / "device-plugins"
_SERVICE = "/v1beta1.DevicePlugin"
_LOOK_SECONDS = 0.5


async def keep_offering(resource: str, devices: Sequence[str]) -> None:
    """Offer them to each kubelet that starts, as real plugins do: it removes all sockets that it finds."""
    known = 0
    while True:
        kubelet = FOLDER / "kubelet.sock"
        with suppress(OSError):  # it is not there yet, or not any more
            if (now := kubelet.stat().st_ctime_ns) != known:
                await _offer(resource, devices)
                known = now
        await asyncio.sleep(_LOOK_SECONDS)


async def _offer(resource: str, devices: Sequence[str]) -> None:
    """Serve the devices of one resource, and tell the kubelet where. Each is healthy and needs no preparation."""

    async def listed(stream: Stream[bytes, bytes]) -> None:
        await stream.recv_message()
        healthy = (field(1, each.encode()) + field(2, b"Healthy") for each in devices)
        await stream.send_message(b"".join(field(1, each) for each in healthy))
        await asyncio.Event().wait()

    endpoint = resource.replace("/", "_") + ".sock"
    calls = {
        f"{_SERVICE}/GetDevicePluginOptions": once(_options),
        f"{_SERVICE}/ListAndWatch": Handler(listed, Cardinality.UNARY_STREAM, bytes, bytes),
        f"{_SERVICE}/Allocate": once(_allocated),
    }
    await serve(FOLDER / endpoint, calls)
    await _register(field(1, b"v1beta1") + field(2, endpoint.encode()) + field(3, resource.encode()))


async def _options(_: bytes) -> bytes:
    return b""


async def _allocated(asked: bytes) -> bytes:
    """Nothing for each container that is asked for."""
    return b"".join(field(1, b"") for _ in fields(asked))


async def _register(request: bytes) -> None:
    channel = Channel(path=str(FOLDER / "kubelet.sock"), codec=PlainCodec())
    try:
        call = UnaryUnaryMethod[bytes, bytes](channel, "/v1beta1.Registration/Register", bytes, bytes)
        await call(request)
    finally:
        channel.close()
