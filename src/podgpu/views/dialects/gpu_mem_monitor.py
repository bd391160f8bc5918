"""nvidia-gpu-mem-monitor: the memory of each process, with the name of its pod."""

from collections.abc import Mapping
from dataclasses import dataclass

from podgpu import option
from podgpu.model import Holder, Snapshot
from podgpu.option.value import OneOf
from podgpu.views.dialects import Dialect
from podgpu.views.dialects._pod_tenant import mib
from podgpu.views.sample_format import whole_numbers
from podgpu.views.series import Family, Labels

NAME = "pod_used_gpu_mem_MB"
HELP = ". Pod使用的GPU显存大小"

# What the labels for a pod and for its namespace say.
PodTexts = tuple[str, str]

_UNKNOWN: PodTexts = ("", "")


@dataclass(frozen=True, slots=True)
class LabelWording:
    """Names of labels, and what stands for pod and namespace outside Kubernetes, by the holder's kind."""

    names: tuple[str, ...]
    outside: Mapping[str, PodTexts]


README = LabelWording(
    ("app_pid", "gpu_name", "gpu_uuid", "pod_name", "pod_namespace"),
    {"host": ("null", "null"), "container": ("null", "null")},
)
LATER = LabelWording(
    ("hostIP", "app_pid", "gpu_name", "UUID", "gpu", "pod", "namespace"),
    {"host": ("服务器直接运行的程序", "null"), "container": ("docker run运行的程序", "null")},
)


@dataclass(frozen=True, kw_only=True)
class GpuMemMonitorOptions:
    node_ip: str | None = option.DIALECTS.optional(
        "--node-ip",
        help="Address of this node, for pages that show one.",
        parse=str,
        value_name="ADDRESS",
        default_note="what Kubernetes says, else that of the first Ethernet interface",
        also_from=("HOST_IP", "hostIP"),
    )
    labels: str = option.DIALECTS.single(
        "--dialect.gpu-mem-monitor.labels",
        help="Labels of /metrics/gpu-mem-monitor: those of its README, or those its later versions had.",
        parse=OneOf(("readme", "later")),
        default="readme",
    )


def families(snapshot: Snapshot, options: GpuMemMonitorOptions) -> list[Family]:
    wording = LATER if options.labels == "later" else README
    # The node's address by the status of its pods, else by its interfaces.
    known = next((pod.host_ip for pod in snapshot.pods if pod.host_ip), snapshot.address)
    address = options.node_ip or known
    page = Family.gauge(NAME, HELP, whole_numbers)
    by_pid = [(card.gpu, sorted(card.processes, key=lambda process: process.pid)) for card in snapshot.cards]
    for gpu, process in ((gpu, process) for gpu, processes in by_pid for process in processes):
        if process.kinds and process.memory_bytes is not None:
            pod, namespace = _pod(process.holder, wording)
            facts = {
                "hostIP": address,
                "app_pid": str(process.pid),
                "gpu_name": gpu.model,
                "gpu_uuid": gpu.uuid,
                "UUID": gpu.uuid,
                "gpu": str(gpu.index),
                "pod_name": pod,
                "pod": pod,
                "pod_namespace": namespace,
                "namespace": namespace,
            }
            labels = Labels(wording.names, [facts[name] for name in wording.names])
            # A process on two instances of a card is listed once for each.
            page.add(mib(process.memory_bytes), labels)
    return [page] if page.samples else []


def _pod(holder: Holder | None, wording: LabelWording) -> PodTexts:
    if holder is None:
        return _UNKNOWN
    if holder.kind in wording.outside:
        return wording.outside[holder.kind]
    return (holder.container.pod, holder.container.namespace) if holder.container else _UNKNOWN


DIALECT = Dialect(pages={"/metrics/gpu-mem-monitor": families}, options=GpuMemMonitorOptions)
