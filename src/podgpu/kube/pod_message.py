"""A pod as the kubelet's Pods API sends it: core/v1 in protobuf."""

import re
from collections import Counter
from collections.abc import Iterable, Iterator

from google.protobuf.message import DecodeError

from podgpu.kube._gen.pods_pb2 import (
    ContainerSpec,
    ContainerStatus,
    ExtendedClaim,
    Metadata,
    PodMessage,
    Time,
)
from podgpu.kube.limits import Prefixes, limited_annotations, limited_containers, limited_labels
from podgpu.kube.pod_object import (
    CLUSTER_NAME,
    CONFIG_HASH,
    CONFIG_MIRROR,
    LONGEST_HASH,
    LONGEST_NAME,
    submitter,
)
from podgpu.model import ClaimUse, ExtendedUse, OwnerReference, Pod, PodContainer

_DEVICE_ID = re.compile(r"[\x21-\x7e]{1,512}")  # of a dynamic resource: driver, pool and device


def to_pod(message: bytes | PodMessage, prefixes: Prefixes = (), errors: Counter[str] | None = None) -> Pod:
    """Raise ValueError for bytes that are no pod, or a pod without an identity.

    `prefixes` are those of the annotations to keep. What was too large to keep is counted in `errors`.
    """
    errors = Counter() if errors is None else errors
    if isinstance(message, bytes):
        message = _decoded(message)
    metadata = message.metadata
    if not (metadata.uid and metadata.name and metadata.namespace):
        raise ValueError("a pod without UID, name or namespace")
    listed, left_out = limited_containers(_containers(message), errors)
    return Pod(
        namespace=metadata.namespace,
        name=metadata.name,
        uid=metadata.uid,
        phase=message.status.phase,
        started_at=_moment(message.status.start_time) if message.status.HasField("start_time") else None,
        host_ip=message.status.host_ip,
        qos=message.status.qos_class.lower(),
        static_hash=_static_hash(metadata),
        labels=limited_labels(metadata.labels.items(), prefixes, errors),
        annotations=limited_annotations(metadata.annotations.items(), prefixes, errors),
        submitter=submitter(message.spec.containers),
        cluster=metadata.annotations.get(CLUSTER_NAME, "")[:LONGEST_NAME],
        owner=_owner(metadata),
        containers=listed,
        left_out=left_out or None,
        resource_claims=_resource_claims(message),
        extended_claim=message.status.extended_claim.claim_name,
        extended=tuple(_extended(message.status.extended_claim)),
    )


def _decoded(data: bytes) -> PodMessage:
    try:
        return PodMessage.FromString(data)
    except DecodeError as error:
        raise ValueError("not a pod") from error


def _moment(time: Time) -> float | None:
    """A time before 1970 was left empty."""
    return time.seconds + time.nanos / 1e9 if time.seconds > 0 else None


def _static_hash(metadata: Metadata) -> str:
    """Return a static or mirror pod's hash. On any other pod, the annotation may come from its author."""
    found = metadata.annotations.get(CONFIG_HASH, "")[:LONGEST_HASH]
    return found if found in (metadata.uid, metadata.annotations.get(CONFIG_MIRROR)) else ""


def _owner(metadata: Metadata) -> OwnerReference | None:
    """Choose the controller: an owner that does not manage the pod says nothing about what it is for."""
    owner = next((each for each in metadata.owners if each.controller), None)
    if owner is None:
        return None
    return OwnerReference(kind=owner.kind, name=owner.name, uid=owner.uid, api_version=owner.api_version)


def _containers(message: PodMessage) -> Iterator[PodContainer]:
    """In the order of the spec, since systems count by it; the kubelet sorts a status by name."""
    spec, status = message.spec, message.status
    yield from _listed(spec.init_containers, status.init_containers, is_init=True)
    yield from _listed(spec.containers, status.containers)
    yield from _listed((), status.ephemeral_containers, is_ephemeral=True)


def _listed(
    specs: Iterable[ContainerSpec],
    statuses: Iterable[ContainerStatus],
    *,
    is_init: bool = False,
    is_ephemeral: bool = False,
) -> Iterator[PodContainer]:
    spec_of, status_of = {spec.name: spec for spec in specs}, {status.name: status for status in statuses}
    for name in dict.fromkeys((*spec_of, *status_of)):
        spec, status = spec_of.get(name, ContainerSpec()), status_of.get(name, ContainerStatus())
        yield PodContainer(
            name=name,
            container_id=status.container_id.partition("://")[2],
            image=status.image or spec.image,
            running=status.state.HasField("running"),
            is_init=is_init,
            is_ephemeral=is_ephemeral,
            devices=tuple(dict.fromkeys(_devices(status))),  # each once, in their order
            limits={key: value.text for key, value in spec.resources.limits.items() if "/" in key},
            uses=tuple(ClaimUse(claim.name, claim.request) for claim in spec.resources.claims),
        )


def _resource_claims(message: PodMessage) -> dict[str, str]:
    """The spec names a claim that existed before; the status names a claim made from a template."""
    named = {claim.name: claim.claim_name for claim in message.spec.claims if claim.claim_name}
    return named | {claim.name: claim.claim_name for claim in message.status.claims if claim.claim_name}


def _extended(claim: ExtendedClaim) -> Iterator[ExtendedUse]:
    for use in claim.mappings:
        yield ExtendedUse(container=use.container, resource=use.resource, request=use.request)


def _devices(status: ContainerStatus) -> Iterator[tuple[str, str]]:
    for resource in status.allocated:
        for each in resource.resources:
            if _DEVICE_ID.fullmatch(each.id):
                yield resource.name, each.id
