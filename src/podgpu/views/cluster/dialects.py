"""Pages of older systems that showed a whole cluster, made of the same dialects as an agent's."""

from collections.abc import Callable, Mapping, Sequence

from podgpu.model import Cluster, ClusterNode
from podgpu.views.dialects import container_json, pod_gpu_map
from podgpu.views.dialects._dcgm.options import Options as DcgmOptions
from podgpu.views.series import Family

_OPEN, _CLOSE = b"[\n", b"\n]\n"
NO_CONTAINERS = b"[]\n"
BETWEEN_CONTAINERS = b",\n"


def map_of_node(node: ClusterNode) -> list[Family]:
    return [pod_gpu_map.map_family(_rows(node))]


def map_of_cluster(options: pod_gpu_map.Options) -> Callable[[Cluster], Sequence[Family]]:
    """The deprecated families are numbered over all nodes."""

    def families(cluster: Cluster) -> Sequence[Family]:
        if options.deprecated == "off":
            return []
        return pod_gpu_map.deprecated_families(row for node in cluster.nodes for row in _rows(node))

    return families


def nodes_of_node(node: ClusterNode) -> list[Family]:
    return pod_gpu_map.node_families(_rows(node))


def containers_of_node(options: DcgmOptions, query: Mapping[str, str]) -> Callable[[ClusterNode], bytes]:
    """Return the node's objects without the brackets around them."""

    def objects(node: ClusterNode) -> bytes:
        if node.snapshot is None or node.state != "fresh":  # old numbers would pass for new ones
            return b""
        written = container_json.document(node.snapshot, options, query)
        return written.removeprefix(_OPEN).removesuffix(_CLOSE) if written.startswith(_OPEN) else b""

    return objects


def containers_frame(_cluster: Cluster) -> tuple[bytes, bytes]:
    return _OPEN, _CLOSE


def _rows(node: ClusterNode) -> list[pod_gpu_map.MapRow]:
    return pod_gpu_map.rows(node.snapshot) if node.snapshot else []
