"""What HAMi's Grafana dashboards ask. Where a dashboard has a variable, all of it is chosen.

The present dashboard is dashboards/hami-vgpu-dashboard.json of Project-HAMi/HAMi at 96207fc7 (2026-08-06), the former
docs/gpu-dashboard.json before caf39c10, which has the names before 2.9. What the former asks of dcgm-exporter is not
HAMi's: `/metrics/dcgm` answers it.
"""

from typing import NamedTuple

PRESENT, FORMER = "dashboards/hami-vgpu-dashboard.json", "docs/gpu-dashboard.json"


class Asked(NamedTuple):
    """`missing` is the reason if there is no answer."""

    origin: str
    expression: str
    missing: str = ""


ASKED = (
    Asked(PRESENT, 'count(hami_gpu_memory_limit_bytes{node=~".*"})'),
    Asked(PRESENT, 'sum(hami_gpu_memory_limit_bytes{node=~".*"})'),
    Asked(PRESENT, 'sum(hami_gpu_memory_allocated_bytes{node=~".*"})'),
    Asked(
        PRESENT,
        '100 * sum(hami_gpu_memory_allocated_bytes{node=~".*"}) / sum(hami_gpu_memory_limit_bytes{node=~".*"})',
    ),
    Asked(PRESENT, 'sum(hami_gpu_shared_count{node=~".*"})'),
    Asked(
        PRESENT,
        'hami_host_gpu_memory_used_bytes and on (device_uuid) hami_gpu_memory_limit_bytes{node=~".*"}',
    ),
    Asked(
        PRESENT,
        'hami_host_gpu_utilization_ratio and on (device_uuid) hami_gpu_memory_limit_bytes{node=~".*"}',
    ),
    Asked(PRESENT, 'sum by (node) (hami_gpu_memory_allocated_bytes{node=~".*"})'),
    Asked(PRESENT, 'sum by (node) (hami_gpu_memory_limit_bytes{node=~".*"})'),
    Asked(PRESENT, 'hami_node_gpu_memory_allocated_ratio{node=~".*"}'),
    Asked(PRESENT, 'hami_gpu_core_allocated_ratio{node=~".*"}'),
    Asked(PRESENT, 'hami_gpu_shared_count{node=~".*"}'),
    Asked(PRESENT, 'hami_vgpu_memory_used_bytes{namespace=~".*"}'),
    Asked(PRESENT, 'hami_vgpu_memory_limit_bytes{namespace=~".*"}'),
    Asked(PRESENT, 'hami_container_device_utilization_ratio{namespace=~".*"}'),
    Asked(
        PRESENT,
        '100 * hami_vgpu_memory_used_bytes{namespace=~".*"} / hami_vgpu_memory_limit_bytes{namespace=~".*"}',
    ),
    Asked(PRESENT, 'topk(10, hami_vgpu_memory_used_bytes{namespace=~".*"})'),
    Asked(FORMER, 'HostCoreUtilization{node_name=~".*",deviceuuid=~".*"}'),
    Asked(FORMER, 'HostGPUMemoryUsage{node_name=~".*",deviceuuid=~".*"}'),
    Asked(FORMER, 'count by (node_name) (vGPU_device_memory_usage_in_bytes{node_name=~".*"})'),
    Asked(FORMER, 'nodeGPUOverview{nodeid=~".*",deviceuuid=~".*"}'),
    Asked(FORMER, 'sum by (deviceuuid, nodename) (vGPUCorePercentage{nodename=~".*"})'),
    Asked(FORMER, 'sum by (deviceuuid, nodename) (vGPUMemoryPercentage{nodename=~".*"})'),
    Asked(FORMER, 'sum by (podname) (Device_memory_desc_of_container{node_name=~".*",deviceuuid=~".*"})'),
    Asked(FORMER, 'sum by (podname) (Device_utilization_desc_of_container{node_name=~".*",deviceuuid=~".*"})'),
    Asked(
        "the scheduler's exporter",
        "hami_resource_quota_used",
        "quotas belong to namespaces; only the scheduler adds up what all nodes gave against them",
    ),
    Asked("the scheduler's exporter", "hami_resource_quota_limit", "as above"),
    Asked(
        "the scheduler's exporter",
        "hami_node_gpu_mig_instance_info",
        "HAMi gave no MIG instance on this node",
    ),
)
