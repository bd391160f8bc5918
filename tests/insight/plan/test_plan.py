"""Another layout for the recorded minutes: how many cards, and what would have gone wrong."""

from array import array
from collections.abc import Sequence

import pytest

from podgpu.errors import UserError
from podgpu.insight.fit.statement import FitPeriodFacts
from podgpu.insight.plan.placing import layout_of
from podgpu.insight.plan.statement import plan_statement
from podgpu.model.fit import (
    INSTANCE,
    UNSEEN,
    WHOLE,
    CardType,
    HeldPart,
    PlanPool,
    PlanStatement,
    PoolFacts,
    UseSeries,
    WorkloadName,
    WorkloadUse,
)
from podgpu.model.insight import Prices

GIB = 1 << 30
DAY = 1440
H200, L40S = (
    CardType(model="NVIDIA H200", memory_bytes=140 * GIB),
    CardType(model="NVIDIA L40S", memory_bytes=45 * GIB),
)
WHOLE_CARD = HeldPart(kind=WHOLE, ratio=1.0)
FACTS = FitPeriodFacts(start=0.0, end=DAY * 60.0)
NOTHING_KNOWN = PoolFacts()


def use(
    name: str,
    gib: float,
    busy: float | Sequence[float],
    *,
    card: CardType = H200,
    held: HeldPart = WHOLE_CARD,
    replicas: int = 1,
    least: float | None = None,
    memory: Sequence[int] | None = None,
    watched: float = DAY * 60.0,
) -> WorkloadUse:
    most = array("f", [busy] * DAY if isinstance(busy, float) else busy)
    return WorkloadUse(
        workload=WorkloadName("lab", "Deployment", name, "main", "", card.model),
        card=card,
        held=held,
        series=UseSeries(
            memory=array("q", memory or [int(gib * GIB)] * DAY),
            most=most,
            least=most[:] if least is None else array("f", [least] * DAY),
        ),
        replicas=replicas,
        watched_seconds=watched,
        seen_ratio=1.0,
    )


def planned(
    text: str, *uses: WorkloadUse, facts: FitPeriodFacts = FACTS, pool: PoolFacts = NOTHING_KNOWN
) -> PlanStatement:
    return plan_statement(uses, facts, layout_of(text), {("", use.card.model): pool for use in uses})


def pool_of(text: str, *uses: WorkloadUse, pool: PoolFacts = NOTHING_KNOWN) -> PlanPool:
    (found,) = planned(text, *uses, pool=pool).pools
    return found


def parts(pool: PlanPool) -> list[list[tuple[str, str, int | None]]]:
    return [[(place.workload.name, place.part, place.start) for place in card] for card in pool.layout]


def test_workloads_are_placed_in_the_smallest_profiles_that_hold_them() -> None:
    small = use("small", 10, 0.1, replicas=4)
    pool = pool_of("mig", use("large", 50, 0.4), small)
    assert (pool.cards_now, pool.cards, pool.least_cards, pool.above_least) == (5, 1, 1, 0.0)
    assert {part for _, part, _ in parts(pool)[0]} == {"1g.18gb", "3g.71gb"}
    assert sorted(start for _, part, start in parts(pool)[0] if part == "1g.18gb" and start is not None) == [
        0,
        1,
        2,
        3,
    ]
    assert (pool.full_minutes, pool.slower_minutes_most, pool.free_ratio, pool.useless_ratio) == (0, 0, 0, 0)


def test_only_the_profiles_that_were_named_are_used_and_what_fits_none_keeps_its_card() -> None:
    pool = pool_of("mig:3g.71gb", use("large", 100, 0.5), use("small", 10, 0.1))
    assert sorted(part for card in parts(pool) for _, part, _ in card) == ["3g.71gb", "whole card"]
    assert (pool.cards, pool.whole) == (2, 1)
    assert pool.free_ratio == 0.25 and pool.useless_ratio == 0.0  # the other half takes a second 3g.71gb


def test_a_slice_that_no_profile_can_take_is_useless() -> None:
    pool = pool_of("mig:1g.18gb", use("small", 10, 0.1, replicas=7))
    assert (pool.cards, pool.free_ratio, pool.useless_ratio) == (1, 0.125, 0.125)


def test_what_was_not_watched_for_a_day_keeps_what_it_holds() -> None:
    instance = HeldPart(kind=INSTANCE, ratio=0.25, profile="1g.35gb", memory_limit_bytes=32 * GIB)
    fresh = use("fresh", 1, 0.01, held=instance, watched=3600.0)
    whole = use("whole", 1, 0.01, watched=3600.0)
    assert sorted(part for card in parts(pool_of("mig", fresh, whole)) for _, part, _ in card) == [
        "1g.35gb",
        "whole card",
    ]


def test_cards_without_mig_are_left_as_they_are_and_named() -> None:
    found = planned("mig", use("video", 10, 0.1, card=L40S), use("small", 10, 0.1))
    assert [pool.model for pool in found.pools] == ["NVIDIA H200"]
    assert found.notices == ("NVIDIA L40S has no such MIG profile, and is left as it is",)


def test_time_slices_limit_the_number_and_memory_must_fit_side_by_side() -> None:
    light = use("light", 10, 0.05, replicas=9)
    assert pool_of("timeslice:4", light).cards == 3
    assert pool_of("timeslice:16", light).cards == 1
    assert (
        pool_of("timeslice:4", use("heavy", 60, 0.1, replicas=4)).cards == 4
    )  # with headroom, two need more than a card


def test_minutes_with_more_work_than_time_are_counted_by_both_bounds() -> None:
    office = [0.9 if 480 <= minute < 540 else 0.1 for minute in range(DAY)]
    sure, unsure = use("sure", 20, office), use("unsure", 20, office, least=0.05)
    pool = pool_of("timeslice:2", sure, unsure)
    assert (pool.slower_minutes_least, pool.slower_minutes_most, pool.full_minutes) == (0, 60, 0)
    both = pool_of("timeslice:2", sure, use("also", 20, office))
    assert both.slower_minutes_least == both.slower_minutes_most == 60
    assert 1.79 <= both.slowdown_least < both.slowdown_most < 13
    assert {minute.at for minute in both.minutes} == {60.0 * minute for minute in range(480, 540)}
    assert not any(minute.missing_bytes for minute in both.minutes)


def test_the_log_of_switches_narrows_the_range() -> None:
    uses = use("a", 20, 0.6), use("b", 20, 0.6)
    worst, logged = (
        pool_of("timeslice:2", *uses),
        pool_of("timeslice:2", *uses, pool=PoolFacts(switch_seconds=1e-5)),
    )
    assert logged.slowdown_least == worst.slowdown_least
    assert logged.slowdown_most < worst.slowdown_most


def test_shares_hold_memory_and_busy_time() -> None:
    pool = pool_of("parts", use("a", 20, 0.45, replicas=3))
    assert (pool.cards, pool.least_cards) == (2, 2)  # by busy time: two of 45 % on a card
    assert pool.slower_minutes_most == 0


def test_fewer_cards_lack_memory_in_the_minutes_in_which_all_had_much() -> None:
    day = [(90 if minute < 30 else 20) * GIB for minute in range(DAY)]
    night = [(90 if minute < 10 else 20) * GIB for minute in range(DAY)]
    uses = use("a", 0, 0.2, memory=day), use("b", 0, 0.2, memory=night)
    pool = pool_of("cards:1", *uses, pool=PoolFacts(cards=4))
    assert (pool.cards_now, pool.cards, pool.least_cards) == (4, 1, 2)
    assert pool.full_minutes == len(pool.minutes) == 10
    assert {minute.missing_bytes for minute in pool.minutes} == {40 * GIB}
    assert pool_of("cards:-50%", *uses, pool=PoolFacts(cards=4)).cards == 2


def test_a_workload_is_alone_on_its_card_where_there_are_more_cards_than_it_takes() -> None:
    pool = pool_of("cards:999999999", use("a", 20, 0.2, replicas=3))
    assert (pool.cards, pool.full_minutes, pool.slower_minutes_most) == (3, 0, 0)


def test_what_is_saved_is_counted_in_energy_and_money() -> None:
    facts = FitPeriodFacts(start=0.0, end=DAY * 60.0, prices=Prices(currency="EUR", gpu_hour={"*H200*": 3.5}))
    (pool,) = planned(
        "mig", use("small", 10, 0.1, replicas=7), facts=facts, pool=PoolFacts(cards=10, idle_watts=75.0)
    ).pools
    assert (pool.cards_now, pool.cards) == (10, 1)
    assert (pool.idle_watts, pool.saved_joules, pool.saved_per_hour) == (675.0, 675.0 * DAY * 60, 31.5)
    (unknown,) = planned("mig", use("small", 10, 0.1)).pools
    assert unknown.idle_watts is unknown.saved_joules is unknown.saved_per_hour is None


def test_a_minute_that_was_not_seen_counts_as_no_use() -> None:
    gap = [UNSEEN if minute < 100 else 0.8 for minute in range(DAY)]
    pool = pool_of("timeslice:2", use("a", 20, gap), use("b", 20, 0.8))
    assert pool.slower_minutes_least == DAY - 100


@pytest.mark.parametrize(
    "text",
    [
        "",
        "mig:9g.1gb",
        "timeslice",
        "timeslice:1",
        "timeslice:1000",
        f"timeslice:{'9' * 5000}",
        "parts:2",
        "cards:0",
        "cards:+20%",
        "cards:-100%",
        "mps",
    ],
)
def test_a_layout_that_there_is_not_is_refused_with_what_to_give(text: str) -> None:
    with pytest.raises(UserError, match="give"):
        layout_of(text)


def test_no_workload_makes_no_plan() -> None:
    assert planned("mig").pools == ()


@pytest.mark.parametrize(("size", "full"), [(30 * GIB, DAY), (None, 0)])
def test_a_card_whose_memory_is_not_known_is_not_said_to_be_too_small(size: int | None, full: int) -> None:
    card = CardType(model="unheard of", memory_bytes=size)
    pool = pool_of("cards:1", use("a", 20, 0.1, card=card), use("b", 20, 0.1, card=card))
    assert pool.full_minutes == full
