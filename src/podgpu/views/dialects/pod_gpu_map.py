"""pod-gpu-exporter: a series for each pod and GPU, whose value is always 1."""

from collections.abc import Iterable
from dataclasses import dataclass

from msgspec import Struct
from msgspec.structs import astuple, replace

from podgpu import option
from podgpu.catalog.row import Kind, Worth
from podgpu.model import Cluster, ClusterNode, Snapshot
from podgpu.option.value import on_off
from podgpu.views.dialects import Dialect
from podgpu.views.dialects._pod_tenant import pod_tenants
from podgpu.views.series import Family, Labels, label_name

MAP, MAP_HELP = "pod_and_gpu_map_info", "Provide a mapping relationship between pod and gpu"
NODE_HELP = "Provide every node's pod and gpu mapping relationship"
PODS = "pods"  # the group
DEPRECATED = "POD_GPU_MAP_INFO_"
DEPRECATED_HELP = "pod gpu map info - please use labels value to match pod and gpu"


class MapRow(Struct, frozen=True, order=True):
    """A pod and a device that it holds or uses. The fields are the labels of a series."""

    gpu_id: str
    gpu_model: str
    namespace: str
    node: str
    pod_name: str
    cluster: str = ""  # the label is there only where several clusters are read

    @property
    def labels(self) -> Labels:
        names, values = self.__struct_fields__[:-1], astuple(self)[:-1]
        return Labels(("cluster", *names), (self.cluster, *values)) if self.cluster else Labels(names, values)


@dataclass(frozen=True, kw_only=True)
class PodGpuMapOptions:
    deprecated: str = option.DIALECTS.single(
        "--dialect.pod-gpu-map.deprecated",
        help="Whether /metrics/pod-gpu-map also has a POD_GPU_MAP_INFO_N for each row.",
        parse=on_off,
        default="off",
    )


def rows(snapshot: Snapshot, cluster: str = "") -> list[MapRow]:
    """Each row once, in the order of the cards."""
    mapped = (
        MapRow(
            gpu_id=tenant.uuid,
            gpu_model=tenant.gpu.model,
            namespace=tenant.container.namespace,
            node=snapshot.node,
            pod_name=tenant.container.pod,
            cluster=cluster,
        )
        for tenant in pod_tenants(snapshot)
    )
    return list(dict.fromkeys(mapped))


def rows_of_node(node: ClusterNode) -> list[MapRow]:
    """The rows of a node within its cluster. One that was not read has none, nor one that was heard long ago."""
    if node.snapshot is None or node.is_outdated:
        return []
    return rows(replace(node.snapshot, node=node.bare_name), node.cluster)


def map_family(mapped: Iterable[MapRow]) -> Family:
    return Family(MAP, Kind.INFO, MAP_HELP, Worth.VITAL, {(row.labels,): 1.0 for row in mapped}, PODS)


def node_families(mapped: Iterable[MapRow]) -> list[Family]:
    """A family for each node. Nodes whose metric names are the same share one; the label distinguishes them."""
    families: dict[str, Family] = {}
    for row in mapped:
        name = metric_name(row.node)
        family = families.setdefault(name, Family(name, Kind.INFO, NODE_HELP, Worth.VITAL, group=PODS))
        family.put(1.0, row.labels)
    return list(families.values())


def deprecated_families(mapped: Iterable[MapRow], options: PodGpuMapOptions) -> list[Family]:
    """A family for each row, as in the first version, if the option asks for them. The value is 0."""
    if options.deprecated == "off":
        return []
    series = dict.fromkeys(row.labels for row in mapped)
    return [
        Family(f"{DEPRECATED}{number}", Kind.GAUGE, DEPRECATED_HELP, Worth.DETAIL, {(labels,): 0.0}, PODS)
        for number, labels in enumerate(series)
    ]


def metric_name(node: str) -> str:
    """`gpu-node.1` becomes `gpu_node_1_info`, `1node` becomes `_1node_info`."""
    name = label_name(node[:253])
    return f"{name}_info" if name and not name[0].isdigit() else f"_{name}_info"


def of_node(node: ClusterNode) -> list[Family]:
    """A node's series on the page of a whole cluster."""
    return [map_family(rows_of_node(node))]


def of_cluster(options: PodGpuMapOptions, cluster: Cluster) -> list[Family]:
    """The deprecated families, which are numbered over all nodes."""
    mapped = (row for node in cluster.nodes for row in rows_of_node(node))
    return deprecated_families(mapped, options)


def by_node(node: ClusterNode) -> list[Family]:
    return node_families(rows_of_node(node))


def _map(snapshot: Snapshot, options: PodGpuMapOptions) -> list[Family]:
    mapped = rows(snapshot)
    return [map_family(mapped), *deprecated_families(mapped, options)]


def _nodes(snapshot: Snapshot, _options: PodGpuMapOptions) -> list[Family]:
    return node_families(rows(snapshot))


DIALECT = Dialect(pages={"/metrics/pod-gpu-map": _map, "/metrics/nodes": _nodes}, options=PodGpuMapOptions)
