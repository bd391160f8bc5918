"""The allocations of the whole cluster, kept up to date by the watches of the API server."""

import asyncio
from collections.abc import Collection, Mapping, Sequence
from contextlib import suppress
from functools import partial

from msgspec.structs import replace

from podgpu import log, sharing
from podgpu.cluster.allocations import ClusterAllocations, allocate
from podgpu.feed import Feed
from podgpu.kube.cluster_watch import ClusterWatch, ObjectFilter
from podgpu.model import Fault, KubeObjects, PartStatus, Pod, Workload
from podgpu.supervise import Supervisor

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
        """The newest: the same object until something changes."""
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
        self._pods = {}
        for pod in objects.pods:
            self._pods.setdefault(pod.node, []).append(pod)
        self._feed.publish(found)


def wanted_objects(pod_labels: Collection[str] = ()) -> ObjectFilter:
    """Choose what is needed to find out which GPU is allocated to which pod.

    `pod_labels` are kept in addition to those that sharing systems use.
    """
    systems = sharing.systems()
    signs, shown = sharing.signs_of(systems), {*pod_labels, *HASHES}
    of_nodes = (NODE_LABELS, *sharing.node_labels_of(systems))

    def trimmed(pod: Pod) -> Pod | None:
        if pod.finished or not sharing.concerns(pod, signs):
            return None
        labels = {key: value for key, value in pod.labels.items() if key in shown or key.startswith(signs)}
        return replace(pod, labels=labels)

    return ObjectFilter(
        pod=trimmed,
        pod_annotations=sharing.annotations_of(systems),
        node_annotations=sharing.node_annotations_of(systems),
        node_label=lambda name: name.startswith(of_nodes),
    )
