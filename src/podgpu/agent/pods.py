"""Who is on the node, by the best list of pods there is."""

import asyncio
from collections.abc import Mapping, Sequence

from msgspec.structs import replace

from podgpu.model import Fault, PartStatus, Pod, Workload
from podgpu.model.ports import PodSource, Rescannable, WorkloadSource
from podgpu.supervise import brief


class PodSources:
    """`sources` come best first."""

    def __init__(self, sources: Sequence[PodSource]) -> None:
        self.sources = tuple(sources)

    def pods(self) -> tuple[Pod, ...]:
        """Take the list of a source that works, else of one that did.

        A list of bare names, as log folders give, is completed with what a better source last reported: that a
        pod has ended, and what it was made for, is still true. Ids of containers are not: they start again.
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
        """Ask those that look only now and then to look soon: somebody runs here whom nobody has listed."""
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


SECONDS = 0.2  # how long a cycle waits; the rest comes with the next


class WorkloadNames:
    """Remembers the last answer, which counts until the next one comes. `status` is there after a failure."""

    def __init__(self, workloads: WorkloadSource, patience: float) -> None:
        self.status: PartStatus | None = None
        self._workloads = workloads
        self._patience = min(SECONDS, patience)
        self._known: Mapping[str, Workload] = {}
        self._asking: asyncio.Task[dict[str, Workload]] | None = None

    async def of(self, pods: Sequence[Pod]) -> Mapping[str, Workload]:
        """Return workloads by the UID of the pod."""
        if self._asking is None or self._asking.done():
            self._asking = brief(self._workloads.resolve(pods))
        done, _ = await asyncio.wait({self._asking}, timeout=self._patience)
        error = self._asking.exception() if done else None
        self.status = _broken(self._workloads.name, error) if error else None
        if done and not error:
            self._known = self._asking.result()
        return self._known

    async def close(self) -> None:
        if self._asking:
            self._asking.cancel()
            await asyncio.wait({self._asking})


def _broken(name: str, error: BaseException) -> PartStatus:
    return PartStatus(name=name, up=False, fault=Fault(reason="attribution_error", detail=repr(error)))
