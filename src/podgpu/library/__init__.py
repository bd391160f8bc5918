"""podgpu's parts for programs of one's own. What is named here is stable; docs/library.md shows its use."""

from podgpu.config import Config
from podgpu.errors import UserError
from podgpu.kube.api import ApiFault
from podgpu.library.mount import routes
from podgpu.library.node import Node
from podgpu.library.page import fetch_page, read_page
from podgpu.library.record import GpuMetric, gpu_metrics
from podgpu.library.workload import WorkloadResolver
from podgpu.model import Snapshot, Workload
from podgpu.sources.dcgm.page import PageFault

__all__ = [
    "ApiFault",
    "Config",
    "GpuMetric",
    "Node",
    "PageFault",
    "Snapshot",
    "UserError",
    "Workload",
    "WorkloadResolver",
    "fetch_page",
    "gpu_metrics",
    "read_page",
    "routes",
]
