"""The pods of a node, or of all nodes, by a list and a watch of the API server."""

from collections.abc import Callable

import msgspec
from msgspec.structs import replace

from podgpu.kube.api import POD_BYTES, ApiServer
from podgpu.kube.limits import MOST_PODS, Prefixes, name_crowded_pod
from podgpu.kube.object_cache import MOST_ITEMS, CachedObject, ObjectCache, number
from podgpu.kube.object_watch import ObjectWatch, WatchTiming
from podgpu.kube.pod_object import decode_pod, pod_order, to_pod, waiting
from podgpu.model import PartStatus, Pod

PODS = "/api/v1/pods"


class PodCache(ObjectCache[Pod]):
    """Without a `node`, the pods of all nodes. `trim` cuts off what is not needed, or returns None.

    `annotations` are prefixes of those to keep.
    """

    largest = POD_BYTES

    def __init__(
        self, node: str | None, trim: Callable[[Pod], Pod | None] | None = None, *, annotations: Prefixes = ()
    ) -> None:
        super().__init__(MOST_ITEMS if node is None else MOST_PODS)
        self._node = node
        self._annotations = annotations
        self._trim = trim

    def order(self, item: Pod) -> tuple[str, ...]:
        return pod_order(item)

    def decoded(self, data: bytes | msgspec.Raw) -> CachedObject[Pod] | None:
        item = decode_pod(data)
        if self._node not in (None, item.spec.node_name):
            return None
        pod = to_pod(item, self._annotations, self.errors)
        if self._node is None:
            node = item.spec.node_name
            pod = replace(pod, node=node, waiting=None if node else waiting(item))
        kept = self._trim(pod) if self._trim else pod
        return CachedObject(number(item.metadata.resource_version), pod.uid, kept)


class PodWatch(ObjectWatch[Pod]):
    """`node`, `trim` and `annotations` are those of `PodCache`."""

    def __init__(
        self,
        api: ApiServer,
        node: str | None,
        *,
        timing: WatchTiming | None = None,
        trim: Callable[[Pod], Pod | None] | None = None,
        grant: str = "",
        annotations: Prefixes = (),
    ) -> None:
        self._pods = PodCache(node, trim, annotations=annotations)
        selector = {} if node is None else {"fieldSelector": f"spec.nodeName={node}"}
        super().__init__(
            api,
            [PODS],
            self._pods,
            name="apiserver",
            selector=selector,
            timing=timing,
            grant=grant,
            from_cache=node is not None,
        )

    def status(self) -> PartStatus:
        return name_crowded_pod(super().status(), self.pods())

    def pods(self) -> tuple[Pod, ...] | None:
        return self._pods.items() if self._pods.version else None
