"""Replays the recorded minutes of the workloads that a plan puts on one card."""

from collections.abc import Iterator, Sequence
from operator import add

from msgspec import Struct

from podgpu.catalog.mig_profiles import MigCard, MigProfile
from podgpu.insight.plan.placing import WHOLE_CARD, Demand
from podgpu.insight.slowdown import BusyNeed, Slowdown, TurnTaking, slowdowns
from podgpu.model.fit import WorkloadUse

FULL = 1.0 + 1e-6  # busy for more than all of the time, apart from what was rounded


class FullMinute(Struct, frozen=True, kw_only=True):
    """A step in which a card is too full. Both kinds of busy time are of all together, 1 is the whole card."""

    number: int
    missing_bytes: int = 0
    busy_least: float
    busy_most: float
    slowdown: Slowdown


class CardReplay(Struct, frozen=True, kw_only=True):
    full: int = 0  # minutes without enough memory
    slower_least: int = 0  # minutes with certainly more work than time
    slower_most: int = 0  # minutes with perhaps more
    worst: Slowdown = Slowdown()  # of any minute
    minutes: tuple[FullMinute, ...] = ()  # the worst ones, of those too full in memory or certainly in time


NOTHING_FULL = CardReplay()


def replay_shared(
    demands: Sequence[Demand], memory: int | None, turns: TurnTaking, most_minutes: int
) -> CardReplay:
    """Let workloads share a card's memory, and its time in turns. If its memory is not known, none is missing."""
    uses = [demand.use for demand in demands]
    if len(uses) < 2:
        return NOTHING_FULL
    most, least = (_sum([getattr(use.series, name) for use in uses]) for name in ("most", "least"))
    held = _sum([use.series.memory for use in uses])
    missing = [0 if memory is None else max(round(used) - memory, 0) for used in held]
    short = [number for number, lacks in enumerate(missing) if lacks]
    late = [number for number, busy in enumerate(least) if busy > FULL]
    worst = max(range(len(most)), key=most.__getitem__, default=None)
    if worst is None:
        return NOTHING_FULL
    listed = sorted({*short, *late}, key=lambda at: (-missing[at], -least[at], at))
    return CardReplay(
        full=len(short),
        slower_least=len(late),
        slower_most=sum(busy > FULL for busy in most),
        worst=_slowest(uses, worst, turns),
        minutes=tuple(
            FullMinute(
                number=number,
                missing_bytes=missing[number],
                busy_least=least[number],
                busy_most=most[number],
                slowdown=_slowest(uses, number, turns),
            )
            for number in listed[:most_minutes]
        ),
    )


def replay_instances(demands: Sequence[Demand], card: MigCard) -> CardReplay:
    """Let workloads run in instances, each with cores and memory of its own."""
    replays = [
        _replay_instance(demand.use, demand.profile, card)
        for demand in demands
        if demand.profile and demand.part != WHOLE_CARD
    ]
    return CardReplay(
        full=sum(replay.full for replay in replays),
        slower_most=sum(replay.slower_most for replay in replays),
        worst=max((replay.worst for replay in replays), key=lambda worst: worst.most, default=Slowdown()),
    )


def _replay_instance(use: WorkloadUse, profile: MigProfile, card: MigCard) -> CardReplay:
    """What fills no more cores than an instance has loses nothing. Kernels that fill the card take longer.

    Memory is slower, too: an instance has a part of the bandwidth.
    """
    cores = max(each.compute_slices for each in card.profiles) / profile.compute_slices
    longer = max(cores, card.memory_slices / profile.memory_slices)
    busiest = max(use.series.most, default=0.0)
    return CardReplay(
        full=sum(used > profile.memory_bytes for used in use.series.memory),
        slower_most=sum(busy * cores > FULL for busy in use.series.most),
        worst=Slowdown(1.0, 1 + max(busiest, 0.0) * (longer - 1)),
    )


def _sum(series: Sequence[Sequence[float]]) -> list[float]:
    """Add up minute by minute. What was not seen counts as no use: the coverage says how much that may be."""
    known: Iterator[Sequence[float]] = map(_known, series)
    total = list(next(known))
    for each in known:
        total = list(map(add, total, each))
    return total


def _known(series: Sequence[float]) -> Sequence[float]:
    return [max(value, 0) for value in series] if min(series, default=0) < 0 else series


def _slowest(uses: Sequence[WorkloadUse], number: int, turns: TurnTaking) -> Slowdown:
    """Return what the slowest of them loses: at least as much as all of them together have to do in a minute."""
    needs = [
        BusyNeed(max(use.series.least[number], 0.0), min(max(use.series.most[number], 0.0), 1.0))
        for use in uses
        if use.series.most[number] > 0
    ]
    found = slowdowns(needs, turns)
    most = max((slow.most for slow in found), default=1.0)
    least = max(1.0, sum(need.least for need in needs), *(slow.least for slow in found))
    return Slowdown(min(least, most), most)
