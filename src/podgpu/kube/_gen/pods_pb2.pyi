from google.protobuf.internal import containers as _containers
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class ListResponse(_message.Message):
    __slots__ = ("pods",)
    PODS_FIELD_NUMBER: _ClassVar[int]
    pods: _containers.RepeatedScalarFieldContainer[bytes]
    def __init__(self, pods: _Optional[_Iterable[bytes]] = ...) -> None: ...

class WatchEvent(_message.Message):
    __slots__ = ("type", "pod")
    TYPE_FIELD_NUMBER: _ClassVar[int]
    POD_FIELD_NUMBER: _ClassVar[int]
    type: int
    pod: bytes
    def __init__(self, type: _Optional[int] = ..., pod: _Optional[bytes] = ...) -> None: ...

class PodMessage(_message.Message):
    __slots__ = ("metadata", "spec", "status")
    METADATA_FIELD_NUMBER: _ClassVar[int]
    SPEC_FIELD_NUMBER: _ClassVar[int]
    STATUS_FIELD_NUMBER: _ClassVar[int]
    metadata: Metadata
    spec: PodSpec
    status: PodStatus
    def __init__(self, metadata: _Optional[_Union[Metadata, _Mapping]] = ..., spec: _Optional[_Union[PodSpec, _Mapping]] = ..., status: _Optional[_Union[PodStatus, _Mapping]] = ...) -> None: ...

class PodSpec(_message.Message):
    __slots__ = ("containers", "scheduler_name", "init_containers", "claims")
    CONTAINERS_FIELD_NUMBER: _ClassVar[int]
    SCHEDULER_NAME_FIELD_NUMBER: _ClassVar[int]
    INIT_CONTAINERS_FIELD_NUMBER: _ClassVar[int]
    CLAIMS_FIELD_NUMBER: _ClassVar[int]
    containers: _containers.RepeatedCompositeFieldContainer[ContainerSpec]
    scheduler_name: str
    init_containers: _containers.RepeatedCompositeFieldContainer[ContainerSpec]
    claims: _containers.RepeatedCompositeFieldContainer[PodClaim]
    def __init__(self, containers: _Optional[_Iterable[_Union[ContainerSpec, _Mapping]]] = ..., scheduler_name: _Optional[str] = ..., init_containers: _Optional[_Iterable[_Union[ContainerSpec, _Mapping]]] = ..., claims: _Optional[_Iterable[_Union[PodClaim, _Mapping]]] = ...) -> None: ...

class ContainerSpec(_message.Message):
    __slots__ = ("name", "image", "env", "resources", "restart_policy")
    NAME_FIELD_NUMBER: _ClassVar[int]
    IMAGE_FIELD_NUMBER: _ClassVar[int]
    ENV_FIELD_NUMBER: _ClassVar[int]
    RESOURCES_FIELD_NUMBER: _ClassVar[int]
    RESTART_POLICY_FIELD_NUMBER: _ClassVar[int]
    name: str
    image: str
    env: _containers.RepeatedCompositeFieldContainer[EnvVar]
    resources: Resources
    restart_policy: str
    def __init__(self, name: _Optional[str] = ..., image: _Optional[str] = ..., env: _Optional[_Iterable[_Union[EnvVar, _Mapping]]] = ..., resources: _Optional[_Union[Resources, _Mapping]] = ..., restart_policy: _Optional[str] = ...) -> None: ...

class EnvVar(_message.Message):
    __slots__ = ("name", "value")
    NAME_FIELD_NUMBER: _ClassVar[int]
    VALUE_FIELD_NUMBER: _ClassVar[int]
    name: str
    value: str
    def __init__(self, name: _Optional[str] = ..., value: _Optional[str] = ...) -> None: ...

class Resources(_message.Message):
    __slots__ = ("limits", "claims")
    class LimitsEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: Quantity
        def __init__(self, key: _Optional[str] = ..., value: _Optional[_Union[Quantity, _Mapping]] = ...) -> None: ...
    LIMITS_FIELD_NUMBER: _ClassVar[int]
    CLAIMS_FIELD_NUMBER: _ClassVar[int]
    limits: _containers.MessageMap[str, Quantity]
    claims: _containers.RepeatedCompositeFieldContainer[ClaimUse]
    def __init__(self, limits: _Optional[_Mapping[str, Quantity]] = ..., claims: _Optional[_Iterable[_Union[ClaimUse, _Mapping]]] = ...) -> None: ...

class Quantity(_message.Message):
    __slots__ = ("text",)
    TEXT_FIELD_NUMBER: _ClassVar[int]
    text: str
    def __init__(self, text: _Optional[str] = ...) -> None: ...

class ClaimUse(_message.Message):
    __slots__ = ("name", "request")
    NAME_FIELD_NUMBER: _ClassVar[int]
    REQUEST_FIELD_NUMBER: _ClassVar[int]
    name: str
    request: str
    def __init__(self, name: _Optional[str] = ..., request: _Optional[str] = ...) -> None: ...

class PodClaim(_message.Message):
    __slots__ = ("name", "claim_name")
    NAME_FIELD_NUMBER: _ClassVar[int]
    CLAIM_NAME_FIELD_NUMBER: _ClassVar[int]
    name: str
    claim_name: str
    def __init__(self, name: _Optional[str] = ..., claim_name: _Optional[str] = ...) -> None: ...

class Metadata(_message.Message):
    __slots__ = ("name", "namespace", "uid", "labels", "annotations", "owners")
    class LabelsEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: str
        def __init__(self, key: _Optional[str] = ..., value: _Optional[str] = ...) -> None: ...
    class AnnotationsEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: str
        def __init__(self, key: _Optional[str] = ..., value: _Optional[str] = ...) -> None: ...
    NAME_FIELD_NUMBER: _ClassVar[int]
    NAMESPACE_FIELD_NUMBER: _ClassVar[int]
    UID_FIELD_NUMBER: _ClassVar[int]
    LABELS_FIELD_NUMBER: _ClassVar[int]
    ANNOTATIONS_FIELD_NUMBER: _ClassVar[int]
    OWNERS_FIELD_NUMBER: _ClassVar[int]
    name: str
    namespace: str
    uid: str
    labels: _containers.ScalarMap[str, str]
    annotations: _containers.ScalarMap[str, str]
    owners: _containers.RepeatedCompositeFieldContainer[Reference]
    def __init__(self, name: _Optional[str] = ..., namespace: _Optional[str] = ..., uid: _Optional[str] = ..., labels: _Optional[_Mapping[str, str]] = ..., annotations: _Optional[_Mapping[str, str]] = ..., owners: _Optional[_Iterable[_Union[Reference, _Mapping]]] = ...) -> None: ...

class Reference(_message.Message):
    __slots__ = ("kind", "name", "uid", "api_version", "controller")
    KIND_FIELD_NUMBER: _ClassVar[int]
    NAME_FIELD_NUMBER: _ClassVar[int]
    UID_FIELD_NUMBER: _ClassVar[int]
    API_VERSION_FIELD_NUMBER: _ClassVar[int]
    CONTROLLER_FIELD_NUMBER: _ClassVar[int]
    kind: str
    name: str
    uid: str
    api_version: str
    controller: bool
    def __init__(self, kind: _Optional[str] = ..., name: _Optional[str] = ..., uid: _Optional[str] = ..., api_version: _Optional[str] = ..., controller: _Optional[bool] = ...) -> None: ...

class PodStatus(_message.Message):
    __slots__ = ("phase", "host_ip", "start_time", "containers", "qos_class", "init_containers", "ephemeral_containers", "claims", "extended_claim")
    PHASE_FIELD_NUMBER: _ClassVar[int]
    HOST_IP_FIELD_NUMBER: _ClassVar[int]
    START_TIME_FIELD_NUMBER: _ClassVar[int]
    CONTAINERS_FIELD_NUMBER: _ClassVar[int]
    QOS_CLASS_FIELD_NUMBER: _ClassVar[int]
    INIT_CONTAINERS_FIELD_NUMBER: _ClassVar[int]
    EPHEMERAL_CONTAINERS_FIELD_NUMBER: _ClassVar[int]
    CLAIMS_FIELD_NUMBER: _ClassVar[int]
    EXTENDED_CLAIM_FIELD_NUMBER: _ClassVar[int]
    phase: str
    host_ip: str
    start_time: Time
    containers: _containers.RepeatedCompositeFieldContainer[ContainerStatus]
    qos_class: str
    init_containers: _containers.RepeatedCompositeFieldContainer[ContainerStatus]
    ephemeral_containers: _containers.RepeatedCompositeFieldContainer[ContainerStatus]
    claims: _containers.RepeatedCompositeFieldContainer[ClaimStatus]
    extended_claim: ExtendedClaim
    def __init__(self, phase: _Optional[str] = ..., host_ip: _Optional[str] = ..., start_time: _Optional[_Union[Time, _Mapping]] = ..., containers: _Optional[_Iterable[_Union[ContainerStatus, _Mapping]]] = ..., qos_class: _Optional[str] = ..., init_containers: _Optional[_Iterable[_Union[ContainerStatus, _Mapping]]] = ..., ephemeral_containers: _Optional[_Iterable[_Union[ContainerStatus, _Mapping]]] = ..., claims: _Optional[_Iterable[_Union[ClaimStatus, _Mapping]]] = ..., extended_claim: _Optional[_Union[ExtendedClaim, _Mapping]] = ...) -> None: ...

class Time(_message.Message):
    __slots__ = ("seconds", "nanos")
    SECONDS_FIELD_NUMBER: _ClassVar[int]
    NANOS_FIELD_NUMBER: _ClassVar[int]
    seconds: int
    nanos: int
    def __init__(self, seconds: _Optional[int] = ..., nanos: _Optional[int] = ...) -> None: ...

class ClaimStatus(_message.Message):
    __slots__ = ("name", "claim_name")
    NAME_FIELD_NUMBER: _ClassVar[int]
    CLAIM_NAME_FIELD_NUMBER: _ClassVar[int]
    name: str
    claim_name: str
    def __init__(self, name: _Optional[str] = ..., claim_name: _Optional[str] = ...) -> None: ...

class ExtendedClaim(_message.Message):
    __slots__ = ("mappings", "claim_name")
    MAPPINGS_FIELD_NUMBER: _ClassVar[int]
    CLAIM_NAME_FIELD_NUMBER: _ClassVar[int]
    mappings: _containers.RepeatedCompositeFieldContainer[RequestMapping]
    claim_name: str
    def __init__(self, mappings: _Optional[_Iterable[_Union[RequestMapping, _Mapping]]] = ..., claim_name: _Optional[str] = ...) -> None: ...

class RequestMapping(_message.Message):
    __slots__ = ("container", "resource", "request")
    CONTAINER_FIELD_NUMBER: _ClassVar[int]
    RESOURCE_FIELD_NUMBER: _ClassVar[int]
    REQUEST_FIELD_NUMBER: _ClassVar[int]
    container: str
    resource: str
    request: str
    def __init__(self, container: _Optional[str] = ..., resource: _Optional[str] = ..., request: _Optional[str] = ...) -> None: ...

class ContainerStatus(_message.Message):
    __slots__ = ("name", "state", "image", "container_id", "allocated")
    NAME_FIELD_NUMBER: _ClassVar[int]
    STATE_FIELD_NUMBER: _ClassVar[int]
    IMAGE_FIELD_NUMBER: _ClassVar[int]
    CONTAINER_ID_FIELD_NUMBER: _ClassVar[int]
    ALLOCATED_FIELD_NUMBER: _ClassVar[int]
    name: str
    state: State
    image: str
    container_id: str
    allocated: _containers.RepeatedCompositeFieldContainer[AllocatedResource]
    def __init__(self, name: _Optional[str] = ..., state: _Optional[_Union[State, _Mapping]] = ..., image: _Optional[str] = ..., container_id: _Optional[str] = ..., allocated: _Optional[_Iterable[_Union[AllocatedResource, _Mapping]]] = ...) -> None: ...

class State(_message.Message):
    __slots__ = ("running",)
    RUNNING_FIELD_NUMBER: _ClassVar[int]
    running: Running
    def __init__(self, running: _Optional[_Union[Running, _Mapping]] = ...) -> None: ...

class Running(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class AllocatedResource(_message.Message):
    __slots__ = ("name", "resources")
    NAME_FIELD_NUMBER: _ClassVar[int]
    RESOURCES_FIELD_NUMBER: _ClassVar[int]
    name: str
    resources: _containers.RepeatedCompositeFieldContainer[ResourceHealth]
    def __init__(self, name: _Optional[str] = ..., resources: _Optional[_Iterable[_Union[ResourceHealth, _Mapping]]] = ...) -> None: ...

class ResourceHealth(_message.Message):
    __slots__ = ("id",)
    ID_FIELD_NUMBER: _ClassVar[int]
    id: str
    def __init__(self, id: _Optional[str] = ...) -> None: ...
