"""Replays the recorded minutes of workloads that a plan puts on one card, to see how much slower they would be.

It is known which part of each minute a workload was busy while it was alone. It is not known when, or in how large
pieces, so the range is wide. What holds whatever they do:

* A card has no more than all of its time. What others certainly use of it is not left for a workload.
* A workload waits only while others run or contexts are switched. Others do not run for longer than they did alone.
* The driver lets each run in turn, for a slice of time at most. A workload that waits for the end of each small piece
  of its work gives up its turn after each, and then waits for a whole slice of each of the others.

A slowdown is of work done over time: 2 means that the same work takes twice as long. It says nothing about the latency
of a single request.
"""

from collections.abc import Sequence

from msgspec import Struct

from podgpu.catalog.mig_profiles import MigCard, MigProfile
from podgpu.insight.fit.sizes import summed
from podgpu.insight.plan.placing import WHOLE_CARD, Demand
from podgpu.model.fit import WorkloadUse

FULL = 1.0 + 1e-6  # busy for more than all of the time, apart from what was rounded


class BusyNeed(Struct, frozen=True):
    """Which part of the time a workload is busy when it is alone, from 0 to 1."""

    least: float
    most: float


class Slowdown(Struct, frozen=True):
    """How many times as long the same work takes. 1 is no loss."""

    least: float = 1.0
    most: float = 1.0


class TurnTaking(Struct, frozen=True):
    """How contexts take turns on a card, as measured on an H200: docs/fit.md."""

    slice_seconds: float = 2.1e-3  # a turn at most, while others wait
    switch_seconds: float = 95e-6  # from one context to the next
    piece_seconds: float = 200e-6  # a piece of work that is waited for, at least


USUAL_TURNS = TurnTaking()


def slowdowns(needs: Sequence[BusyNeed], turns: TurnTaking = USUAL_TURNS) -> tuple[Slowdown, ...]:
    """Return the slowdown of each of those that share a card."""
    most = [_most(number, needs, turns) for number in range(len(needs))]
    done = [need.least / slowest for need, slowest in zip(needs, most, strict=True)]
    return tuple(
        Slowdown(_least(need, sum(done) - own, slowest), slowest)
        for need, own, slowest in zip(needs, done, most, strict=True)
    )


def _most(number: int, needs: Sequence[BusyNeed], turns: TurnTaking) -> float:
    need, others = needs[number], [*needs[:number], *needs[number + 1 :]]
    # For each piece of work of another there is a switch to it, and one back.
    waits = sum(other.most for other in others) * (1 + 2 * turns.switch_seconds / turns.piece_seconds)
    round_trip = len(others) * turns.slice_seconds + (len(others) + 1) * turns.switch_seconds
    by_turns = 1 + need.most * round_trip / turns.piece_seconds if others else 1.0
    return min(1 / (1 - waits), by_turns) if waits < 1 else by_turns


def _least(need: BusyNeed, done_by_others: float, most: float) -> float:
    left = 1 - done_by_others
    return min(max(1.0, need.least / left), most) if left > 0 else most


class FullMinute(Struct, frozen=True, kw_only=True):
    """A step in which a card is too full. Busy time is the sum over its workloads; 1 is the whole card."""

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


def replay_shared(demands: Sequence[Demand], memory: int | None, turns: TurnTaking, most_minutes: int) -> CardReplay:
    """Let workloads share a card's memory, and take turns. If the size of its memory is not known, none is missing."""
    uses = [demand.use for demand in demands]
    if len(uses) < 2:
        return NOTHING_FULL
    most, least = (summed([getattr(use.series, name) for use in uses]) for name in ("most", "least"))
    held = summed([use.series.memory for use in uses])
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
    """Kernels that fill no more cores than the instance has lose nothing. Those that fill the card take longer.

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


def _slowest(uses: Sequence[WorkloadUse], number: int, turns: TurnTaking) -> Slowdown:
    """Return the slowdown of the slowest: at least the sum of what all of them have to do in the minute."""
    needs = [
        BusyNeed(max(use.series.least[number], 0.0), min(max(use.series.most[number], 0.0), 1.0))
        for use in uses
        if use.series.most[number] > 0
    ]
    found = slowdowns(needs, turns)
    most = max((slow.most for slow in found), default=1.0)
    least = max(1.0, sum(need.least for need in needs), *(slow.least for slow in found))
    return Slowdown(min(least, most), most)
