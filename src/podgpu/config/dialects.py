"""The options of dialects. One field is the flag, the environment name, the file key and the docs."""
# ruff: noqa: RUF009 - one and at_most_one return dataclass fields

from dataclasses import dataclass

from podgpu.config.collectors import Collectors, collectors
from podgpu.config.option import DIALECTS, Option, at_most_one, one
from podgpu.config.value import OneOf


@dataclass(frozen=True, kw_only=True)
class DialectOptions:
    dcgm_collectors: Collectors | None = at_most_one(
        Option(
            flag="--dcgm.collectors",
            group=DIALECTS,
            help="Counters of the dcgm pages: a CSV file as dcgm-exporter reads it.",
            parse=collectors,
            value_name="PATH",
            default_note="dcgm-exporter's default counters",
        )
    )
    dcgm_hostname_label: str = one(
        Option(
            flag="--dcgm.hostname-label",
            group=DIALECTS,
            help="How /metrics/dcgm spells the node's label: dcgm-exporter changed it in 4.8.3.",
            parse=OneOf(("Hostname", "hostname")),
            default="Hostname",
        )
    )
    dcgm_per_container: str = one(
        Option(
            flag="--dcgm.per-container",
            group=DIALECTS,
            help="Whether the dcgm pages and container-json split use, memory and power of a shared GPU by container.",
            parse=OneOf(("on", "off")),
            default="off",
        )
    )
    dialect_pod_gpu_map_deprecated: str = one(
        Option(
            flag="--dialect.pod-gpu-map.deprecated",
            group=DIALECTS,
            help="Whether /metrics/pod-gpu-map also has a POD_GPU_MAP_INFO_N for each row.",
            parse=OneOf(("on", "off")),
            default="off",
        )
    )
    dialect_cadvisor_values: str = one(
        Option(
            flag="--dialect.cadvisor.values",
            group=DIALECTS,
            help="Whose use /metrics/cadvisor shows: the container's own, or the whole card's as cAdvisor did.",
            parse=OneOf(("container", "card")),
            default="container",
        )
    )
    dialect_hami_names: str = one(
        Option(
            flag="--dialect.hami.names",
            group=DIALECTS,
            help="Names on /metrics/hami: those since HAMi 2.9, those before, or both.",
            parse=OneOf(("new", "legacy", "both")),
            default="new",
        )
    )
    node_ip: str | None = at_most_one(
        Option(
            flag="--node-ip",
            group=DIALECTS,
            help="Address of this node, for pages that show one.",
            parse=str,
            value_name="ADDRESS",
            default=lambda environ: environ.get("HOST_IP") or environ.get("hostIP"),
            default_note="$HOST_IP or $hostIP, else none",
        )
    )
    dialect_gpu_mem_monitor_labels: str = one(
        Option(
            flag="--dialect.gpu-mem-monitor.labels",
            group=DIALECTS,
            help="Labels of /metrics/gpu-mem-monitor: those of its README, or those its later versions had.",
            parse=OneOf(("readme", "later")),
            default="readme",
        )
    )
    dialect_vgpu_monitor_gpu_id: str = one(
        Option(
            flag="--dialect.vgpu-monitor.gpu-id",
            group=DIALECTS,
            help="What gpu_id is on /metrics/vgpu-monitor: the GPU's index, or its place among the pod's own.",
            parse=OneOf(("index", "slot")),
            default="index",
        )
    )
    dialect_vgpu_monitor_utilization: str = one(
        Option(
            flag="--dialect.vgpu-monitor.utilization",
            group=DIALECTS,
            help="Utilization on /metrics/vgpu-monitor: of the whole GPU, or of the pod's share of it.",
            parse=OneOf(("physical", "multiplied")),
            default="physical",
        )
    )
    dialect_vgpu_monitor_namespace: str = one(
        Option(
            flag="--dialect.vgpu-monitor.namespace",
            group=DIALECTS,
            help="Whether every pod on /metrics/vgpu-monitor has a namespace label. Pods of one name always have it.",
            parse=OneOf(("on", "off")),
            default="off",
        )
    )
