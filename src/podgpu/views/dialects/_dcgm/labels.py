"""The labels of a row, in dcgm-exporter's order: the device, the node, facts, then the others by name."""

from collections.abc import Mapping, Sequence

from podgpu.model import Claim, ContainerRef, Pod, PodContainer, Snapshot
from podgpu.views.dialects._dcgm.counters import Selection
from podgpu.views.dialects._dcgm.entity import Entity
from podgpu.views.series import Key, Labels

DYNAMIC = "dra"


def device_labels(snapshot: Snapshot, entity: Entity, selection: Selection, hostname: str) -> Labels:
    gpu = entity.card.gpu
    pairs = {
        "gpu": str(gpu.index),
        "UUID": gpu.uuid,
        "pci_bus_id": gpu.pci_bus_id,
        "device": f"nvidia{gpu.index}",  # DCGM's own number, not that of /dev/nvidiaN
        "modelName": gpu.model,
    }
    if entity.instances:
        pairs["GPU_I_PROFILE"] = entity.profile
        pairs["GPU_I_ID"] = str(entity.instances[0].mig.gpu_instance_id)
    pairs[hostname] = snapshot.node
    facts = {name: fact.value(snapshot, gpu) for name, fact in selection.facts}
    pairs |= {name: value for name, value in facts.items() if value}
    return Labels.of(pairs)


def key(device: Labels, others: Mapping[str, str]) -> Key:
    return (device, Labels.by_name(others)) if others else (device,)


def container_labels(container: ContainerRef) -> dict[str, str]:
    return {"container": container.container, "namespace": container.namespace, "pod": container.pod}


def holder_labels(claims: Sequence[Claim], entity: Entity, pods: Mapping[str, Pod]) -> dict[str, str]:
    """Name the pod that has all these claims. If several of its containers do, the container is empty."""
    first, *others = (claim_labels(claim, entity, pods) for claim in claims)
    same = {name: value for name, value in first.items() if all(one.get(name) == value for one in others)}
    return {"container": "", **same}


def claim_labels(claim: Claim, entity: Entity, pods: Mapping[str, Pod]) -> dict[str, str]:
    """Name the container, and its resource claim if it was given the device by one. `pods` are by UID."""
    labels = container_labels(claim.container)
    if claim.system != DYNAMIC:
        return labels
    pool, _, device = claim.device_id.rpartition("/")
    labels |= {"dra_driver_name": claim.resource, "dra_pool_name": pool, "dra_device_name": device}
    if name := _resource_claim(claim, pods.get(claim.container.pod_uid)):
        labels |= {"dra_claim_name": name, "dra_claim_namespace": claim.container.namespace}
    if claim.mig:
        labels |= {"dra_mig_device_uuid": claim.mig, "dra_mig_profile": entity.profile}
    return labels


def _resource_claim(claim: Claim, pod: Pod | None) -> str:
    """Name the ResourceClaim. Empty if there is any doubt which one it is."""
    containers = pod.containers if pod else ()
    one = next((one for one in containers if one.name == claim.container.container), None)
    if pod is None or one is None:
        return ""
    names = _in_status(claim, pod, one) or _used(pod, one)
    return names.pop() if len(names) == 1 else ""


def _in_status(claim: Claim, pod: Pod, container: PodContainer) -> set[str]:
    """The claims that the pod's status names for this very device."""
    place = f"{claim.resource}/{claim.device_id}"
    own_names = {
        resource.removeprefix("claim:").partition("/")[0]
        for resource, device_id in container.devices
        if device_id == place and resource.startswith("claim:")
    }
    return {name for own in own_names if (name := pod.resource_claims.get(own))}


def _used(pod: Pod, container: PodContainer) -> set[str]:
    used = {pod.resource_claims.get(use.claim, "") for use in container.uses}
    if any(one.container == container.name for one in pod.extended):
        used.add(pod.extended_claim)
    return used
