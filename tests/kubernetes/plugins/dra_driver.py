"""A driver for dynamic resource allocation (DRA) with one made-up GPU, over the kubelet's own sockets."""

from tests.kubernetes.cluster.control_plane import NODE
from tests.kubernetes.cluster.node import KUBELET
from tests.kubernetes.kubectl import Object
from tests.kubernetes.plugins.wire import field, fields, once, serve

NAME = "gpu.nvidia.com"
REQUEST, DEVICE = "gpu", "gpu-2"
_SOCKET = KUBELET / "plugins" / NAME / "dra.sock"
_SERVICE = "/k8s.io.kubelet.pkg.apis.dra.v1.DRAPlugin"


async def offer() -> None:
    """Serve, and let the kubelet find the driver in its folder."""
    calls = {
        f"{_SERVICE}/NodePrepareResources": once(_prepared),
        f"{_SERVICE}/NodeUnprepareResources": once(_released),
    }
    await serve(_SOCKET, calls)
    registration = {
        "/pluginregistration.Registration/GetInfo": once(_information),
        "/pluginregistration.Registration/NotifyRegistrationStatus": once(_heard),
    }
    await serve(KUBELET / "plugins_registry" / f"{NAME}-reg.sock", registration)


async def _information(_: bytes) -> bytes:
    texts = (b"DRAPlugin", NAME.encode(), str(_SOCKET).encode(), b"v1.DRAPlugin")
    return b"".join(field(number, text) for number, text in enumerate(texts, start=1))


async def _heard(_: bytes) -> bytes:
    return b""


async def _prepared(asked: bytes) -> bytes:
    device = field(1, REQUEST.encode()) + field(2, NODE.encode()) + field(3, DEVICE.encode())
    return _for_each_claim(asked, field(1, device))


async def _released(asked: bytes) -> bytes:
    return _for_each_claim(asked, b"")


def _for_each_claim(asked: bytes, answer: bytes) -> bytes:
    uids = (dict(fields(claim))[2] for _, claim in fields(asked))
    return b"".join(field(1, field(1, uid) + field(2, answer)) for uid in uids)


def slice_of(uuid: str) -> Object:
    """What the driver publishes: the node has this one card."""
    device = {"name": DEVICE, "attributes": {"uuid": {"string": uuid}, "type": {"string": "gpu"}}}
    pool = {"name": NODE, "generation": 1, "resourceSliceCount": 1}
    spec = {"driver": NAME, "nodeName": NODE, "pool": pool, "devices": [device]}
    return {**_resource("ResourceSlice", f"{NODE}-{NAME}"), "spec": spec}


def device_class() -> Object:
    chosen = [{"cel": {"expression": f"device.driver == '{NAME}'"}}]
    return {**_resource("DeviceClass", NAME), "spec": {"selectors": chosen}}


def claim(namespace: str, name: str) -> Object:
    wanted = [{"name": REQUEST, "exactly": {"deviceClassName": NAME}}]
    made = _resource("ResourceClaim", name)
    return {
        **made,
        "metadata": {"name": name, "namespace": namespace},
        "spec": {"devices": {"requests": wanted}},
    }


def _resource(kind: str, name: str) -> Object:
    return {"apiVersion": "resource.k8s.io/v1", "kind": kind, "metadata": {"name": name}}
