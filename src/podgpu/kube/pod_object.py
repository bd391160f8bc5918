"""A core/v1 Pod as the API server writes it. Only the fields named here ever come to life."""

from collections.abc import Iterable, Iterator
from typing import Annotated

from msgspec import Meta, MsgspecError, Struct, field
from msgspec.json import Decoder

from podgpu.model import OwnerReference, Pod, PodContainer

LARGEST_ANNOTATION = 64 << 10  # characters
LONGEST_DEVICE_ID = 512
LAST_APPLIED = "kubectl.kubernetes.io/last-applied-configuration"
CONFIG_HASH = "kubernetes.io/config.hash"
CONFIG_MIRROR = "kubernetes.io/config.mirror"

# What a decoder raises for bytes that are not what they should be, hostile nesting included.
MALFORMED = (MsgspecError, UnicodeDecodeError, RecursionError)

Label = Annotated[str, Meta(pattern=r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?\Z", max_length=63)]
Subdomain = Annotated[str, Meta(pattern=r"^[a-z0-9]([-.a-z0-9]*[a-z0-9])?\Z", max_length=253)]
Uid = Annotated[str, Meta(pattern=r"^[-0-9A-Za-z]+\Z", max_length=64)]


class OwnerEntry(Struct, rename="camel"):
    kind: str
    name: str
    uid: str
    api_version: str = ""
    controller: bool | None = None


class PodMetadata(Struct, rename="camel"):
    name: Subdomain
    namespace: Label
    uid: Uid
    resource_version: str = ""
    labels: dict[str, str] | None = None
    annotations: dict[str, str] | None = None
    owner_references: list[OwnerEntry] | None = None


class PodSpec(Struct, rename="camel"):
    node_name: str = ""


class RunningState(Struct):
    pass


class ContainerState(Struct):
    running: RunningState | None = None


class ResourceHealth(Struct):
    resource_id: str = field(default="", name="resourceID")


class ResourceStatus(Struct):
    name: str
    resources: list[ResourceHealth] | None = None


class ContainerStatus(Struct, rename="camel"):
    name: Label
    container_id: str = field(default="", name="containerID")
    state: ContainerState | None = None
    allocated_resources_status: list[ResourceStatus] | None = None


class PodStatus(Struct, rename="camel"):
    phase: str = ""
    init_container_statuses: list[ContainerStatus] | None = None
    container_statuses: list[ContainerStatus] | None = None
    ephemeral_container_statuses: list[ContainerStatus] | None = None


class PodObject(Struct):
    metadata: PodMetadata
    spec: PodSpec
    status: PodStatus


decode_pod = Decoder(PodObject).decode


def to_pod(item: PodObject) -> Pod:
    metadata = item.metadata
    annotations = metadata.annotations or {}
    return Pod(
        namespace=metadata.namespace,
        name=metadata.name,
        uid=metadata.uid,
        phase=item.status.phase,
        static_hash=_static_hash(annotations),
        labels=metadata.labels or {},
        annotations=_kept(annotations),
        owner=controller(metadata.owner_references or ()),
        containers=tuple(_containers(item.status)),
    )


def controller(owners: Iterable[OwnerEntry]) -> OwnerReference | None:
    """Return the owner that made the object and looks after it. Other owners only delay its deletion."""
    for owner in owners:
        if owner.controller and 0 < len(owner.kind) <= 63 and 0 < len(owner.name) <= 253 and owner.uid:
            return OwnerReference(
                kind=owner.kind, name=owner.name, uid=owner.uid, api_version=owner.api_version
            )
    return None


def _static_hash(annotations: dict[str, str]) -> str:
    """Return the hash of a mirror pod. Without the kubelet's mirror mark anybody may have written it."""
    found = annotations.get(CONFIG_HASH, "")
    return found if found == annotations.get(CONFIG_MIRROR) else ""


def _kept(annotations: dict[str, str]) -> dict[str, str]:
    return {
        name: value
        for name, value in annotations.items()
        if name != LAST_APPLIED and len(value) <= LARGEST_ANNOTATION
    }


def _containers(status: PodStatus) -> Iterator[PodContainer]:
    for each in status.init_container_statuses or ():
        yield _container(each, is_init=True)
    for each in (*(status.container_statuses or ()), *(status.ephemeral_container_statuses or ())):
        yield _container(each, is_init=False)


def _container(status: ContainerStatus, *, is_init: bool) -> PodContainer:
    _, _, container_id = status.container_id.partition("://")
    return PodContainer(
        name=status.name,
        container_id=container_id,
        running=status.state is not None and status.state.running is not None,
        is_init=is_init,
        devices=tuple(dict.fromkeys(_devices(status))),  # each once, in their order
    )


def _devices(status: ContainerStatus) -> Iterator[tuple[str, str]]:
    for entry in status.allocated_resources_status or ():
        for resource in entry.resources or ():
            if _is_device_id(resource.resource_id):
                yield entry.name, resource.resource_id


def _is_device_id(text: str) -> bool:
    return 0 < len(text) <= LONGEST_DEVICE_ID and text.isascii() and text.isprintable() and " " not in text
