"""What Kubernetes gave to whom, from the watches of the API server."""

from collections.abc import Collection, Mapping, Sequence

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

    def allocated(self) -> Allocated:
        self._look()
        return self._allocated

    def parts(self) -> tuple[PartStatus, ...]:
        return self._reader.statuses()

    def pods_of(self, node: str) -> Sequence[Pod]:
        """List the pods of a node that have to do with GPUs."""
        self._look()
        return self._pods.get(node, ())

    @property
    def workloads(self) -> Mapping[str, Workload]:
        """By the UID of the pod."""
        return self._reader.objects().workloads

    async def complete(self) -> None:
        await self._reader.complete()

    async def changed(self) -> None:
        """Wait for objects other than those that were looked at last."""
        if self._seen is not None:
            await self._reader.changed(self._seen)

    async def run(self) -> None:
        await self._reader.run()

    async def close(self) -> None:
        await self._reader.close()

    def _look(self) -> None:
        objects = self._reader.objects()
        if objects is self._seen:
            return
        self._seen = objects
        self._allocated = allocate(objects, self._allocated, pod_labels=self._pod_labels)
        self._pods = {}
        for pod in objects.pods:
            self._pods.setdefault(pod.node, []).append(pod)
