"""nvidia-gpu-mem-monitor: the memory of each process, with the name of its pod."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from podgpu import option
from podgpu.catalog.row import Kind, Worth
from podgpu.catalog.units import MIB
from podgpu.model import Card, Holder, Snapshot
from podgpu.option.value import OneOf
from podgpu.views.dialects import Dialect
from podgpu.views.sample_format import whole_numbers
from podgpu.views.series import Family, Labels

NAME = "pod_used_gpu_mem_MB"
HELP = ". Pod使用的GPU显存大小"

# What the labels for a pod and for its namespace say.
PodTexts = tuple[str, str]

_UNKNOWN: PodTexts = ("", "")


@dataclass(frozen=True, slots=True)
class Wording:
    """Names of labels, and what stands for pod and namespace outside Kubernetes, by the holder's kind."""

    names: tuple[str, ...]
    outside: Mapping[str, PodTexts]


README = Wording(
    ("app_pid", "gpu_name", "gpu_uuid", "pod_name", "pod_namespace"),
    {"host": ("null", "null"), "container": ("null", "null")},
)
LATER = Wording(
    ("hostIP", "app_pid", "gpu_name", "UUID", "gpu", "pod", "namespace"),
    {"host": ("服务器直接运行的程序", "null"), "container": ("docker run运行的程序", "null")},
)


@dataclass(frozen=True, kw_only=True)
class GpuMemMonitorOptions:
    node_ip: str | None = option.optional(
        "--node-ip",
        group=option.DIALECTS,
        help="Address of this node, for pages that show one.",
        parse=str,
        value_name="ADDRESS",
        default_note="what Kubernetes says, else that of the first Ethernet interface",
        also_from=("HOST_IP", "hostIP"),
    )
    labels: str = option.single(
        "--dialect.gpu-mem-monitor.labels",
        group=option.DIALECTS,
        help="Labels of /metrics/gpu-mem-monitor: those of its README, or those its later versions had.",
        parse=OneOf(("readme", "later")),
        default="readme",
    )


def families(snapshot: Snapshot, options: GpuMemMonitorOptions) -> list[Family]:
    wording = LATER if options.labels == "later" else README
    page = Family(NAME, Kind.GAUGE, HELP, Worth.CORE, writing=whole_numbers)
    for facts, memory in _processes(snapshot, wording, options.node_ip or _address(snapshot)):
        # A process on two instances of a card is listed once for each.
        page.add(memory, Labels(wording.names, [facts[name] for name in wording.names]))
    return [page] if page.samples else []


def _address(snapshot: Snapshot) -> str:
    """Return the node's address, by the status of its pods, else by its interfaces."""
    return next((pod.host_ip for pod in snapshot.pods if pod.host_ip), snapshot.address)


def _processes(snapshot: Snapshot, wording: Wording, address: str) -> Iterator[tuple[dict[str, str], int]]:
    for card in snapshot.cards:
        place = _place(card) | {"hostIP": address}
        for process in sorted(card.processes, key=lambda process: process.pid):
            if process.kinds and process.memory_bytes is not None:
                pod = _pod(process.holder, wording)
                facts = place | {"app_pid": str(process.pid)} | _both_names(pod)
                yield facts, int(process.memory_bytes / MIB.factor)


def _place(card: Card) -> dict[str, str]:
    gpu = card.gpu
    return {"gpu_name": gpu.model, "gpu_uuid": gpu.uuid, "UUID": gpu.uuid, "gpu": str(gpu.index)}


def _pod(holder: Holder | None, wording: Wording) -> PodTexts:
    if holder is None:
        return _UNKNOWN
    if holder.kind in wording.outside:
        return wording.outside[holder.kind]
    return (holder.container.pod, holder.container.namespace) if holder.container else _UNKNOWN


def _both_names(pod: PodTexts) -> dict[str, str]:
    name, namespace = pod
    return {"pod_name": name, "pod": name, "pod_namespace": namespace, "namespace": namespace}


DIALECT = Dialect(pages={"/metrics/gpu-mem-monitor": families}, options=GpuMemMonitorOptions)
