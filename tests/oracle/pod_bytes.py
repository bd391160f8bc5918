"""Writes a pod of the API server in the protobuf of the kubelet's Pods API, as far as podgpu reads it."""

from collections.abc import Iterable, Iterator
from typing import Any

from podgpu.kube._gen.pods_pb2 import (
    ClaimStatus,
    ClaimUse,
    ContainerSpec,
    Metadata,
    PodClaim,
    PodMessage,
    PodSpec,
    PodStatus,
    Quantity,
    Resources,
)

Json = dict[str, Any]


def encoded(pod: Json) -> bytes:
    metadata, spec, status = pod["metadata"], pod["spec"], pod["status"]
    return PodMessage(
        metadata=Metadata(
            name=metadata["name"],
            namespace=metadata["namespace"],
            uid=metadata["uid"],
            labels=metadata.get("labels") or {},
            annotations=metadata.get("annotations") or {},
        ),
        spec=PodSpec(
            containers=_containers(spec.get("containers") or ()),
            init_containers=_containers(spec.get("initContainers") or ()),
            claims=[
                PodClaim(name=one["name"], claim_name=one.get("resourceClaimName"))
                for one in spec.get("resourceClaims") or ()
            ],
        ),
        status=PodStatus(
            phase=status.get("phase", ""),
            claims=[
                ClaimStatus(name=one["name"], claim_name=one.get("resourceClaimName"))
                for one in status.get("resourceClaimStatuses") or ()
            ],
        ),
    ).SerializeToString()


def _containers(specs: Iterable[Json]) -> Iterator[ContainerSpec]:
    for spec in specs:
        resources = spec.get("resources") or {}
        limits = {name: Quantity(text=str(value)) for name, value in (resources.get("limits") or {}).items()}
        uses = [
            ClaimUse(name=one["name"], request=one.get("request")) for one in resources.get("claims") or ()
        ]
        yield ContainerSpec(
            name=spec["name"],
            image=spec.get("image", ""),
            resources=Resources(limits=limits, claims=uses),
        )
