"""Reads from a recording of a node or a cluster what each container held, and what it used minute by minute."""

from collections import defaultdict
from collections.abc import Iterable, Iterator

from msgspec import Struct, field

from podgpu.cluster.fit.claims import held_part
from podgpu.cluster.fit.seen_time import seen_ratio
from podgpu.cluster.fit.workload_use import (
    STEPS,
    FitHolder,
    FitPeriod,
    HolderFacts,
    HolderMinutes,
    PeriodUse,
    WorkloadUseBuilder,
    counter_ratios,
)
from podgpu.cluster.report.counters import CardKey, NodeKey
from podgpu.cluster.report.coverage import GpuEvidence
from podgpu.model import Card, Cluster, Snapshot, Tenant, value_of
from podgpu.model.fit import CardType, WorkloadName

_MICRO = 1_000_000


class _HolderRecord(Struct):
    """By the number of the minute: the peak of memory, and the counters at its end."""

    facts: HolderFacts
    memory: dict[int, float] = field(default_factory=dict)
    most: dict[int, float] = field(default_factory=dict)
    least: dict[int, float] = field(default_factory=dict)


def recorded_use(moments: Iterable[Cluster]) -> PeriodUse:
    """`moments` are in order of time."""
    step = STEPS[0]
    holders: dict[FitHolder, _HolderRecord] = {}
    nodes: dict[NodeKey, set[int]] = defaultdict(set)
    cards: set[CardKey] = set()
    first, last, is_demo = 0, 0, False
    for cluster in moments:
        is_demo = is_demo or cluster.demo
        last = int(cluster.taken_at) // step
        first = first or last
        for node in cluster.nodes:
            if node.snapshot:
                key = node.cluster, node.bare_name
                nodes[key].add(last - first)
                cards |= {CardKey(*key, card.gpu.uuid) for card in node.snapshot.cards}
                _note(holders, key, node.snapshot, last - first)
    period = FitPeriod(first * step, (last + 1) * step, step)
    facts = {holder: record.facts for holder, record in holders.items()}
    builder = WorkloadUseBuilder(facts, period.steps, step)
    for key, minutes in nodes.items():
        builder.add_node(key, minutes)
    for holder, record in sorted(holders.items(), key=lambda each: each[0]):
        busy = [dict(counter_ratios(sorted(own.items()), step)) for own in (record.most, record.least)]
        builder.add(holder, HolderMinutes(record.memory, *busy))
    seen = seen_ratio(period, builder.scraped, cards, GpuEvidence())
    return PeriodUse(period, list(builder.uses()), is_demo, seen, len(holders))


def _note(holders: dict[FitHolder, _HolderRecord], node: NodeKey, snapshot: Snapshot, minute: int) -> None:
    for holder, card, tenant in _tenants(node, snapshot):
        facts = _facts(holder, card, tenant)
        record = holders.setdefault(holder, _HolderRecord(facts))
        record.facts = facts
        booking = tenant.booking
        if booking.memory_bytes is not None:
            record.memory[minute] = max(record.memory.get(minute, 0.0), float(booking.memory_bytes))
        if booking.bookable and booking.band is not None:
            record.most[minute] = booking.likely_most_busy_us / _MICRO
            record.least[minute] = booking.likely_least_busy_us / _MICRO


def _tenants(node: NodeKey, snapshot: Snapshot) -> Iterator[tuple[FitHolder, Card, Tenant]]:
    for card in snapshot.cards:
        for tenant in card.tenants:
            who = tenant.container
            if who.pod and tenant.claims:
                key = CardKey(*node, card.gpu.uuid)
                yield FitHolder(key, tenant.mig, who.namespace, who.pod, who.container), card, tenant


def _facts(holder: FitHolder, card: Card, tenant: Tenant) -> HolderFacts:
    instance = next((each for each in card.instances if each.mig.uuid == tenant.mig), None) if tenant.mig else None
    size = value_of(instance.readings, "memory_total_bytes") if instance else None
    total, limit = value_of(card.readings, "memory_total_bytes"), tenant.booking.memory_limit_bytes
    workload = tenant.workload
    return HolderFacts(
        workload=WorkloadName(
            holder.namespace,
            workload.kind if workload else "Pod",
            workload.name if workload else holder.pod,
            holder.container,
            holder.card.cluster,
            card.gpu.model,
        ),
        card=CardType(model=card.gpu.model, memory_bytes=None if total is None else round(total)),
        held=held_part(
            ratio=tenant.booking.allocated_ratio,
            memory_limit_bytes=round(size) if limit is None and size is not None else limit,
            profile=instance.mig.profile if instance else "",
            system=tenant.claims[0].system,
        ),
    )
