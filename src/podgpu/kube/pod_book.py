"""The pods of a node, or of all nodes, from lists and events."""

from collections.abc import Callable

import msgspec
from msgspec.structs import replace

from podgpu.kube.api import POD_BYTES
from podgpu.kube.bounds import MOST_PODS
from podgpu.kube.bounds.notes import Names
from podgpu.kube.object_cache import MOST_ITEMS, CachedObject, ObjectCache, number
from podgpu.kube.pod_list import place
from podgpu.kube.pod_object import decode_pod, to_pod
from podgpu.model import Pod


class PodBook(ObjectCache[Pod]):
    """Without a `node`, the pods of all nodes. `trim` cuts off what nobody needs, or returns None.

    `notes` are prefixes of the annotations to keep.
    """

    largest = POD_BYTES

    def __init__(
        self, node: str | None, trim: Callable[[Pod], Pod | None] | None = None, *, notes: Names = ()
    ) -> None:
        self.most = MOST_ITEMS if node is None else MOST_PODS
        self._node = node
        self._notes = notes
        self._trim = trim
        super().__init__()

    def pods(self) -> tuple[Pod, ...]:
        return self.items()

    def place(self, item: Pod) -> tuple[str, ...]:
        return place(item)

    def decoded(self, data: bytes | msgspec.Raw) -> CachedObject[Pod] | None:
        item = decode_pod(data)
        if self._node not in (None, item.spec.node_name):
            return None
        pod = to_pod(item, self._notes, self.errors)
        if self._node is None:
            pod = replace(pod, node=item.spec.node_name)
        kept = self._trim(pod) if self._trim else pod
        return CachedObject(number(item.metadata.resource_version), pod.uid, kept)
