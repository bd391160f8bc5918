"""Who is on the node, by the best list of pods there is."""

from collections.abc import Sequence

from podgpu.model import Pod
from podgpu.sources.residents import Pods


class Roster:
    """`sources` come best first."""

    def __init__(self, sources: Sequence[Pods]) -> None:
        self.sources = tuple(sources)

    def pods(self) -> tuple[Pod, ...]:
        """Take the list of a source that works, else of one that did.

        A list of bare names, as log folders give, is completed with what a better source last reported: that a
        pod has ended, and what it was made for, is still true.
        """
        working = [source for source in self.sources if source.status().up]
        lists = [pods for source in (*working, *self.sources) if (pods := source.pods()) is not None]
        if not lists:
            return ()
        best = lists[0]
        return best if all(pod.phase for pod in best) else _filled(best, lists[1:])


def _filled(bare: tuple[Pod, ...], others: Sequence[tuple[Pod, ...]]) -> tuple[Pod, ...]:
    known = {pod.uid: pod for pods in reversed(others) for pod in pods if pod.phase}
    names = {(pod.namespace, pod.name) for pod in bare}
    filled = [pod if pod.phase else known.get(pod.uid, pod) for pod in bare]
    # A pod that ran, and is not on the list that works, may be gone.
    ended = (pod for pod in known.values() if pod.finished and (pod.namespace, pod.name) not in names)
    return (*filled, *ended)
