"""What can be asked of a cluster, by path."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from podgpu.model import Cluster, ClusterNode
from podgpu.option import OptionsOf
from podgpu.option.value import NATIVE
from podgpu.serve.cluster.views import ClusterListView, ClusterMetricsView, ClusterView
from podgpu.serve.page_registry import dialects_of
from podgpu.views.cluster import json, metrics, page
from podgpu.views.cluster.metrics import rendered
from podgpu.views.dialects import PREFIX, container_json, pod_gpu_map
from podgpu.views.dialects._dcgm.counters import DcgmPageOptions
from podgpu.views.series import EVERYTHING, Family, SeriesFilter

# Makes a document for one request alone.
Queried = Callable[[Mapping[str, str]], ClusterView[Any]]


@dataclass(frozen=True, slots=True)
class ClusterPageRegistry:
    """`queried` are the paths of documents that a query makes smaller."""

    views: Mapping[str, ClusterView[Any]]
    queried: Mapping[str, Queried] = field(default_factory=dict)

    @property
    def dialects(self) -> list[str]:
        return dialects_of(tuple(self.views))


def register_cluster_pages(
    options: OptionsOf, series_limit: int, choice: SeriesFilter = EVERYTHING
) -> ClusterPageRegistry:
    """`series_limit` is how many series a single node may have on a page. Of `choice`, only the names are heeded."""
    maps = options(pod_gpu_map.PodGpuMapOptions)

    def metrics_view(
        of_node: Callable[[ClusterNode], Sequence[Family]], of_cluster: Callable[[Cluster], Sequence[Family]]
    ) -> ClusterView[Any]:
        return ClusterMetricsView(
            lambda node: rendered(choice.apply(of_node(node)), series_limit),
            lambda cluster: rendered(choice.apply(of_cluster(cluster)), series_limit),
        )

    containers = partial(_containers, options)
    return ClusterPageRegistry(
        {
            "/": ClusterListView(
                page.row, page.frame, separator=b"", content_type="text/html; charset=utf-8"
            ),
            "/api/v1/cluster": ClusterListView(
                json.row, json.frame, separator=b",", content_type="application/json"
            ),
            PREFIX + NATIVE: metrics_view(metrics.of_node, metrics.of_cluster),
            "/metrics/pod-gpu-map": metrics_view(pod_gpu_map.of_node, pod_gpu_map.of_cluster(maps)),
            "/metrics/nodes": metrics_view(pod_gpu_map.by_node, lambda _: []),
            **dict.fromkeys(container_json.DIALECT.documents, containers({})),
        },
        dict.fromkeys(container_json.DIALECT.documents, containers),
    )


def _containers(options: OptionsOf, query: Mapping[str, str]) -> ClusterView[Any]:
    return ClusterListView(
        container_json.of_node(options(DcgmPageOptions), query),
        lambda _: (container_json.OPEN, container_json.CLOSE),
        separator=container_json.SEPARATOR,
        content_type="application/json",
        empty=container_json.NO_CONTAINERS,
    )
