"""k8s-vgpu-monitor: how much each pod uses of its virtual GPUs, and the size of their memory."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import ceil, inf
from typing import NamedTuple

from podgpu import option
from podgpu.catalog.row import Kind, Worth
from podgpu.model import Snapshot
from podgpu.model.kube import grouped, total
from podgpu.option.value import OneOf, on_off
from podgpu.views.dialects import Dialect, PageTraffic
from podgpu.views.dialects._pod_tenant import PodTenant, card_names, mib, percent, pod_tenants
from podgpu.views.sample_format import cpp
from podgpu.views.series import Family, Labels

UTILIZATION, USED, TOTAL = "pod_gpu_sm_util", "pod_gpu_memory_used", "pod_total_gpu_memory"

# As in the README, with its wrong unit: memory is in MiB.
_HELP = {
    UTILIZATION: "GPU SM utilization per pod (Aggregated physical utilization)",
    USED: "GPU memory usage per pod (Aggregated physical usage, likely in Bytes)",
    TOTAL: "Total GPU memory per pod (Allocated vGPU memory based on ratio, likely in Bytes)",
}
_MULTIPLIED_HELP = {UTILIZATION: "GPU SM utilization per pod"}

BYTES, SCRAPES, LATENCIES = "exposer_transferred_bytes_total", "exposer_scrapes_total", "exposer_request_latencies"
_LATENCIES_HELP = "Latencies of serving metrics requests."
QUANTILES = (0.5, 0.9, 0.99)

# A pod's namespace and name.
PodName = tuple[str, str]


@dataclass(frozen=True, kw_only=True)
class VgpuMonitorOptions:
    gpu_id: str = option.DIALECTS.single(
        "--dialect.vgpu-monitor.gpu-id",
        help="What gpu_id is on /metrics/vgpu-monitor: the GPU's index, or its place among the pod's own.",
        parse=OneOf(("index", "slot")),
        default="index",
    )
    utilization: str = option.DIALECTS.single(
        "--dialect.vgpu-monitor.utilization",
        help="Utilization on /metrics/vgpu-monitor: of the whole GPU, or of the pod's share of it.",
        parse=OneOf(("physical", "multiplied")),
        default="physical",
    )
    namespace: str = option.DIALECTS.single(
        "--dialect.vgpu-monitor.namespace",
        help="Whether every pod on /metrics/vgpu-monitor has a namespace label. Without it, only a pod that came "
        "after another of its name has one.",
        parse=on_off,
        default="off",
    )


def families(snapshot: Snapshot, options: VgpuMonitorOptions) -> list[Family]:
    pods = _pods(snapshot)
    names = card_names(snapshot)
    multiplied = options.utilization == "multiplied"
    words = _HELP | _MULTIPLIED_HELP if multiplied else _HELP
    page = {name: Family.gauge(name, text, cpp) for name, text in words.items()}
    for pod, namespace in _namespaces(snapshot, pods, always=options.namespace == "on").items():
        for row in _by_slot(pods[pod]) if options.gpu_id == "slot" else _by_card(pods[pod], names):
            labels = _labels(row.gpu_id, namespace, pod)
            page[UTILIZATION].put(percent(row.multiplied if multiplied else row.sm_ratio), labels)
            page[USED].put(mib(row.used_bytes), labels)
            page[TOTAL].put(mib(row.total_bytes), labels)
    return [family for family in page.values() if family.samples]


class PodRow(NamedTuple):
    """What a pod has of a card or of a virtual GPU. Ratios are parts of the whole card. None is unknown."""

    gpu_id: str
    sm_ratio: float | None
    share: float | None
    used_bytes: float | None
    total_bytes: float | None

    @property
    def multiplied(self) -> float | None:
        return self.sm_ratio / self.share if self.sm_ratio is not None and self.share else None


def _pods(snapshot: Snapshot) -> dict[PodName, list[PodTenant]]:
    found = grouped(
        sorted(pod_tenants(snapshot), key=_order), lambda tenant: (tenant.container.namespace, tenant.container.pod)
    )
    return dict(sorted(found.items()))


def _order(tenant: PodTenant) -> tuple[int, int, int]:
    instance = tenant.instance
    place = (instance.mig.gpu_instance_id, instance.mig.compute_instance_id) if instance else (-1, -1)
    return tenant.gpu.index, *place


def _namespaces(snapshot: Snapshot, pods: Mapping[PodName, Sequence[PodTenant]], *, always: bool) -> dict[PodName, str]:
    """The namespace to show for each pod. Without it, two pods of the same name would be one series.

    Of such pods the first keeps its series as it is: a later pod must not change it.
    """
    started = {(pod.namespace, pod.name): pod.started_at for pod in snapshot.pods}
    first: dict[str, PodName] = {}
    for pod in sorted(pods, key=lambda pod: (_since(started.get(pod), pods[pod]), pod)):
        first.setdefault(pod[1], pod)
    return {pod: pod[0] if always or first[pod[1]] != pod else "" for pod in pods}


def _since(started: float | None, held: Iterable[PodTenant]) -> float:
    known = [started, *(tenant.tenant.held_since for tenant in held)]
    return min((moment for moment in known if moment is not None), default=inf)


def _by_card(held: Iterable[PodTenant], names: Mapping[str, str]) -> Iterator[PodRow]:
    """One row for all that a pod has on a card."""
    for uuid, here in grouped(held, lambda tenant: tenant.gpu.uuid).items():
        parts = [(tenant, claim) for tenant in here for claim in tenant.claims]
        yield PodRow(
            gpu_id=names[uuid],
            sm_ratio=total(tenant.card_ratio for tenant in here),
            share=total(tenant.share_of(claim) for tenant, claim in parts),
            used_bytes=total(tenant.memory_bytes for tenant in here),
            total_bytes=total(tenant.memory_of(claim) for tenant, claim in parts),
        )


def _by_slot(held: Sequence[PodTenant]) -> Iterator[PodRow]:
    """One row for each virtual GPU. Which of a device's is busy is not known, so each has its whole utilization."""
    devices = grouped(held, lambda tenant: tenant.uuid)
    parts = [(tenant, claim) for tenant in held for claim in sorted(tenant.claims, key=lambda claim: claim.device_id)]
    slots = Counter(tenant.uuid for tenant, _ in parts)
    for slot, (tenant, claim) in enumerate(parts):
        here = devices[tenant.uuid]
        used = total(tenant.memory_bytes for tenant in here)
        yield PodRow(
            gpu_id=str(slot),
            sm_ratio=total(tenant.card_ratio for tenant in here),
            share=tenant.share_of(claim),
            used_bytes=None if used is None else used / slots[tenant.uuid],
            total_bytes=tenant.memory_of(claim),
        )


def _labels(gpu_id: str, namespace: str, pod: PodName) -> Labels:
    if namespace:
        return Labels(("gpu_id", "namespace", "pod"), (gpu_id, *pod))
    return Labels(("gpu_id", "pod"), (gpu_id, pod[1]))


def served(traffic: PageTraffic) -> list[Family]:
    """What the HTTP library of the original tells of itself, in microseconds."""
    latencies = Family(LATENCIES, Kind.SUMMARY, _LATENCIES_HELP, Worth.DETAIL, writing=cpp)
    ordered = sorted(traffic.recent_seconds)
    for quantile in QUANTILES if ordered else ():
        rank = max(1, ceil(quantile * len(ordered)))
        latencies.put(ordered[rank - 1] * 1e6, Labels(("quantile",), (str(quantile),)))
    latencies.totals.update({"_sum": traffic.seconds * 1e6, "_count": float(traffic.requests)})
    return [
        _counter(BYTES, "Transferred bytes to metrics services", traffic.body_bytes),
        _counter(SCRAPES, "Number of times metrics were scraped", traffic.requests),
        latencies,
    ]


def _counter(name: str, help_text: str, value: float) -> Family:
    family = Family(name, Kind.COUNTER, help_text, Worth.DETAIL, writing=cpp)
    family.put(float(value), Labels((), ()))
    return family


DIALECT = Dialect(pages={"/metrics/vgpu-monitor": families}, options=VgpuMonitorOptions, traffic=served)
