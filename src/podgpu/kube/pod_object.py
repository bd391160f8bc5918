"""A core/v1 Pod as the API server writes it, and how it becomes a `Pod`. Fields that are not used are not decoded."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from typing import Annotated

from msgspec import Meta, MsgspecError, Raw, Struct, field
from msgspec.json import Decoder

from podgpu.kube.limits import ANNOTATION_BYTES, Prefixes, limited, limited_containers, limited_labels
from podgpu.model import ClaimUse, ExtendedUse, OwnerReference, Pod, PodContainer, Waiting

LONGEST_DEVICE_ID = 512
LONGEST_MESSAGE = 1024
LONGEST_HASH = 64
SCHEDULED = "PodScheduled"
CONFIG_HASH = "kubernetes.io/config.hash"
CONFIG_MIRROR = "kubernetes.io/config.mirror"
# A variable and an annotation in which users name the submitter and the cluster. No other variable is read.
SUBMITTER = "SUBMITTER"
CLUSTER_NAME = "clusterName"
LONGEST_NAME = 253
DEFAULT_SCHEDULER = "default-scheduler"
SIDECAR = "Always"  # an init container that is restarted runs beside the main containers

Label = Annotated[str, Meta(pattern=r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?\Z", max_length=63)]
Subdomain = Annotated[str, Meta(pattern=r"^[a-z0-9]([-.a-z0-9]*[a-z0-9])?\Z", max_length=253)]
Uid = Annotated[str, Meta(pattern=r"^[-0-9A-Za-z]+\Z", max_length=64)]


class OwnerEntry(Struct, rename="camel"):
    kind: str = ""
    name: str = ""
    uid: str = ""
    api_version: str = ""
    controller: bool | None = None


class PodMetadata(Struct, rename="camel"):
    name: Subdomain
    namespace: Label
    uid: Uid
    resource_version: str = ""
    creation_timestamp: str | None = None
    labels: dict[str, str] | None = None
    annotations: dict[str, Raw] | None = None  # only those that are used are decoded
    owner_references: list[OwnerEntry] | None = None


class ClaimEntry(Struct):
    name: str = ""
    request: str = ""


class Resources(Struct):
    limits: dict[str, str | int] | None = None
    claims: list[ClaimEntry] | None = None


class EnvVar(Struct):
    name: str = ""
    value: str = ""


class ContainerSpec(Struct, rename="camel"):
    name: Label
    image: str = ""
    restart_policy: str | None = None
    env: list[EnvVar] | None = None
    resources: Resources | None = None


class PodClaim(Struct, rename="camel"):
    name: str = ""
    resource_claim_name: str | None = None


class PodSpec(Struct, rename="camel"):
    node_name: str = ""
    scheduler_name: str = ""
    containers: list[ContainerSpec] | None = None
    init_containers: list[ContainerSpec] | None = None
    resource_claims: list[PodClaim] | None = None


class RequestMapping(Struct, rename="camel"):
    container_name: str = ""
    resource_name: str = ""
    request_name: str = ""


class ExtendedClaim(Struct, rename="camel"):
    resource_claim_name: str = ""
    request_mappings: list[RequestMapping] | None = None


class ContainerState(Struct):
    running: dict[str, object] | None = None


class ResourceHealth(Struct):
    resource_id: str = field(default="", name="resourceID")


class ResourceStatus(Struct):
    name: str
    resources: list[ResourceHealth] | None = None


class ContainerStatus(Struct, rename="camel"):
    name: Label
    container_id: str = field(default="", name="containerID")
    image: str = ""
    state: ContainerState | None = None
    allocated_resources_status: list[ResourceStatus] | None = None


class PodCondition(Struct):
    type: str = ""
    status: str = ""
    message: str = ""


class PodStatus(Struct, rename="camel"):
    phase: str = ""
    host_ip: str = field(default="", name="hostIP")
    qos_class: str = ""
    conditions: list[PodCondition] | None = None
    start_time: str | None = None
    init_container_statuses: list[ContainerStatus] | None = None
    container_statuses: list[ContainerStatus] | None = None
    ephemeral_container_statuses: list[ContainerStatus] | None = None
    resource_claim_statuses: list[PodClaim] | None = None
    extended_resource_claim_status: ExtendedClaim | None = None


class PodObject(Struct):
    metadata: PodMetadata
    spec: PodSpec
    status: PodStatus


decode_pod = Decoder(PodObject).decode
_decode_text = Decoder(str).decode


def to_pod(item: PodObject, prefixes: Prefixes = (), errors: Counter[str] | None = None) -> Pod:
    """`prefixes` are those of the annotations to keep. What was too large to keep is counted in `errors`."""
    metadata = item.metadata
    errors = Counter() if errors is None else errors
    annotations = metadata.annotations or {}
    wanted = ((name, _text(annotations[name])) for name in annotations if name.startswith(prefixes))
    extended = item.status.extended_resource_claim_status or ExtendedClaim()
    listed, left_out = limited_containers(_containers(item), errors)
    return Pod(
        namespace=metadata.namespace,
        name=metadata.name,
        uid=metadata.uid,
        phase=item.status.phase,
        started_at=parse_time(item.status.start_time or ""),
        host_ip=item.status.host_ip,
        qos=item.status.qos_class.lower(),
        static_hash=_static_hash(metadata.uid, annotations),
        labels=limited_labels((metadata.labels or {}).items(), prefixes, errors),
        annotations=limited(wanted, ANNOTATION_BYTES, errors),
        submitter=_submitter(item.spec.containers or ()),
        cluster=_text(annotations.get(CLUSTER_NAME))[:LONGEST_NAME],
        owner=controller(metadata.owner_references or ()),
        scheduler=_scheduler(item.spec),
        containers=listed,
        left_out=left_out or None,
        resource_claims=_resource_claims(item),
        extended_claim=extended.resource_claim_name,
        extended=tuple(
            ExtendedUse(container=use.container_name, resource=use.resource_name, request=use.request_name)
            for use in extended.request_mappings or ()
        ),
    )


def _scheduler(spec: PodSpec) -> str:
    """Kubernetes does not limit the length of this name."""
    name = spec.scheduler_name[:LONGEST_NAME]
    return "" if name == DEFAULT_SCHEDULER else name


def pod_order(pod: Pod) -> tuple[str, str, str]:
    """Return what pods are sorted by."""
    return pod.namespace, pod.name, pod.uid


def waiting(item: PodObject) -> Waiting:
    """Return what the scheduler says about a pod that it has found no node for."""
    conditions = item.status.conditions or ()
    messages = (entry.message for entry in conditions if entry.type == SCHEDULED and entry.status == "False")
    return Waiting(
        since=parse_time(item.metadata.creation_timestamp or ""), reason=next(messages, "")[:LONGEST_MESSAGE]
    )


def controller(owners: Iterable[OwnerEntry]) -> OwnerReference | None:
    """Return the owner that manages the object. Other owners only delay its deletion."""
    for owner in owners:
        if owner.controller and 0 < len(owner.kind) <= 63 and 0 < len(owner.name) <= 253 and owner.uid:
            return OwnerReference(kind=owner.kind, name=owner.name, uid=owner.uid, api_version=owner.api_version)
    return None


def parse_time(text: str) -> float | None:
    """Read a time as Kubernetes writes it. Return None for any other text."""
    try:
        found = datetime.fromisoformat(text)
    except ValueError:
        return None
    return found.timestamp() if found.tzinfo else None


def _static_hash(uid: str, annotations: Mapping[str, Raw]) -> str:
    """Return a static or mirror pod's hash. On any other pod, the annotation may come from its author."""
    found, mirrored = (_text(annotations.get(name)) for name in (CONFIG_HASH, CONFIG_MIRROR))
    return found if found in (uid, mirrored) and len(found) <= LONGEST_HASH else ""


def _submitter(containers: Sequence[ContainerSpec]) -> str:
    """Return who submitted the pod, by the first container's environment."""
    env = containers[0].env if containers else None
    return next((variable.value for variable in env or () if variable.name == SUBMITTER), "")[:LONGEST_NAME]


def _text(value: Raw | None) -> str:
    """Read an annotation. One that is no text counts as empty."""
    try:
        return "" if value is None else _decode_text(value)
    except (MsgspecError, UnicodeDecodeError):
        return ""


def _containers(item: PodObject) -> Iterator[PodContainer]:
    """In the order of the spec, by which sharing systems count; the kubelet sorts statuses by name."""
    spec, status = item.spec, item.status
    yield from _listed(spec.init_containers, status.init_container_statuses, is_init=True)
    yield from _listed(spec.containers, status.container_statuses)
    yield from _listed(None, status.ephemeral_container_statuses, is_ephemeral=True)


def _listed(
    specs: list[ContainerSpec] | None,
    statuses: list[ContainerStatus] | None,
    *,
    is_init: bool = False,
    is_ephemeral: bool = False,
) -> Iterator[PodContainer]:
    spec_of = {spec.name: spec for spec in specs or ()}
    status_of = {status.name: status for status in statuses or ()}
    for name in dict.fromkeys((*spec_of, *status_of)):
        spec = spec_of.get(name, ContainerSpec(name=name))
        status = status_of.get(name, ContainerStatus(name=name))
        resources = spec.resources or Resources()
        yield PodContainer(
            name=name,
            container_id=status.container_id.partition("://")[2],
            image=status.image or spec.image,
            running=status.state is not None and status.state.running is not None,
            is_init=is_init,
            is_sidecar=(is_init and spec.restart_policy == SIDECAR) or None,
            is_ephemeral=is_ephemeral,
            devices=tuple(dict.fromkeys(_devices(status))),  # each once, in their order
            limits={key: str(value) for key, value in (resources.limits or {}).items() if "/" in key},
            uses=tuple(ClaimUse(claim.name, claim.request) for claim in resources.claims or ()),
        )


def _resource_claims(item: PodObject) -> dict[str, str]:
    """The spec names a claim that existed before; the status names a claim made from a template."""
    entries = (*(item.spec.resource_claims or ()), *(item.status.resource_claim_statuses or ()))
    return {entry.name: entry.resource_claim_name for entry in entries if entry.resource_claim_name}


def _devices(status: ContainerStatus) -> Iterator[tuple[str, str]]:
    for entry in status.allocated_resources_status or ():
        for resource in entry.resources or ():
            if _is_device_id(resource.resource_id):
                yield entry.name, resource.resource_id


def _is_device_id(text: str) -> bool:
    return 0 < len(text) <= LONGEST_DEVICE_ID and text.isascii() and text.isprintable() and " " not in text
