"""What Kubernetes gave to whom, from the watches of the API server."""

import asyncio
from collections.abc import Collection, Mapping, Sequence
from functools import partial

from podgpu.cluster.allocations import Allocated, allocate
from podgpu.kube.whole.reader import ClusterReader
from podgpu.model import KubeObjects, PartStatus, Pod, Workload


class KubeGiven:
    def __init__(self, reader: ClusterReader, pod_labels: Collection[str] = ()) -> None:
        """`pod_labels` are the labels of pods that may be shown."""
        self._reader = reader
        self._pod_labels = pod_labels
        self._seen: KubeObjects | None = None
        self._allocated = Allocated()
        self._pods: dict[str, list[Pod]] = {}
        self._turn = asyncio.Lock()

    def allocated(self) -> Allocated:
        return self._allocated

    def parts(self) -> tuple[PartStatus, ...]:
        return self._reader.statuses()

    def pods_of(self, node: str) -> Sequence[Pod] | None:
        """List the pods of a node that have to do with GPUs, or return None while they are not known."""
        return None if self._reader.pods.pods() is None or self._seen is None else self._pods.get(node, ())

    @property
    def workloads(self) -> Mapping[str, Workload]:
        """By the UID of the pod."""
        return self._reader.objects().workloads

    async def complete(self) -> None:
        await self._take(await self._reader.complete())

    async def changed(self) -> None:
        """Wait for objects other than those that were looked at last."""
        if self._seen is None:
            await self.complete()
        else:
            await self._take(await self._reader.changed(self._seen))

    async def run(self) -> None:
        await self._reader.run()

    async def close(self) -> None:
        await self._reader.close()

    async def _take(self, objects: KubeObjects) -> None:
        """Work beside the event loop: a thousand nodes that are new take a second."""
        async with self._turn:
            if objects is self._seen:
                return
            found = partial(allocate, objects, self._allocated, pod_labels=self._pod_labels)
            self._allocated = await asyncio.to_thread(found)
            self._seen, self._pods = objects, {}
            for pod in objects.pods:
                self._pods.setdefault(pod.node, []).append(pod)
