"""nvidia-gpu-mem-monitor: the memory of each process, under the name of its pod."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from podgpu import option
from podgpu.catalog.row import Kind, Worth
from podgpu.catalog.units import MIB
from podgpu.model import Device, Holder, Snapshot
from podgpu.option.value import OneOf
from podgpu.views.dialects import Document, Families
from podgpu.views.family import Family, labels_text

NAME = "pod_used_gpu_mem_MB"
HELP = ". Pod使用的GPU显存大小"

Pod = tuple[str, str]

_NOBODY_KNOWS: Pod = ("", "")


@dataclass(frozen=True, slots=True)
class Labels:
    """A set of labels; `outside` is what it says instead of a pod and its namespace, by the holder's kind."""

    names: tuple[str, ...]
    outside: Mapping[str, Pod]


README = Labels(
    ("app_pid", "gpu_name", "gpu_uuid", "pod_name", "pod_namespace"),
    {"host": ("null", "null"), "container": ("null", "null")},
)
LATER = Labels(
    ("hostIP", "app_pid", "gpu_name", "UUID", "gpu", "pod", "namespace"),
    {"host": ("服务器直接运行的程序", "null"), "container": ("docker run运行的程序", "null")},
)


@dataclass(frozen=True, kw_only=True)
class Options:
    node_ip: str | None = option.at_most_one(
        option.Option(
            flag="--node-ip",
            group=option.DIALECTS,
            help="Address of this node, for pages that show one.",
            parse=str,
            value_name="ADDRESS",
            default_note="none",
            also_from=("HOST_IP", "hostIP"),
        )
    )
    labels: str = option.one(
        option.Option(
            flag="--dialect.gpu-mem-monitor.labels",
            group=option.DIALECTS,
            help="Labels of /metrics/gpu-mem-monitor: those of its README, or those its later versions had.",
            parse=OneOf(("readme", "later")),
            default="readme",
        )
    )


def families(snapshot: Snapshot, options: Options) -> list[Family]:
    labels = LATER if options.labels == "later" else README
    samples: dict[str, float] = {}
    for facts, memory in _processes(snapshot, labels, options.node_ip or ""):
        text = labels_text(labels.names, [facts[name] for name in labels.names])
        # A process on two instances of a card is listed once for each.
        samples[text] = samples.get(text, 0.0) + memory
    return [Family(NAME, Kind.GAUGE, HELP, Worth.CORE, samples)] if samples else []


def _processes(snapshot: Snapshot, labels: Labels, address: str) -> Iterator[tuple[dict[str, str], int]]:
    holders = {holder.pid: holder for holder in snapshot.holders}
    for device in snapshot.devices:
        card = _card(device) | {"hostIP": address}
        for process in sorted(device.processes, key=lambda one: one.pid):
            if process.kinds and process.memory_bytes is not None:
                pod = _pod(holders.get(process.pid), labels)
                facts = card | {"app_pid": str(process.pid)} | _both_names(pod)
                yield facts, int(process.memory_bytes / MIB.factor)


def _card(device: Device) -> dict[str, str]:
    gpu = device.gpu
    return {"gpu_name": gpu.model, "gpu_uuid": gpu.uuid, "UUID": gpu.uuid, "gpu": str(gpu.index)}


def _pod(holder: Holder | None, labels: Labels) -> Pod:
    if holder is None:
        return _NOBODY_KNOWS
    if holder.kind in labels.outside:
        return labels.outside[holder.kind]
    return (holder.container.pod, holder.container.namespace) if holder.container else _NOBODY_KNOWS


def _both_names(pod: Pod) -> dict[str, str]:
    name, namespace = pod
    return {"pod_name": name, "pod": name, "pod_namespace": namespace, "namespace": namespace}


PAGES: Mapping[str, Families] = {"/metrics/gpu-mem-monitor": families}
DOCUMENTS: Mapping[str, Document] = {}
