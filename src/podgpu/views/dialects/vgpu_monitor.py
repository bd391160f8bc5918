"""k8s-vgpu-monitor: what each pod uses of its virtual GPUs, and how much memory they have."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from podgpu import option
from podgpu.catalog.row import Kind, Worth
from podgpu.catalog.units import MIB
from podgpu.model import Claim, Snapshot
from podgpu.option.value import OneOf
from podgpu.views.dialects import Document, Families
from podgpu.views.dialects._holding import Holding, card_names, holdings, percent
from podgpu.views.family import Family, labels_text

UTILIZATION, USED, TOTAL = "pod_gpu_sm_util", "pod_gpu_memory_used", "pod_total_gpu_memory"

# The README's words, wrong unit and all: memory is in MiB.
_HELP = {
    UTILIZATION: "GPU SM utilization per pod (Aggregated physical utilization)",
    USED: "GPU memory usage per pod (Aggregated physical usage, likely in Bytes)",
    TOTAL: "Total GPU memory per pod (Allocated vGPU memory based on ratio, likely in Bytes)",
}
_MULTIPLIED_HELP = {UTILIZATION: "GPU SM utilization per pod"}
_MEMORY = "memory_total_bytes"

Pod = tuple[str, str]


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """What a pod has of a card. Ratios are parts of the whole card. None is what is not known."""

    gpu_id: str
    sm_ratio: float | None
    share: float | None
    used_bytes: float | None
    total_bytes: float | None

    @property
    def multiplied(self) -> float | None:
        return self.sm_ratio / self.share if self.sm_ratio is not None and self.share else None


@dataclass(frozen=True, kw_only=True)
class Options:
    gpu_id: str = option.one(
        option.Option(
            flag="--dialect.vgpu-monitor.gpu-id",
            group=option.DIALECTS,
            help="What gpu_id is on /metrics/vgpu-monitor: the GPU's index, or its place among the pod's own.",
            parse=OneOf(("index", "slot")),
            default="index",
        )
    )
    utilization: str = option.one(
        option.Option(
            flag="--dialect.vgpu-monitor.utilization",
            group=option.DIALECTS,
            help="Utilization on /metrics/vgpu-monitor: of the whole GPU, or of the pod's share of it.",
            parse=OneOf(("physical", "multiplied")),
            default="physical",
        )
    )
    namespace: str = option.one(
        option.Option(
            flag="--dialect.vgpu-monitor.namespace",
            group=option.DIALECTS,
            help="Whether every pod on /metrics/vgpu-monitor has a namespace label. Pods of one name always have it.",
            parse=OneOf(("on", "off")),
            default="off",
        )
    )


def families(snapshot: Snapshot, options: Options) -> list[Family]:
    pods = _pods(snapshot)
    slots = options.gpu_id == "slot"
    names = card_names(snapshot)
    multiplied = options.utilization == "multiplied"
    words = _HELP | _MULTIPLIED_HELP if multiplied else _HELP
    page = {name: Family(name, Kind.GAUGE, text, Worth.CORE) for name, text in words.items()}
    for pod, namespace in _namespaces(pods, always=options.namespace == "on").items():
        for row in _by_slot(pods[pod]) if slots else _by_card(pods[pod], names):
            labels = _labels(row.gpu_id, namespace, pod)
            for name, value in _values(row, multiplied=multiplied).items():
                page[name].samples[labels] = value
    return [family for family in page.values() if family.samples]


def _pods(snapshot: Snapshot) -> dict[Pod, list[Holding]]:
    found: dict[Pod, list[Holding]] = {}
    for holding in sorted(holdings(snapshot), key=_order):
        found.setdefault((holding.container.namespace, holding.container.pod), []).append(holding)
    return dict(sorted(found.items()))


def _order(holding: Holding) -> tuple[int, int, int]:
    instance = holding.instance
    place = (instance.mig.gpu_instance_id, instance.mig.compute_instance_id) if instance else (-1, -1)
    return holding.device.gpu.index, *place


def _namespaces(pods: Iterable[Pod], *, always: bool) -> dict[Pod, str]:
    """Return the namespace to show for each pod. Without it, two pods of one name would be one series."""
    bearers = Counter(name for _, name in pods)
    return {pod: pod[0] if always or bearers[pod[1]] > 1 else "" for pod in pods}


def _by_card(held: Sequence[Holding], names: Mapping[str, str]) -> Iterator[Row]:
    """Make one row of all that a pod has on a card."""
    for uuid in dict.fromkeys(one.device.gpu.uuid for one in held):
        here = [one for one in held if one.device.gpu.uuid == uuid]
        parts = [(one, claim) for one in here for claim in one.claims]
        yield Row(
            gpu_id=names[uuid],
            sm_ratio=_sum(one.card_ratio for one in here),
            share=_sum(_share(one, claim) for one, claim in parts),
            used_bytes=_sum(one.memory_bytes for one in here),
            total_bytes=_sum(_size(one, claim) for one, claim in parts),
        )


def _by_slot(held: Sequence[Holding]) -> Iterator[Row]:
    """Make a row of each virtual GPU. In which of a card's the work is done nobody can say: all show it."""
    parts = [(one, claim) for one in held for claim in sorted(one.claims, key=lambda claim: claim.device_id)]
    beside = Counter(one.uuid for one, _ in parts)
    for slot, (holding, claim) in enumerate(parts):
        here = [one for one in held if one.uuid == holding.uuid]
        used = _sum(one.memory_bytes for one in here)
        yield Row(
            gpu_id=str(slot),
            sm_ratio=_sum(one.card_ratio for one in here),
            share=_share(holding, claim),
            used_bytes=None if used is None else used / beside[holding.uuid],
            total_bytes=_size(holding, claim),
        )


def _sum(values: Iterable[float | None]) -> float | None:
    """Add up. Of nothing there is no sum, and one of which a part is unknown is unknown."""
    listed = list(values)
    known = [value for value in listed if value is not None]
    return sum(known) if known and len(known) == len(listed) else None


def _share(holding: Holding, claim: Claim) -> float | None:
    return None if holding.part is None else claim.share * holding.part


def _size(holding: Holding, claim: Claim) -> float | None:
    """Return the limit that the pod was given, if there is one, else a part of the memory as large as its share."""
    if claim.memory_limit_bytes is not None:
        return claim.memory_limit_bytes
    whole = holding.reading(_MEMORY)
    return None if whole is None else whole * claim.share


def _values(row: Row, *, multiplied: bool) -> dict[str, float]:
    told = {
        UTILIZATION: percent(row.multiplied if multiplied else row.sm_ratio),
        USED: _mib(row.used_bytes),
        TOTAL: _mib(row.total_bytes),
    }
    return {name: value for name, value in told.items() if value is not None}


def _mib(size: float | None) -> float | None:
    return None if size is None else float(int(size / MIB.factor))


def _labels(gpu_id: str, namespace: str, pod: Pod) -> str:
    if namespace:
        return labels_text(("gpu_id", "namespace", "pod"), (gpu_id, *pod))
    return labels_text(("gpu_id", "pod"), (gpu_id, pod[1]))


PAGES: Mapping[str, Families] = {"/metrics/vgpu-monitor": families}
DOCUMENTS: Mapping[str, Document] = {}
