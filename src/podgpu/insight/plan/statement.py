"""Makes the statement of a plan: for each model of cards, how many are needed, and what would have gone wrong."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from heapq import nsmallest
from math import ceil
from typing import NamedTuple

from podgpu.catalog.mig_profiles import mig_card, profiles_of
from podgpu.insight.fit.statement import FitPeriodFacts
from podgpu.insight.packing import Improver
from podgpu.insight.plan.placing import PlacedPool, PlacingPool
from podgpu.insight.plan.replay import (
    USUAL_TURNS,
    CardReplay,
    FullMinute,
    Slowdown,
    TurnTaking,
    replay_instances,
    replay_shared,
)
from podgpu.model.fit import (
    MIG,
    CardType,
    PlanLayout,
    PlanMinute,
    PlanPlace,
    PlanPool,
    PlanStatement,
    PoolFacts,
    PoolKey,
    WorkloadUse,
)
from podgpu.model.kube import total_of_known

MOST_MINUTES = 100  # of a pool are named


class _Question(NamedTuple):
    period: FitPeriodFacts
    layout: PlanLayout
    improve: Improver | None


def plan_statement(
    uses: Sequence[WorkloadUse],
    facts: FitPeriodFacts,
    layout: PlanLayout,
    pools: Mapping[PoolKey, PoolFacts],
    improve: Improver | None = None,
) -> PlanStatement:
    """`improve` makes better plans of shares, if a solver is installed."""
    question = _Question(facts, layout, improve)
    of_pool: dict[PoolKey, list[WorkloadUse]] = defaultdict(list)
    left_out: set[str] = set()
    for use in uses:
        if layout.kind == MIG and not _has_profiles(use.card.model, layout):
            left_out.add(use.card.model)
        else:
            of_pool[use.workload.cluster, use.card.model].append(use)
    prices = facts.prices.at(facts.end) if facts.prices else None
    return PlanStatement(
        start=facts.start,
        end=facts.end,
        plan=layout,
        terms=facts.terms,
        pools=tuple(_pool(key, used, pools.get(key, PoolFacts()), question) for key, used in sorted(of_pool.items())),
        step_seconds=facts.step,
        coverage=facts.coverage,
        currency=prices.currency if prices else "",
        demo=facts.demo,
        notices=(
            *facts.notices,
            *(
                f"{model or 'a card of unknown model'} has no such MIG profile, and is left as it is"
                for model in sorted(left_out)
            ),
        ),
    )


def _has_profiles(model: str, layout: PlanLayout) -> bool:
    names = {profile.name for profile in profiles_of(model)}
    return bool(names.intersection(layout.profiles) if layout.profiles else names)


def _pool(key: PoolKey, uses: Sequence[WorkloadUse], facts: PoolFacts, question: _Question) -> PlanPool:
    period, layout, improve = question
    (cluster, model), sizes = key, [use.card.memory_bytes for use in uses if use.card.memory_bytes]
    card = CardType(model=model, memory_bytes=min(sizes, default=None))
    held = ceil(total_of_known(use.gpus for use in uses) or 0.0)
    now = max(held, facts.cards or 0)
    placed = PlacingPool(card, layout, period.terms, period.step, improve).placed(uses, now)
    replays = _replays(placed, card, layout, facts)
    saved = now - placed.packing.cards
    price = period.prices.at(period.end).of(model) if period.prices else None
    watts = None if facts.idle_watts is None else facts.idle_watts * saved
    worst = [replay.worst for replay in replays] or [Slowdown()]
    return PlanPool(
        cluster=cluster,
        model=model,
        replicas=sum(use.replicas for use in uses),
        whole=placed.whole,
        cards_now=now,
        cards=placed.packing.cards,
        least_cards=placed.packing.least_cards,
        above_least=placed.packing.above_least,
        solver=placed.packing.solver,
        full_minutes=sum(replay.full for replay in replays),
        slower_minutes_least=sum(replay.slower_least for replay in replays),
        slower_minutes_most=sum(replay.slower_most for replay in replays),
        slowdown_least=max(each.least for each in worst),
        slowdown_most=max(each.most for each in worst),
        free_ratio=placed.free_ratio,
        useless_ratio=placed.useless_ratio,
        idle_watts=watts,
        saved_joules=None if watts is None else watts * (period.end - period.start),
        saved_per_hour=None if price is None else price * saved,
        minutes=_minutes(placed, replays, period),
        layout=tuple(
            tuple(PlanPlace(workload=demand.use.workload, part=demand.part, start=start) for demand, start in demands)
            for demands in placed.cards
        ),
    )


def _replays(placed: PlacedPool, card: CardType, layout: PlanLayout, facts: PoolFacts) -> list[CardReplay]:
    mig = mig_card(card.model)
    turns = USUAL_TURNS if facts.switch_seconds is None else TurnTaking(switch_seconds=facts.switch_seconds)
    cards = [[demand for demand, _ in demands] for demands in placed.cards]
    if layout.kind == MIG:
        return [replay_instances(demands, mig) for demands in cards] if mig else []
    return [replay_shared(demands, card.memory_bytes, turns, MOST_MINUTES) for demands in cards]


def _minutes(placed: PlacedPool, replays: Sequence[CardReplay], period: FitPeriodFacts) -> tuple[PlanMinute, ...]:
    found = [(card, minute) for card, replay in enumerate(replays) for minute in replay.minutes]
    return tuple(
        PlanMinute(
            at=period.start + period.step * minute.number,
            card=card,
            workloads=tuple(sorted({demand.use.workload for demand, _ in placed.cards[card]})),
            missing_bytes=minute.missing_bytes,
            busy_least=minute.busy_least,
            busy_most=minute.busy_most,
            slowdown_least=minute.slowdown.least,
            slowdown_most=minute.slowdown.most,
        )
        for card, minute in nsmallest(MOST_MINUTES, found, key=_rank)
    )


def _rank(each: tuple[int, FullMinute]) -> tuple[float, float, int, int]:
    card, minute = each
    return -minute.missing_bytes, -minute.busy_least, card, minute.number
