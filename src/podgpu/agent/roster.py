"""Who is on the node, by the best list of pods there is."""

from collections.abc import Sequence

from msgspec.structs import replace

from podgpu.model import Pod
from podgpu.model.ports import PodSource, Rescannable


class Roster:
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
    ids = {one.name: one.container_id for one in bare.containers if one.container_id}
    containers = (replace(one, container_id=ids.get(one.name, one.container_id)) for one in known.containers)
    return replace(known, containers=tuple(containers))
