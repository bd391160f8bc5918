"""What each container held of which card, as of its last sample in a store; and how a pod spec requests such a part."""

import asyncio
from collections.abc import Mapping
from functools import cache

from podgpu import sharing
from podgpu.cluster.fit.workload_use import FitHolder, HolderFacts
from podgpu.cluster.report.counters import CardKey, PodKey, card_models, card_of
from podgpu.cluster.report.grouping import Grouping, as_label
from podgpu.cluster.report.queries import CounterQueries, TimeWindow
from podgpu.cluster.store.client import Store
from podgpu.cluster.store.response import Point, own_labels
from podgpu.cluster.store.targets import NodeTargets
from podgpu.model.fit import INSTANCE, PORTION, TIME_SLICE, WHOLE, CardType, HeldPart, WantedPart, WorkloadName

_CONTAINER, _GPU, _MIG = "podgpu_container_", "podgpu_gpu_", "podgpu_mig_"
_LIMITS, _GPUS = "kube_pod_container_resource_limits", 'resource!~"cpu|memory|ephemeral_storage|hugepages.*"'
NEARLY_ALL = 0.999  # of a card: shares are rounded


def holder_of(labels: Mapping[str, str]) -> FitHolder | None:
    """Return None where the labels name no pod on a card."""
    own = own_labels(labels)
    card = card_of(own)
    if card is None or not own.get("pod"):
        return None
    return FitHolder(card, *(own.get(name, "") for name in ("mig", "namespace", "pod", "container")))


def held_part(
    *,
    ratio: float | None,
    memory_limit_bytes: int | None,
    profile: str = "",
    system: str = "",
) -> HeldPart:
    if profile:
        kind = INSTANCE
    elif ratio is not None and ratio >= NEARLY_ALL:
        kind = WHOLE
    else:
        kind = TIME_SLICE if memory_limit_bytes is None else PORTION
    return HeldPart(kind=kind, ratio=ratio, profile=profile, memory_limit_bytes=memory_limit_bytes, system=system)


class HolderQueries:
    """Asks the store about all containers that held a part of a card within the period."""

    def __init__(self, store: Store, window: TimeWindow) -> None:
        self._store = store
        self._window = window
        self._targets = targets = NodeTargets()
        self._pods = CounterQueries(store, (), Grouping("workload").facts, targets)

    async def read(self) -> dict[FitHolder, HolderFacts]:
        infos = await self._over("last_over_time", f"{_GPU}info")
        self._targets.note(point.labels for point in infos)
        pods = await self._pods.pods(self._window, ())
        instances = await self._over("last_over_time", f"{_MIG}memory_total_bytes")
        models = card_models(infos)
        profiles = {
            own.get("mig", ""): (own.get("profile", ""), round(point.value))
            for point in instances
            if (own := own_labels(point.labels))
        }
        ratios, memory, limits = await asyncio.gather(
            *map(self._of_holders, ("allocated_ratio", "memory_used_bytes", "memory_limit_bytes"))
        )
        totals, bandwidth = await asyncio.gather(
            self._of_cards("last_over_time", "memory_total_bytes"),
            self._of_cards("quantile_over_time", "dram_active_ratio", "0.99, "),
        )
        systems = await self._systems()
        found: dict[FitHolder, HolderFacts] = {}
        for holder in {*ratios, *memory}:
            profile, size = profiles.get(holder.mig, ("", None))
            limit = limits.get(holder)
            total, model = totals.get(holder.card), models.get(holder.card, "")
            found[holder] = HolderFacts(
                workload=_workload(holder, model, pods),
                card=CardType(model=model, memory_bytes=None if total is None else round(total)),
                held=held_part(
                    ratio=ratios.get(holder),
                    memory_limit_bytes=size if limit is None else round(limit),
                    profile=profile,
                    system=systems.get((holder.namespace, holder.pod, holder.container), ""),
                ),
                dram_ratio=None if holder.mig else bandwidth.get(holder.card),
            )
        return found

    async def _systems(self) -> dict[tuple[str, ...], str]:
        """Return the sharing system of each container that requests a part of a card, by kube-state-metrics."""
        found: dict[tuple[str, ...], str] = {}
        for point in await self._over("last_over_time", _LIMITS, matcher=_GPUS):
            own = own_labels(point.labels)
            if system := system_of(own.get("resource", "")):
                found[tuple(own.get(name, "") for name in ("namespace", "pod", "container"))] = system
        return found

    async def _of_holders(self, name: str) -> dict[FitHolder, float]:
        points = await self._over("last_over_time", f"{_CONTAINER}{name}")
        return {holder: point.value for point in points if (holder := holder_of(point.labels))}

    async def _of_cards(self, function: str, name: str, before: str = "") -> dict[CardKey, float]:
        points = await self._over(function, f"{_GPU}{name}", before)
        return {card: point.value for point in points if (card := card_of(point.labels))}

    async def _over(self, function: str, metric: str, before: str = "", matcher: str = "") -> list[Point]:
        series = f"{self._store.select(metric, matcher)}{self._window.range}"
        return await self._store.points(f"{function}({before}{series})", self._window.end)


def _workload(holder: FitHolder, model: str, pods: Mapping[PodKey, list[dict[str, str]]]) -> WorkloadName:
    key = PodKey(holder.card.cluster, holder.card.node, holder.namespace, holder.pod)
    last = pods.get(key, [{}])[-1]
    return WorkloadName(
        holder.namespace,
        last.get("workload_kind", "") or "Pod",
        last.get("workload_name", "") or holder.pod,
        holder.container,
        holder.card.cluster,
        model,
    )


def write_part(kind: str, system: str, wanted: WantedPart) -> str:
    """Return lines of YAML, or nothing if it is unknown how to request the part. Only portions depend on the system."""
    for each in sharing.systems():
        if each.request and each.request.kind == kind and (kind != PORTION or each.name == system):
            return each.request.lines(wanted)
    return ""


@cache
def system_of(resource: str) -> str:
    """Return the system of a resource, which kube-state-metrics calls `nvidia_com_gpu` and the like; empty if none."""
    signs = ((each.name, as_label(sign)) for each in sharing.systems() if each.request for sign in each.signs)
    return next((name for name, sign in signs if resource.startswith(sign)), "")
