from google.protobuf.internal import containers as _containers
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class ListResponse(_message.Message):
    __slots__ = ("pods",)
    PODS_FIELD_NUMBER: _ClassVar[int]
    pods: _containers.RepeatedCompositeFieldContainer[PodEntry]
    def __init__(self, pods: _Optional[_Iterable[_Union[PodEntry, _Mapping]]] = ...) -> None: ...

class AllocatableResponse(_message.Message):
    __slots__ = ("devices",)
    DEVICES_FIELD_NUMBER: _ClassVar[int]
    devices: _containers.RepeatedCompositeFieldContainer[DeviceEntry]
    def __init__(self, devices: _Optional[_Iterable[_Union[DeviceEntry, _Mapping]]] = ...) -> None: ...

class PodEntry(_message.Message):
    __slots__ = ("name", "namespace", "containers")
    NAME_FIELD_NUMBER: _ClassVar[int]
    NAMESPACE_FIELD_NUMBER: _ClassVar[int]
    CONTAINERS_FIELD_NUMBER: _ClassVar[int]
    name: bytes
    namespace: bytes
    containers: _containers.RepeatedCompositeFieldContainer[ContainerEntry]
    def __init__(self, name: _Optional[bytes] = ..., namespace: _Optional[bytes] = ..., containers: _Optional[_Iterable[_Union[ContainerEntry, _Mapping]]] = ...) -> None: ...

class ContainerEntry(_message.Message):
    __slots__ = ("name", "devices", "claims")
    NAME_FIELD_NUMBER: _ClassVar[int]
    DEVICES_FIELD_NUMBER: _ClassVar[int]
    CLAIMS_FIELD_NUMBER: _ClassVar[int]
    name: bytes
    devices: _containers.RepeatedCompositeFieldContainer[DeviceEntry]
    claims: _containers.RepeatedCompositeFieldContainer[ClaimEntry]
    def __init__(self, name: _Optional[bytes] = ..., devices: _Optional[_Iterable[_Union[DeviceEntry, _Mapping]]] = ..., claims: _Optional[_Iterable[_Union[ClaimEntry, _Mapping]]] = ...) -> None: ...

class DeviceEntry(_message.Message):
    __slots__ = ("resource", "ids")
    RESOURCE_FIELD_NUMBER: _ClassVar[int]
    IDS_FIELD_NUMBER: _ClassVar[int]
    resource: bytes
    ids: _containers.RepeatedScalarFieldContainer[bytes]
    def __init__(self, resource: _Optional[bytes] = ..., ids: _Optional[_Iterable[bytes]] = ...) -> None: ...

class ClaimEntry(_message.Message):
    __slots__ = ("name", "namespace", "devices")
    NAME_FIELD_NUMBER: _ClassVar[int]
    NAMESPACE_FIELD_NUMBER: _ClassVar[int]
    DEVICES_FIELD_NUMBER: _ClassVar[int]
    name: bytes
    namespace: bytes
    devices: _containers.RepeatedCompositeFieldContainer[ClaimDevice]
    def __init__(self, name: _Optional[bytes] = ..., namespace: _Optional[bytes] = ..., devices: _Optional[_Iterable[_Union[ClaimDevice, _Mapping]]] = ...) -> None: ...

class ClaimDevice(_message.Message):
    __slots__ = ("driver", "pool", "device", "share_id")
    DRIVER_FIELD_NUMBER: _ClassVar[int]
    POOL_FIELD_NUMBER: _ClassVar[int]
    DEVICE_FIELD_NUMBER: _ClassVar[int]
    SHARE_ID_FIELD_NUMBER: _ClassVar[int]
    driver: bytes
    pool: bytes
    device: bytes
    share_id: bytes
    def __init__(self, driver: _Optional[bytes] = ..., pool: _Optional[bytes] = ..., device: _Optional[bytes] = ..., share_id: _Optional[bytes] = ...) -> None: ...
