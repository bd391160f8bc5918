"""The pods of a node, or of all nodes, by a list and a watch of the API server."""

from collections.abc import Callable

from podgpu.kube.api import Api
from podgpu.kube.bounds import containers
from podgpu.kube.bounds.notes import Names
from podgpu.kube.object_watch import ObjectWatch, WatchTiming
from podgpu.kube.pod_book import PodBook
from podgpu.model import PartStatus, Pod

PODS = "/api/v1/pods"


class PodWatch(ObjectWatch[Pod]):
    """Without a `node`, the pods of all nodes. `trim` cuts off what nobody needs, or returns None.

    `notes` are prefixes of the annotations to keep.
    """

    def __init__(
        self,
        api: Api,
        node: str | None,
        *,
        timing: WatchTiming | None = None,
        trim: Callable[[Pod], Pod | None] | None = None,
        grant: str = "",
        notes: Names = (),
    ) -> None:
        self._own = PodBook(node, trim, notes=notes)
        selector = {} if node is None else {"fieldSelector": f"spec.nodeName={node}"}
        super().__init__(
            api,
            [PODS],
            self._own,
            name="apiserver",
            selector=selector,
            timing=timing,
            grant=grant,
            from_cache=node is not None,
        )

    def status(self) -> PartStatus:
        return containers.named(super().status(), self.pods())

    def pods(self) -> tuple[Pod, ...] | None:
        return self._own.pods() if self._own.version else None
