"""How much slower workloads become that take turns on a card: at least, and at most.

Known is which part of the time each was busy while it was alone. Not known is when in the minute, and in how large
pieces, so the range is wide. What holds whatever they do:

* The card does no more than a card's work in a time. What others certainly get done is not left for a workload.
* A workload waits only while others run or contexts are switched. Others do not run for longer than they did alone.
* The driver lets each run in turn, for a slice of time at most. A workload that waits for the end of each small piece
  of its work gives up its turn after each, and then waits for a whole slice of each of the others.

A slowdown is of work done over time: 2 means that the same work takes twice as long. It says nothing about the latency
of a single request.
"""

from collections.abc import Sequence

from msgspec import Struct


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
