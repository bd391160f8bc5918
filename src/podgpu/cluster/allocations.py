"""Which container was allocated which GPU in the whole cluster, by the watches of the API server alone.

Device ids are in the status of pods since Kubernetes 1.36; sharing systems note cards on pods and nodes; drivers write
resource claims and slices. What none of them says stays unknown: a UUID is empty then, and
a number is -1.
"""

import asyncio
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import partial
from typing import TypeAlias

from msgspec import Struct
from msgspec.structs import replace

from podgpu import log, sharing
from podgpu.cluster import demand
from podgpu.cluster.node_allocations import NodeObjects, node_allocations
from podgpu.feed import Feed
from podgpu.kube.cluster_watch import ClusterWatch, ObjectFilter
from podgpu.model import (
    ClusterNode,
    Fault,
    KubeNode,
    KubeObjects,
    PartStatus,
    PendingPod,
    Pod,
    PodContainer,
    ResourceClaim,
    Workload,
)
from podgpu.model.kube import grouped, quantity
from podgpu.supervise import Supervisor

ClaimName: TypeAlias = tuple[str, str]  # namespace, name
# A device class with one of these in its name is one of GPUs. A class with another name is not recognized.
CLASSES = ("gpu", "nvidia", "mig")


class ClusterAllocations(Struct, frozen=True, kw_only=True):
    """Every node that has GPUs, or pods with GPUs, by its name; and the pods that wait, oldest first.

    `objects` is what all this follows from.
    """

    nodes: Mapping[str, ClusterNode] = {}
    pending: tuple[PendingPod, ...] = ()
    objects: Mapping[str, NodeObjects] = {}


def allocate(
    objects: KubeObjects,
    last: ClusterAllocations | None = None,
    *,
    pod_labels: Collection[str] = (),
    namespaces: Collection[str] = (),
) -> ClusterAllocations:
    """A node about which nothing has changed since `last` is the same object there and here.

    `pod_labels` are the labels of pods that may be shown, `namespaces` those of sharing systems themselves.
    """
    last, signs = last or ClusterAllocations(), sharing.signs()
    by_node = {found.node.name: found for found in _by_node(objects, signs, tuple(namespaces))}
    nodes = {
        name: last.nodes[name] if last.objects.get(name) == found else node_allocations(found, objects.at, pod_labels)
        for name, found in sorted(by_node.items())
    }
    unplaced = [pod for pod in objects.pods if not pod.node and not pod.finished]
    pending = waiting(unplaced, objects.claims, objects.workloads, signs)
    return ClusterAllocations(
        nodes=nodes,
        pending=tuple(sorted(pending, key=lambda pod: (pod.since or 0.0, pod.namespace, pod.name))),
        objects=by_node,
    )


def _by_node(objects: KubeObjects, signs: tuple[str, ...], namespaces: tuple[str, ...]) -> Iterator[NodeObjects]:
    """Yield what concerns each node that has to do with GPUs."""
    placed = (pod for pod in objects.pods if pod.node and not pod.finished and sharing.concerns(pod, signs))
    by_node = grouped(placed, lambda pod: pod.node)
    devices_of = grouped(objects.devices, lambda device: device.node or device.pool)
    by_name = {(claim.namespace, claim.name): claim for claim in objects.claims}
    by_uid: defaultdict[str, list[ClaimName]] = defaultdict(list)
    for claim_name, claim in by_name.items():
        for uid in claim.pod_uids:
            by_uid[uid].append(claim_name)
    known = {node.name: node for node in objects.nodes}
    for name in {*known, *by_node}:
        node, pods, devices = known.get(name) or KubeNode(name=name), by_node.get(name, ()), devices_of.get(name, ())
        if pods or devices or any(sharing.is_gpu(resource, signs) for resource in node.capacity):
            wanted = dict.fromkeys(claim for pod in pods for claim in _claims(pod, by_uid, by_name))
            yield NodeObjects(
                node=node,
                pods=tuple(pods),
                claims=tuple(by_name[claim] for claim in wanted),
                devices=tuple(devices),
                workloads={pod.uid: objects.workloads[pod.uid] for pod in pods if pod.uid in objects.workloads},
                namespaces=namespaces,
            )


def _claims(pod: Pod, by_uid: Mapping[str, list[ClaimName]], by_name: Collection[ClaimName]) -> Iterator[ClaimName]:
    """Yield the claims reserved for a pod, and those that it names: a claim may be reserved for a group of pods."""
    yield from by_uid.get(pod.uid, ())
    named = ((pod.namespace, name) for name in _claim_names(pod))
    yield from (claim for claim in named if claim in by_name)


def waiting(
    pods: Iterable[Pod],
    claims: Iterable[ResourceClaim],
    workloads: Mapping[str, Workload],
    signs: tuple[str, ...],
) -> Iterator[PendingPod]:
    of_gpus = {(claim.namespace, claim.name) for claim in claims if _is_of_gpus(claim)}
    for pod in pods:
        asks = _asks(pod.containers, signs)
        wanted = [name for name in _claim_names(pod) if (pod.namespace, name) in of_gpus]
        if asks or wanted:
            yield PendingPod(
                namespace=pod.namespace,
                name=pod.name,
                uid=pod.uid,
                since=pod.waiting.since if pod.waiting else None,
                asks=asks,
                claims=tuple(wanted),
                reason=pod.waiting.reason if pod.waiting else "",
                workload=workloads.get(pod.uid),
            )


def _is_of_gpus(claim: ResourceClaim) -> bool:
    names = (*claim.classes, *(device.driver for device in claim.devices))
    return any(part in name for name in names for part in CLASSES)


def _claim_names(pod: Pod) -> Collection[str]:
    return dict.fromkeys(filter(None, (*pod.resource_claims.values(), pod.extended_claim)))


def _asks(containers: Sequence[PodContainer], signs: tuple[str, ...]) -> dict[str, str]:
    """Sum up what the containers of a pod ask for."""
    limits = grouped(
        ((resource, limit) for container in containers for resource, limit in container.limits.items()),
        lambda limit: limit[0],
    )
    return {
        resource: texts[0][1] if len(texts) == 1 else str(int(demand.of_pod(containers, resource)))
        for resource, texts in sorted(limits.items())
        if sharing.is_gpu(resource, signs) and any(quantity(text) for _, text in texts)
    }


PART = "allocations"
FIRST_SECONDS = 10.0  # for the first lists; what is there by then is shown
PAUSE_SECONDS = 0.5  # between two calculations, however often objects change
NODE_LABELS = "nvidia.com/"  # NVIDIA's discovery describes a node's GPUs by these
HASHES = ("pod-template-hash", "rollouts-pod-template-hash")  # stand in for an owner that cannot be read


class KubeAllocations:
    def __init__(
        self, reader: ClusterWatch, pod_labels: Collection[str] = (), namespaces: Collection[str] = ()
    ) -> None:
        """`pod_labels` are the labels of pods that may be shown, `namespaces` those of sharing systems themselves."""
        self._reader = reader
        self._allocate = partial(allocate, pod_labels=pod_labels, namespaces=namespaces)
        self._feed = Feed(ClusterAllocations())
        self._first = asyncio.Event()
        self._pods: dict[str, list[Pod]] = {}
        self._fault: Fault | None = None

    def newest(self) -> ClusterAllocations:
        """Return the newest allocations: the same object until something changes."""
        return self._feed.newest

    def parts(self) -> tuple[PartStatus, ...]:
        own = PartStatus(name=PART, up=self._fault is None, fault=self._fault)
        return *self._reader.statuses(), own

    def pods_of(self, node: str) -> Sequence[Pod] | None:
        """List the pods of a node that have to do with GPUs, or return None while they are not known."""
        return None if self._reader.pods.pods() is None else self._pods.get(node, ())

    @property
    def workloads(self) -> Mapping[str, Workload]:
        """By the UID of the pod."""
        return self._reader.objects().workloads

    async def complete(self) -> None:
        """Wait for the first allocations."""
        await self._first.wait()

    async def changed(self, seen: ClusterAllocations) -> ClusterAllocations:
        return await self._feed.changed(seen)

    async def run(self, supervisor: Supervisor) -> None:
        """Work until cancelled."""
        reading = partial(self._reader.run, supervisor)
        await supervisor.run([(PART, reading), (PART, self._follow)])

    async def close(self) -> None:
        await self._reader.close()

    async def _follow(self) -> None:
        with suppress(TimeoutError):
            async with asyncio.timeout(FIRST_SECONDS):
                await self._reader.complete()
        while True:
            objects = self._reader.objects()
            await self._update(objects)
            self._first.set()
            await asyncio.sleep(PAUSE_SECONDS)
            await self._reader.changed(objects)

    async def _update(self, objects: KubeObjects) -> None:
        # In a thread: ten thousand pods take half a second.
        try:
            found = await asyncio.to_thread(self._allocate, objects, self._feed.newest)
        except Exception as error:  # a mistake here must not end the rest
            self._fault = Fault(reason="failed", detail=repr(error))
            log.error("allocations cannot be worked out; please report this", error=error)
            return
        self._fault = None
        self._pods = grouped(objects.pods, lambda pod: pod.node)
        self._feed.publish(found)


def wanted_objects(pod_labels: Collection[str] = ()) -> ObjectFilter:
    """Choose what is needed to find out which GPU is allocated to which pod.

    `pod_labels` are kept in addition to those that sharing systems use.
    """
    signs, shown = sharing.signs(), {*pod_labels, *HASHES}
    of_nodes = (NODE_LABELS, *sharing.node_labels())

    def trimmed(pod: Pod) -> Pod | None:
        if pod.finished or not sharing.concerns(pod, signs):
            return None
        labels = {key: value for key, value in pod.labels.items() if key in shown or key.startswith(signs)}
        return replace(pod, labels=labels)

    return ObjectFilter(
        pod=trimmed,
        pod_annotations=sharing.annotations(),
        node_annotations=sharing.node_annotations(),
        node_label=lambda name: name.startswith(of_nodes),
    )
