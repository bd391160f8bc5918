"""What a bill finds wrong with its own sums: more than cards can have done, and what two sides say differently."""

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from itertools import combinations

from podgpu.cluster.report.counters import CardKey, CounterKey, CounterScope, Measure, NodeKey
from podgpu.cluster.report.coverage import CardCoverage, common, seen
from podgpu.cluster.report.deduplication import DisputedTime
from podgpu.cluster.report.increases import CardPresence
from podgpu.cluster.store.client import Store
from podgpu.cluster.store.response import own_labels
from podgpu.cluster.store.targets import GIVE_JOB, MOST_WATTS, NodeTargets, ScrapeTarget, advice, several
from podgpu.insight.problem_kind import few
from podgpu.model import Dispute
from podgpu.model.kube import grouped
from podgpu.option.times import utc_text

# What was counted since the last scrape before the period is of the period, and that is looked for so far back.
SLACK_SECONDS = 3600.0
# A card may draw more than its limit for a moment; rounding and clocks take the rest.
LIMIT_FACTOR, TIME_FACTOR = 1.25, 1.001
_UNPLACED = "podgpu_unplaced_seconds_total"
_LIMIT = "podgpu_gpu_power_limit_watts"
_CLAIMING = "podgpu_gpu_info|podgpu_container_allocated_seconds_total"
STEPS, SHORTEST_STEP = 60, 60  # moments at which a card's limit is asked for, and seconds between two
_SECOND, _JOULE, _HOUR = 1_000_000, 1_000, 3600.0


async def power_limits(store: Store, start: float, end: float) -> dict[CardKey, float]:
    """Return the greatest power limit of each card within the period."""
    step = max(round((end - start) / STEPS), SHORTEST_STEP)
    query = f"max_over_time({store.select(_LIMIT)}[{round(end - start) + step}s:{step}s])"
    found: dict[CardKey, float] = {}
    for point in await store.points(query, end):
        labels = own_labels(point.labels)
        card = CardKey(*(labels.get(name, "") for name in CardKey._fields))
        found[card] = max(point.value, found.get(card, 0.0))
    return found


async def ignored_jobs(store: Store, targets: NodeTargets, start: float, end: float) -> tuple[str, ...]:
    """Return the jobs with series of podgpu that were not believed, as far as they were there at some moments."""
    step = max(round((end - start) / STEPS), SHORTEST_STEP)
    query = f"(group by (job) ({store.select_all(_CLAIMING)}))[{round(end - start) + step}s:{step}s]"
    said = {series.labels.get("job", "") for series in await store.series(query, end)}
    return tuple(sorted((said | targets.ignored) - targets.jobs.keys()))


async def unplaced(store: Store, targets: NodeTargets, start: float, end: float) -> tuple[str, ...]:
    """Say who held something on a card that nothing names, which is in no hour of the bill."""
    found: dict[str, float] = defaultdict(float)
    for point in await store.points(f"increase({store.select(_UNPLACED)}[{round(end - start)}s]) > 0", end):
        labels = own_labels(point.labels)
        if targets.is_believed(ScrapeTarget.of(point.labels), labels.get("node", "")):
            found[f"{labels.get('namespace', '')}/{labels.get('pod', '')}"] += point.value
    if not found:
        return ()
    hours = sum(found.values()) / _HOUR
    text = (
        f"the bill is incomplete: {few(sorted(found))} held GPUs, or parts of some, for {hours:.1f} h on cards that "
        "nothing names, which is in no hour of this bill; see `podgpu doctor` on the nodes"
    )
    return (text,)


def disputes_of_sums(
    inputs: Mapping[CounterKey, int],
    covered: Mapping[CardKey, CardCoverage],
    limits: Mapping[CardKey, float],
) -> Iterator[Dispute]:
    """Compare what was counted of each card with what a card can do in the time that it was seen."""
    sums: dict[tuple[CardKey, CounterScope, Measure], int] = defaultdict(int)
    for counter, amount in inputs.items():
        sums[counter.card, counter.scope, counter.measure] += amount
    for card, own in sorted(covered.items()):
        seconds = own.total.seen_us / _SECOND * TIME_FACTOR + SLACK_SECONDS
        # The card's own counter goes on while nobody sees it.
        whole = (own.total.seen_us + own.total.unseen_us + own.total.absent_us) / _SECOND + SLACK_SECONDS
        watts = limits.get(card, MOST_WATTS) * LIMIT_FACTOR
        held = sums[card, CounterScope.CONTAINER, Measure.HELD] / _SECOND
        busy = max(sums[card, scope, Measure.BUSY] for scope in (CounterScope.BOOKED, CounterScope.CONTAINER)) / _SECOND
        energy = max(sums[card, scope, Measure.ENERGY] for scope in CounterScope) / _JOULE
        for reason, what, sum_of, most, unit in (
            ("held", "was held for", held, seconds, "GPU-hours"),
            ("busy", "was busy for", busy, seconds, "hours"),
            ("energy", "used", energy, whole * watts, "kWh"),
        ):
            if sum_of > most:
                of_unit = 3.6e6 if unit == "kWh" else 3600.0
                yield Dispute(
                    reason=reason,
                    detail=f"GPU {card.uuid} of node {card.node} {what} {sum_of / of_unit:.2f} {unit}, where at most "
                    f"{most / of_unit:.2f} can be; {GIVE_JOB}",
                    **card._asdict(),
                )


def disputes_of_targets(disputed: Iterable[DisputedTime]) -> Iterator[Dispute]:
    """Name each node once, with the targets that do not agree."""
    by_node = grouped(disputed, lambda each: each.node)
    for (cluster, node), times in sorted(by_node.items()):
        targets = sorted(set[ScrapeTarget]().union(*(each.targets for each in times)))
        said = several(targets)
        ends = min(each.start for each in times), max(each.end for each in times)
        start, end = (utc_text(at, "seconds") for at in ends)
        yield Dispute(
            reason="targets",
            detail=f"{said} say different things of node {node} between {start} and {end}, and neither is counted "
            f"while both speak; {advice(targets)}",
            cluster=cluster,
            node=node,
            jobs=tuple(sorted({target.job for target in targets})),
        )


def disputes_of_jobs(targets: NodeTargets, named: Sequence[str]) -> Iterator[Dispute]:
    """Jobs that speak for different nodes may be several pools, or anybody's page: only the user can tell."""
    jobs = targets.jobs
    if not named and len({frozenset(nodes) for nodes in jobs.values()}) > 1:
        said = ", ".join(f"{job or '(none)'} (nodes: {len(nodes)})" for job, nodes in jobs.items())
        yield Dispute(reason="jobs", detail=f"several scrape jobs speak: {said}; {GIVE_JOB}", jobs=tuple(jobs))


def disputes_of_places(presence: Mapping[CardKey, CardPresence], demo: Collection[NodeKey]) -> Iterator[Dispute]:
    """No card is in two nodes at once; those of demos are all the same."""
    real = [card for card in presence if (card.cluster, card.node) not in demo]
    for (cluster, uuid), cards in sorted(grouped(real, lambda card: (card.cluster, card.uuid)).items()):
        for one, other in combinations(sorted(cards), 2):
            both = common(seen(presence[one]), seen(presence[other]))
            if sum(end - start for start, end in both) > SLACK_SECONDS:
                yield Dispute(
                    reason="place",
                    detail=f"GPU {uuid} is in node {one.node} and in node {other.node} at once; {GIVE_JOB}",
                    cluster=cluster,
                    node=one.node,
                    uuid=uuid,
                )
