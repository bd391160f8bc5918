"""Nodes, resource claims and resource slices of the whole cluster. Fields that are not named here are never decoded."""

from collections import Counter
from collections.abc import Callable, Collection, Iterator

import msgspec
from msgspec import Struct

from podgpu.kube.api import MALFORMED
from podgpu.kube.object_cache import CachedObject, ObjectCache, number
from podgpu.kube.pod_object import Subdomain, Uid
from podgpu.kube.resource_objects import (
    ClaimObject,
    SliceSpec,
    decode_device,
    newest,
    to_claim,
    to_device,
    waiting_claim,
)
from podgpu.model import KubeNode, PoolDevice, ResourceClaim

INTERNAL = "InternalIP"


class Metadata(Struct, rename="camel"):
    name: Subdomain
    uid: Uid
    resource_version: str = ""
    labels: dict[str, str] | None = None
    annotations: dict[str, str] | None = None


class Address(Struct):
    type: str = ""
    address: str = ""


class NodeCondition(Struct):
    type: str = ""
    status: str = ""


class NodeStatus(Struct):
    addresses: list[Address] | None = None
    conditions: list[NodeCondition] | None = None
    allocatable: dict[str, str | int] | None = None
    capacity: dict[str, str | int] | None = None


class NodeObject(Struct):
    metadata: Metadata
    status: NodeStatus | None = None


class Identity(Struct, rename="camel"):
    uid: Uid
    resource_version: str = ""


class Identified(Struct):
    metadata: Identity


class IdentifiedSlice(Struct):
    metadata: Identity
    spec: SliceSpec


_decode_node = msgspec.json.Decoder(NodeObject).decode
_decode_claim = msgspec.json.Decoder(ClaimObject).decode
_decode_identity = msgspec.json.Decoder(Identified).decode
_decode_slice = msgspec.json.Decoder(IdentifiedSlice).decode


class NodeBook(ObjectCache[KubeNode]):
    """Keeps the annotations with these names, and the labels that `wants_label` accepts."""

    def __init__(self, annotations: Collection[str], wants_label: Callable[[str], bool]) -> None:
        super().__init__()
        self._annotations = annotations
        self._wants_label = wants_label

    def place(self, item: KubeNode) -> tuple[str, ...]:
        return (item.name,)

    def decoded(self, data: bytes | msgspec.Raw) -> CachedObject[KubeNode] | None:
        item = _decode_node(data)
        metadata, status = item.metadata, item.status or NodeStatus()
        labels, annotations = metadata.labels or {}, metadata.annotations or {}
        node = KubeNode(
            name=metadata.name,
            address=next((one.address for one in status.addresses or () if one.type == INTERNAL), ""),
            ready=_ready(status),
            labels={name: value for name, value in labels.items() if self._wants_label(name)},
            annotations={name: value for name, value in annotations.items() if name in self._annotations},
            allocatable=_extended(status.allocatable),
            capacity=_extended(status.capacity),
        )
        return CachedObject(number(metadata.resource_version), metadata.uid, node)


def _ready(status: NodeStatus) -> bool | None:
    said = next((one.status for one in status.conditions or () if one.type == "Ready"), "")
    return {"True": True, "False": False}.get(said)


def _extended(resources: dict[str, str | int] | None) -> dict[str, str]:
    return {name: str(value) for name, value in (resources or {}).items() if "/" in name}


class ClaimBook(ObjectCache[ResourceClaim]):
    def place(self, item: ResourceClaim) -> tuple[str, ...]:
        return item.namespace, item.name

    def decoded(self, data: bytes | msgspec.Raw) -> CachedObject[ResourceClaim] | None:
        who, item = _decode_identity(data).metadata, _decode_claim(data)
        return CachedObject(number(who.resource_version), who.uid, to_claim(item) or waiting_claim(item))


class SliceBook(ObjectCache[SliceSpec]):
    def __init__(self) -> None:
        super().__init__()
        self._slices: tuple[SliceSpec, ...] = ()
        self._devices: tuple[PoolDevice, ...] = ()

    def place(self, item: SliceSpec) -> tuple[str, ...]:
        return item.driver, item.pool.name, item.node_name or ""

    def decoded(self, data: bytes | msgspec.Raw) -> CachedObject[SliceSpec] | None:
        item = _decode_slice(data)
        # A Raw is a view into the whole page; a copy lets go of it.
        devices = [one.copy() for one in item.spec.devices or ()]
        spec = msgspec.structs.replace(item.spec, devices=devices)
        return CachedObject(number(item.metadata.resource_version), item.metadata.uid, spec)

    def devices(self) -> tuple[PoolDevice, ...]:
        """Return the same tuple for as long as nothing changes."""
        slices = self.items()
        if slices is not self._slices:
            self._slices, self._devices = slices, tuple(_pool_devices(slices, self.errors))
        return self._devices


def _pool_devices(slices: tuple[SliceSpec, ...], errors: Counter[str]) -> Iterator[PoolDevice]:
    for spec in newest(slices):
        for raw in spec.devices or ():
            try:
                yield to_device(spec, decode_device(raw))
            except MALFORMED:
                errors["garbage"] += 1
