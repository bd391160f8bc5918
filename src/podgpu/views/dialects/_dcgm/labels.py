"""The labels of a row, in dcgm-exporter's order: device, node, facts, the pod's own, then the others by name."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from podgpu.model import UNKNOWN, Claim, ContainerRef, Pod, PodContainer, Snapshot
from podgpu.views.dialects._dcgm.counters import Selection
from podgpu.views.dialects._dcgm.entity import Entity
from podgpu.views.dialects._dcgm.occupant import DYNAMIC, Occupant
from podgpu.views.series import Key, Labels

_NOT_IN_A_LABEL = re.compile("[^a-zA-Z0-9_]")


@dataclass(frozen=True, slots=True)
class RowLabels:
    """What a row has besides its device: `own` are the labels that the pod was given by its users."""

    known: Mapping[str, str] = field(default_factory=dict)
    own: Mapping[str, str] = field(default_factory=dict)

    def also(self, more: Mapping[str, str]) -> "RowLabels":
        return replace(self, known={**self.known, **more}) if more else self


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
        number = entity.instances[0].mig.gpu_instance_id
        pairs["GPU_I_ID"] = "" if number == UNKNOWN else str(number)
    pairs[hostname] = snapshot.node
    facts = {name: fact.value(snapshot, gpu) for name, fact in selection.facts}
    pairs |= {name: value for name, value in facts.items() if value}
    return Labels.of(pairs)


def key(device: Labels, others: RowLabels) -> Key:
    """A label that a pod's users chose gives way to one of dcgm-exporter's with the same name."""
    taken = {*device.names, *others.known}
    own = {name: value for name, value in others.own.items() if name not in taken}
    parts = (Labels.by_name(pairs) for pairs in (own, others.known) if pairs)
    return device, *parts


@dataclass(frozen=True, slots=True)
class PodLabels:
    """Names whose a row is. `pods` are by UID; `uid` and `own` ask for the pod's UID and its own labels too."""

    pods: Mapping[str, Pod]
    uid: bool = False
    own: bool = False

    def of_occupant(self, one: Occupant, entity: Entity) -> RowLabels:
        known = self._of_claim(one.claim, entity) if one.claim else _of_container(one.container)
        return self._with_pod(one.container, known)

    def of_holder(self, claims: Sequence[Claim], entity: Entity) -> RowLabels:
        """Name the pod that has all these claims. If several of its containers do, the container is empty."""
        first, *others = (self._of_claim(claim, entity) for claim in claims)
        same = {name: value for name, value in first.items() if all(one.get(name) == value for one in others)}
        return self._with_pod(claims[0].container, {"container": "", **same})

    def _with_pod(self, container: ContainerRef, known: Mapping[str, str]) -> RowLabels:
        pod = self.pods.get(container.pod_uid)
        uid = {"pod_uid": container.pod_uid} if self.uid and container.pod_uid else {}
        return RowLabels({**known, **uid}, _sanitised(pod.labels) if pod and self.own else {})

    def _of_claim(self, claim: Claim, entity: Entity) -> dict[str, str]:
        """Name the container, and its resource claim if it was given the device by one."""
        labels = _of_container(claim.container)
        if claim.system != DYNAMIC:
            return labels
        pool, _, device = claim.device_id.rpartition("/")
        labels |= {"dra_driver_name": claim.resource, "dra_pool_name": pool, "dra_device_name": device}
        if name := _resource_claim(claim, self.pods.get(claim.container.pod_uid)):
            labels |= {"dra_claim_name": name, "dra_claim_namespace": claim.container.namespace}
        if claim.mig:
            labels |= {"dra_mig_device_uuid": claim.mig, "dra_mig_profile": entity.profile}
        return labels


def _of_container(container: ContainerRef) -> dict[str, str]:
    return {"container": container.container, "namespace": container.namespace, "pod": container.pod}


def _sanitised(labels: Mapping[str, str]) -> dict[str, str]:
    """`app.kubernetes.io/name` becomes `app_kubernetes_io_name`. Of two that become the same, the first counts."""
    found: dict[str, str] = {}
    for name in sorted(labels):
        plain = _NOT_IN_A_LABEL.sub("_", name)
        found.setdefault(f"_{plain}" if plain[:1].isdigit() else plain, labels[name])
    return found


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
