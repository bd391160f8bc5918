"""Which pods of the kubelet's list are still there.

The kubelet lists pods by name. While it does not answer, its last list counts, but pods come and go meanwhile, and the
next pod of a name may have another card. A watch that works knows pods by UID: what it no longer has is gone.
"""

from collections.abc import Sequence
from operator import is_

from podgpu.ledger.usage import PodName
from podgpu.model import Pod
from podgpu.model.kube import grouped
from podgpu.model.ports import AllocationLists

NONE: frozenset[str] = frozenset()


class ListedPods:
    """Remembers the UIDs that a name had when the kubelet last listed it, and which pods are gone."""

    def __init__(self) -> None:
        self._uids: dict[PodName, frozenset[str]] = {}
        self._gone: frozenset[PodName] = frozenset()
        self._inputs: tuple[object, ...] = ()
        self._living: frozenset[PodName] = frozenset()

    def living(
        self, lists: AllocationLists, watches: Sequence[tuple[Pod, ...]], *, is_answered: bool
    ) -> frozenset[PodName]:
        """Return those of the list that live. `watches` are the pods of each watch that works.

        `is_answered` says that the kubelet answered when it was last asked: then it knows the pods that it lists.
        Nothing is computed again while the inputs are the same objects.
        """
        inputs = (lists, is_answered, *watches)
        if len(inputs) == len(self._inputs) and all(map(is_, inputs, self._inputs)):
            return self._living
        names = frozenset((held.namespace, held.pod) for held in lists.devices)
        names |= {(held.namespace, held.pod) for held in lists.dynamic}
        vouched = names - lists.awaited if is_answered else frozenset()
        self._living = self._watched(names, vouched, watches) if watches else names - (self._gone - vouched)
        self._gone = names - self._living
        self._inputs = inputs
        return self._living

    def _watched(
        self, names: frozenset[PodName], vouched: frozenset[PodName], watches: Sequence[tuple[Pod, ...]]
    ) -> frozenset[PodName]:
        """If the kubelet answers, a name is that of the pod which a watch has now, or never had, as with a new pod."""
        pods = grouped((pod for pods in watches for pod in pods), lambda pod: (pod.namespace, pod.name))
        now = {name: frozenset(pod.uid for pod in pods.get(name, ())) for name in names}
        had = {name: self._uids.get(name, NONE) for name in names}
        self._uids = {name: now[name] if name in vouched and now[name] else had[name] for name in names}
        return frozenset(name for name in names if now[name] & self._uids[name] or (name in vouched and not had[name]))
