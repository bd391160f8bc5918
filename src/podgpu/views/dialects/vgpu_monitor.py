"""k8s-vgpu-monitor: what each pod uses of its virtual GPUs, and how much memory they have."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from podgpu.catalog.row import Kind, Worth
from podgpu.catalog.units import MIB
from podgpu.config import Config
from podgpu.model import Claim, Instance, Snapshot
from podgpu.views.dialects import Document, Families
from podgpu.views.dialects._holding import Holding, holdings, percent
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

    gpu_id: int
    sm_ratio: float | None
    share: float | None
    used_bytes: float | None
    total_bytes: float | None

    @property
    def multiplied(self) -> float | None:
        return self.sm_ratio / self.share if self.sm_ratio is not None and self.share else None


def families(snapshot: Snapshot, config: Config) -> list[Family]:
    pods = _pods(snapshot)
    rows_of = _by_slot if config.dialect_vgpu_monitor_gpu_id == "slot" else _by_index
    multiplied = config.dialect_vgpu_monitor_utilization == "multiplied"
    words = _HELP | _MULTIPLIED_HELP if multiplied else _HELP
    page = {name: Family(name, Kind.GAUGE, text, Worth.CORE) for name, text in words.items()}
    for pod, namespace in _namespaces(pods, always=config.dialect_vgpu_monitor_namespace == "on").items():
        for row in rows_of(pods[pod]):
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


def _by_index(held: Sequence[Holding]) -> Iterator[Row]:
    """Make one row of all that a pod has on a card."""
    for index in dict.fromkeys(one.device.gpu.index for one in held):
        here = [one for one in held if one.device.gpu.index == index]
        parts = [(one, claim) for one in here for claim in one.claims]
        yield Row(
            gpu_id=index,
            sm_ratio=_sum(_sm_ratio(one) for one in here),
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
            gpu_id=slot,
            sm_ratio=_sum(_sm_ratio(one) for one in here),
            share=_share(holding, claim),
            used_bytes=None if used is None else used / beside[holding.uuid],
            total_bytes=_size(holding, claim),
        )


def _sum(values: Iterable[float | None]) -> float | None:
    """Add up. Of nothing there is no sum, and one of which a part is unknown is unknown."""
    listed = list(values)
    known = [value for value in listed if value is not None]
    return sum(known) if known and len(known) == len(listed) else None


def _sm_ratio(holding: Holding) -> float | None:
    """Of the card. The activity on a MIG instance is told for all compute instances of its GPU instance together."""
    own = holding.instance
    place = own.mig.gpu_instance_id if own else None
    there = [one for one in holding.device.instances if one.mig.gpu_instance_id == place]
    return _of_card(holding.sm_ratio, holding, there)


def _share(holding: Holding, claim: Claim) -> float | None:
    return _of_card(claim.share, holding, [holding.instance] if holding.instance else [])


def _of_card(ratio: float | None, holding: Holding, instances: Sequence[Instance]) -> float | None:
    if not holding.mig or ratio is None:
        return ratio
    size, whole = _sum(one.mig.multiprocessors for one in instances), holding.device.gpu.multiprocessors
    return ratio * min(1.0, size / whole) if size and whole else None


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


def _labels(gpu_id: int, namespace: str, pod: Pod) -> str:
    if namespace:
        return labels_text(("gpu_id", "namespace", "pod"), (str(gpu_id), *pod))
    return labels_text(("gpu_id", "pod"), (str(gpu_id), pod[1]))


PAGES: Mapping[str, Families] = {"/metrics/vgpu-monitor": families}
DOCUMENTS: Mapping[str, Document] = {}
