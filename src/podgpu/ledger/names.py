"""Processes get the names of their containers, by the UID and the container id in their cgroup."""

from collections import Counter
from collections.abc import Iterable

import msgspec

from podgpu.model import ContainerRef, Holder, Owner, Pod


class Directory:
    """Pods by UID. A static pod's cgroup carries a hash; the API server knows the pod by another UID."""

    def __init__(self, pods: Iterable[Pod]) -> None:
        pods = tuple(pods)
        self._pods = {pod.static_hash: pod for pod in pods if pod.static_hash}
        # Whoever may make a pod may write a static pod's hash on it: what two claim is neither's.
        for claimed, count in Counter(pod.static_hash for pod in pods).items():
            if count > 1:
                self._pods.pop(claimed, None)
        self._pods |= {pod.uid: pod for pod in pods}

    def named(self, holder: Holder) -> Holder:
        """Return the holder with its container's name, if its pod is known and knows the container."""
        owner = holder.owner
        pod = self._pods.get(owner.pod_uid or "") if owner and holder.kind == "pod" else None
        if pod is None or owner is None:
            return holder
        name = _container(pod, owner)
        if name is None:
            return msgspec.structs.replace(holder, reason="not_in_pod")
        return msgspec.structs.replace(holder, container=ContainerRef(pod.namespace, pod.name, name, pod.uid))


def _container(pod: Pod, owner: Owner) -> str | None:
    """Name the container by its id. None if the ids of the pod's containers are known and this is none of them.

    A cgroup path can be imitated outside Kubernetes, an id in a pod's status cannot. Where no ids are known, a
    container's name is left out unless the pod has only one.
    """
    ids = {one.container_id: one.name for one in pod.containers if one.container_id}
    if ids:
        return ids.get(owner.container_id or "")
    return pod.containers[0].name if len(pod.containers) == 1 else ""
