"""Who was given which GPU in the whole cluster, by the API server alone."""

from collections.abc import Mapping

from msgspec import Struct

from podgpu.model import ClusterNode, KubeObjects, PendingPod


class Allocated(Struct, frozen=True, kw_only=True):
    """Every node that has GPUs, or pods with GPUs, by its name; and the pods that wait, oldest first."""

    nodes: Mapping[str, ClusterNode] = {}
    pending: tuple[PendingPod, ...] = ()


def allocate(objects: KubeObjects, last: Allocated | None = None) -> Allocated:
    """A node about which nothing has changed since `last` is the same object there and here."""
    raise NotImplementedError
