"""Processes get the names of their containers, by the UID and the container id in their cgroup."""

from collections import Counter
from collections.abc import Iterable, Mapping

import msgspec

from podgpu.model import ContainerRef, Holder, Owner, Pod


class Directory:
    """Pods by UID. A static pod's cgroup carries a hash; the API server knows the pod by another UID.

    `others` are lists that may be ahead of the best: whoever they name is named, and no id is ever another container's.
    """

    def __init__(self, pods: Iterable[Pod], others: Iterable[Iterable[Pod]] = ()) -> None:
        pods = tuple(pods)
        further = [pod for listed in others for pod in listed]
        self._pods = {pod.static_hash: pod for pod in pods if pod.static_hash}
        # Whoever may make a pod may write a static pod's hash on it: what two claim is neither's.
        for claimed, count in Counter(pod.static_hash for pod in pods).items():
            if count > 1:
                self._pods.pop(claimed, None)
        # The API server's UID of a static pod counts, not the hash that its log folder is named after.
        static = {pod.uid: pod for pod in further if pod.static_hash}
        self._pods = static | self._pods | {pod.uid: pod for pod in further if not pod.static_hash}
        self._pods |= {pod.uid: pod for pod in pods}
        self._ids: dict[str, dict[str, str]] = {}
        for pod in (*further, *pods):
            ids = {one.container_id: one.name for one in pod.containers if one.container_id}
            self._ids.setdefault(pod.uid, {}).update(ids)

    def named(self, holder: Holder) -> Holder:
        """Return the holder with its container's name, if its pod is known and knows the container."""
        owner = holder.owner
        pod = self._pods.get(owner.pod_uid or "") if owner and holder.kind == "pod" else None
        if pod is None or owner is None:
            return holder
        name = _container(pod, owner, self._ids[pod.uid])
        if name is None:
            return msgspec.structs.replace(holder, reason="not_in_pod")
        return msgspec.structs.replace(holder, container=ContainerRef(pod.namespace, pod.name, name, pod.uid))

    def knows(self, holder: Holder) -> bool:
        """Whether a list has the id of the holder's container. A process that is in no container has none."""
        owner = holder.owner
        pod = self._pods.get(owner.pod_uid or "") if owner else None
        if pod is None or owner is None:
            return False
        return not owner.container_id or owner.container_id in self._ids[pod.uid]


def _container(pod: Pod, owner: Owner, ids: Mapping[str, str]) -> str | None:
    """Name the container by its id. None if the ids of the pod's containers are known and this is none of them.

    A pod's list may be behind: an id that it does not know yet is that of the only container that can have started
    again. Where no ids are known, a container's name is left out unless the pod has only one.
    """
    if not ids:
        return pod.containers[0].name if len(pod.containers) == 1 else ""
    if owner.container_id in (None, "") or owner.container_id in ids:
        return ids.get(owner.container_id or "")
    return _restarted(pod)


def _restarted(pod: Pod) -> str | None:
    """Name the only container that runs or will. Init containers that have ended do not run beside it."""
    living = [one for one in pod.containers if one.running or not (one.is_init or one.is_ephemeral)]
    return living[0].name if len(living) == 1 and not (living[0].is_init or pod.finished) else None
