"""Who was given which GPU in the whole cluster, by the API server alone.

Device ids are in the status of pods since Kubernetes 1.36; sharing systems note cards on pods and nodes; drivers write
resource claims and slices. What none of them says stays unknown: a card without a UUID has none here, one without a
number has -1.
"""

from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping
from typing import TypeAlias

from msgspec import Struct

from podgpu import sharing
from podgpu.cluster.allocations.node import Findings, allocated
from podgpu.cluster.allocations.pending import waiting
from podgpu.model import ClusterNode, KubeNode, KubeObjects, PendingPod, Pod, PoolDevice, ResourceClaim

ClaimName: TypeAlias = tuple[str, str]  # namespace, name


class Allocated(Struct, frozen=True, kw_only=True):
    """Every node that has GPUs, or pods with GPUs, by its name; and the pods that wait, oldest first.

    `findings` is what all this rests on.
    """

    nodes: Mapping[str, ClusterNode] = {}
    pending: tuple[PendingPod, ...] = ()
    findings: Mapping[str, Findings] = {}


def allocate(
    objects: KubeObjects,
    last: Allocated | None = None,
    *,
    pod_labels: Collection[str] = (),
    namespaces: Collection[str] = (),
) -> Allocated:
    """A node about which nothing has changed since `last` is the same object there and here.

    `pod_labels` are the labels of pods that may be shown, `namespaces` those of sharing systems themselves.
    """
    last, systems = last or Allocated(), sharing.systems()
    own = tuple(namespaces)
    findings = {one.node.name: one for one in _findings(objects, sharing.signs_of(systems), own)}
    nodes = {
        name: last.nodes[name]
        if last.findings.get(name) == one
        else allocated(one, systems, objects.at, pod_labels)
        for name, one in sorted(findings.items())
    }
    unplaced = [pod for pod in objects.pods if not pod.node and not pod.finished]
    pending = waiting(unplaced, objects.claims, objects.workloads, sharing.signs_of(systems))
    return Allocated(
        nodes=nodes,
        pending=tuple(sorted(pending, key=lambda one: (one.since or 0.0, one.namespace, one.name))),
        findings=findings,
    )


def _findings(objects: KubeObjects, signs: tuple[str, ...], own: tuple[str, ...]) -> Iterator[Findings]:
    """Yield what concerns each node that has to do with GPUs."""
    pods: defaultdict[str, list[Pod]] = defaultdict(list)
    for pod in objects.pods:
        if pod.node and not pod.finished and sharing.concerns(pod, signs):
            pods[pod.node].append(pod)
    devices: defaultdict[str, list[PoolDevice]] = defaultdict(list)
    for device in objects.devices:
        devices[device.node or device.pool].append(device)
    by_uid, by_name = _by_uid(objects.claims), {(one.namespace, one.name): one for one in objects.claims}
    known = {node.name: node for node in objects.nodes}
    for name in {*known, *pods}:
        node = known.get(name) or KubeNode(name=name)
        if pods[name] or devices[name] or any(sharing.is_gpu(one, signs) for one in node.capacity):
            wanted = {one: None for pod in pods[name] for one in _claims(pod, by_uid, by_name)}
            uids = [pod.uid for pod in pods[name]]
            yield Findings(
                node=node,
                pods=tuple(pods[name]),
                claims=tuple(by_name[one] for one in wanted),
                devices=tuple(devices[name]),
                workloads={uid: objects.workloads[uid] for uid in uids if uid in objects.workloads},
                namespaces=own,
            )


def _by_uid(claims: tuple[ResourceClaim, ...]) -> dict[str, list[ClaimName]]:
    found: dict[str, list[ClaimName]] = {}
    for claim in claims:
        for uid in claim.pod_uids:
            found.setdefault(uid, []).append((claim.namespace, claim.name))
    return found


def _claims(
    pod: Pod, by_uid: Mapping[str, list[ClaimName]], by_name: Collection[ClaimName]
) -> Iterator[ClaimName]:
    """Yield the claims reserved for a pod, and those that it names: a claim may be reserved for a group of pods."""
    yield from by_uid.get(pod.uid, ())
    named = ((pod.namespace, name) for name in (*pod.resource_claims.values(), pod.extended_claim))
    yield from (one for one in named if one in by_name)
