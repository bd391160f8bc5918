"""podgpu's parts for your own programs. These names are stable; docs/library.md shows how to use them."""

from podgpu.config import Config
from podgpu.errors import UserError
from podgpu.kube.api import ApiFault
from podgpu.library.node import Node, Querier, metrics_route, routes
from podgpu.library.page import fetch_page, read_page, scrape
from podgpu.library.record import METRIC_NAMES, GpuMetric, gpu_metrics
from podgpu.library.workload import WorkloadResolver
from podgpu.model import Snapshot, Workload
from podgpu.sources.dcgm.page import PageFault

__all__ = [
    "METRIC_NAMES",
    "ApiFault",
    "Config",
    "GpuMetric",
    "Node",
    "PageFault",
    "Querier",
    "Snapshot",
    "UserError",
    "Workload",
    "WorkloadResolver",
    "fetch_page",
    "gpu_metrics",
    "metrics_route",
    "read_page",
    "routes",
    "scrape",
]
