"""The pods on the node, by the best list of pods there is, and the workloads that they belong to."""

from collections.abc import Mapping, Sequence

from msgspec.structs import replace

from podgpu.model import Fault, PartStatus, Pod, Workload
from podgpu.model.ports import PodSource, Rescannable, WorkloadSource
from podgpu.supervise import LatestReply

SECONDS = 0.2  # how long a cycle waits for workloads; the rest comes with the next


class PodSources:
    """`sources` come best first."""

    def __init__(self, sources: Sequence[PodSource]) -> None:
        self.sources = tuple(sources)

    def pods(self) -> tuple[Pod, ...]:
        """Take the list of a source that works, else of one that did.

        A list of names alone, as log folders give, is completed with what a better source last reported: that a
        pod has ended, and its owner, are still true. Ids of containers are not: containers restart.
        """
        working = [source for source in self.sources if source.status().up]
        lists = [pods for source in (*working, *self.sources) if (pods := source.pods()) is not None]
        if not lists:
            return ()
        best = lists[0]
        return best if all(pod.phase for pod in best) else _filled(best, lists[1:])

    def lists(self) -> tuple[tuple[Pod, ...], ...]:
        """Return what each source listed last, the best at the end."""
        return tuple(pods for source in reversed(self.sources) if (pods := source.pods()) is not None)

    def look_again(self) -> None:
        """Ask the sources that rescan only now and then to do so soon: a container runs here that no list has."""
        for source in self.sources:
            if isinstance(source, Rescannable):
                source.look_again()


def _filled(bare: tuple[Pod, ...], others: Sequence[tuple[Pod, ...]]) -> tuple[Pod, ...]:
    known = {pod.uid: pod for pods in reversed(others) for pod in pods if pod.phase}
    names = {(pod.namespace, pod.name) for pod in bare}
    filled = [pod if pod.phase or pod.uid not in known else _completed(known[pod.uid], pod) for pod in bare]
    # A pod that ran, and is not on the list that works, may be gone.
    ended = (pod for pod in known.values() if pod.finished and (pod.namespace, pod.name) not in names)
    return (*filled, *ended)


def _completed(known: Pod, bare: Pod) -> Pod:
    ids = {container.name: container.container_id for container in bare.containers if container.container_id}
    containers = (
        replace(container, container_id=ids.get(container.name, container.container_id))
        for container in known.containers
    )
    return replace(known, containers=tuple(containers))


class WorkloadNames:
    """Asks for workloads in the background: a slow API server must not hold up the numbers.

    The last answer counts until the next one comes. `status` is there after a failure.
    """

    def __init__(self, workloads: WorkloadSource, patience: float) -> None:
        self.status: PartStatus | None = None
        self._name = workloads.name
        self._workloads = LatestReply(workloads.resolve, min(SECONDS, patience))

    async def of(self, pods: Sequence[Pod]) -> Mapping[str, Workload]:
        """Return workloads by the UID of the pod."""
        self.status = None
        try:
            await self._workloads.get(pods)
        except Exception as error:  # shown as a part that is down
            fault = Fault(reason="attribution_error", detail=repr(error))
            self.status = PartStatus(name=self._name, up=False, fault=fault)
        return self._workloads.reply or {}

    async def close(self) -> None:
        await self._workloads.close()
