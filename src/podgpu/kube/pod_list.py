"""Pods by UID, listed in order: the same tuple for as long as nothing changes, so that a reader can skip its work."""

from collections.abc import Iterable

from podgpu.kube.limits import MOST_PODS
from podgpu.model import Pod


def place(pod: Pod) -> tuple[str, str, str]:
    """Return what pods are sorted by."""
    return pod.namespace, pod.name, pod.uid


class PodList:
    """Takes no more pods than a node can have. `excess` is how many were left out since the last list."""

    def __init__(self) -> None:
        self.excess = 0
        self._pods: dict[str, Pod] = {}
        self._ordered: tuple[Pod, ...] = ()
        self._is_changed = False

    def put(self, pod: Pod) -> None:
        if len(self._pods) >= MOST_PODS and pod.uid not in self._pods:
            self.excess += 1
        elif self._pods.get(pod.uid) != pod:
            self._pods[pod.uid] = pod
            self._is_changed = True

    def drop(self, uid: str) -> None:
        if self._pods.pop(uid, None):
            self._is_changed = True

    def replace(self, pods: Iterable[Pod], excess: int = 0) -> None:
        """Take a list as the truth. `excess` are those that it leaves out."""
        self._pods = {pod.uid: pod for pod in pods}
        self.excess = excess
        self._is_changed = True

    def ordered(self) -> tuple[Pod, ...]:
        if self._is_changed:
            found = tuple(sorted(self._pods.values(), key=place))
            self._ordered = self._ordered if found == self._ordered else found
            self._is_changed = False
        return self._ordered
