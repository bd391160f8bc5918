"""A pod as the kubelet's Pods API sends it: core/v1 in protobuf."""

import re
from collections.abc import Iterator, Mapping

from google.protobuf.message import DecodeError

from podgpu.kube._gen.pods_pb2 import ContainerStatus, Metadata, PodMessage, PodStatus
from podgpu.model import OwnerReference, Pod, PodContainer

LARGEST_ANNOTATION = 64 * 1024  # characters
_LAST_APPLIED = "kubectl.kubernetes.io/last-applied-configuration"  # kubectl's copy of the whole manifest
_CONFIG_HASH = "kubernetes.io/config.hash"
_CONFIG_MIRROR = "kubernetes.io/config.mirror"
_DEVICE_ID = re.compile(r"[\x21-\x7e]{1,512}")  # of a dynamic resource: driver, pool and device


def to_pod(message: bytes | PodMessage) -> Pod:
    """Raise ValueError for bytes that are no pod or do not say which."""
    if isinstance(message, bytes):
        message = _decoded(message)
    metadata = message.metadata
    if not (metadata.uid and metadata.name and metadata.namespace):
        raise ValueError("a pod without UID, name or namespace")
    return Pod(
        namespace=metadata.namespace,
        name=metadata.name,
        uid=metadata.uid,
        phase=message.status.phase,
        static_hash=_static_hash(metadata),
        labels=dict(metadata.labels),
        annotations=_kept(metadata.annotations),
        owner=_owner(metadata),
        containers=tuple(_containers(message.status)),
    )


def _decoded(data: bytes) -> PodMessage:
    try:
        return PodMessage.FromString(data)
    except DecodeError as error:
        raise ValueError("not a pod") from error


def _static_hash(metadata: Metadata) -> str:
    """Return a static or mirror pod's hash. On any other pod anybody may have written the annotation."""
    found = metadata.annotations.get(_CONFIG_HASH, "")
    return found if found in (metadata.uid, metadata.annotations.get(_CONFIG_MIRROR)) else ""


def _kept(annotations: Mapping[str, str]) -> dict[str, str]:
    return {
        name: value
        for name, value in annotations.items()
        if name != _LAST_APPLIED and len(value) <= LARGEST_ANNOTATION
    }


def _owner(metadata: Metadata) -> OwnerReference | None:
    """Choose the controller: an owner that does not manage the pod says nothing about what it is for."""
    owner = next((each for each in metadata.owners if each.controller), None)
    if owner is None:
        return None
    return OwnerReference(kind=owner.kind, name=owner.name, uid=owner.uid, api_version=owner.api_version)


def _containers(status: PodStatus) -> Iterator[PodContainer]:
    yield from (_container(each, is_init=True) for each in status.init_containers)
    yield from (_container(each, is_init=False) for each in status.containers)
    yield from (_container(each, is_init=False) for each in status.ephemeral_containers)


def _container(status: ContainerStatus, *, is_init: bool) -> PodContainer:
    _, _, container_id = status.container_id.partition("://")
    return PodContainer(
        name=status.name,
        container_id=container_id,
        running=status.state.HasField("running"),
        is_init=is_init,
        devices=tuple(dict.fromkeys(_devices(status))),  # each once, in their order
    )


def _devices(status: ContainerStatus) -> Iterator[tuple[str, str]]:
    for resource in status.allocated:
        for each in resource.resources:
            if _DEVICE_ID.fullmatch(each.id):
                yield resource.name, each.id
