"""A card that slices time among made-up tenants, with the driver's samples and its log, and the truth beside them.

Measured on an H200: contexts take turns of about 2 ms while several have work, a change takes 84 µs, a context stays
on the card when its work is done, and every 200 ms a sample names the process that ran last, by a clock that does not
drift. Times are nanoseconds since the beginning.
"""

from bisect import bisect_right
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from random import Random

SECOND = 1_000_000_000
MILLI = 1_000_000
TURN = 2 * MILLI
CHANGE = 84_000
SAMPLE = 200 * MILLI


@dataclass(frozen=True)
class ModelTenant:
    """Works for `work` nanoseconds of the card's time, again and again; always, if `every` is 0.

    `every` is from the beginning of one piece of work to that of the next if it is `paced`, as a camera is, else from
    the end to the beginning, as a program that waits for callers. `jitter` is how much work and time differ, 0 to 1.
    `phase` is when the first piece begins. A tenant that `hides` rests around every sample.
    """

    work: int
    every: int = 0
    paced: bool = False
    jitter: float = 0.0
    phase: int = 0
    hides: bool = False


@dataclass(frozen=True)
class Turn:
    """A context on the card from `begin` to `end`, at work until `worked`."""

    tenant: int
    begin: int
    worked: int
    end: int


@dataclass(frozen=True)
class ModelSample:
    at: int
    tenant: int
    busy: float  # of the whole card, in the 200 ms before


@dataclass(frozen=True)
class ModelRun:
    """What happened: the card's turns in order, and the driver's samples."""

    tenants: int
    length: int
    turns: Sequence[Turn]
    samples: Sequence[ModelSample]

    def busy(self, begin: int, end: int) -> list[int]:
        """The time that each tenant truly worked within a time."""
        return self._summed(begin, end, lambda turn: turn.worked)

    def resident(self, begin: int, end: int) -> list[int]:
        return self._summed(begin, end, lambda turn: turn.end)

    def within(self, begin: int, end: int) -> Iterator[Turn]:
        first = max(0, bisect_right(self.turns, begin, key=lambda turn: turn.begin) - 1)
        for turn in self.turns[first:]:
            if turn.begin >= end:
                return
            if turn.end > begin:
                yield turn

    def _summed(self, begin: int, end: int, until: Callable[[Turn], int]) -> list[int]:
        found = [0] * self.tenants
        for turn in self.within(begin, end):
            found[turn.tenant] += max(0, min(until(turn), end) - max(turn.begin, begin))
        return found


class _Worker:
    """One tenant's work over time: how much of it is left, and when the next piece begins."""

    def __init__(self, tenant: ModelTenant, chance: Random, sample_phase: int) -> None:
        self._tenant = tenant
        self._chance = chance
        self._sample_phase = sample_phase
        self.left = 0
        self.begins = tenant.phase

    def ready(self, now: int) -> bool:
        tenant = self._tenant
        if tenant.hides:
            # It rests from 14 ms before a sample until 7 ms after it.
            self.left = TURN
            return 7 * MILLI <= (now - self._sample_phase) % SAMPLE < SAMPLE - 14 * MILLI
        if not self.left and now >= self.begins:
            self.left = self._drawn(tenant.work)
            if tenant.paced:
                # A frame that comes too late is left out.
                self.begins += max(1, -(-(now - self.begins + 1) // tenant.every)) * tenant.every
                self.begins += round((self._chance.random() - 0.5) * tenant.jitter * tenant.every)
        return self.left > 0

    def work(self, nanoseconds: int, now: int) -> None:
        tenant = self._tenant
        self.left -= nanoseconds
        if self.left <= 0:
            self.left = 0
            if not tenant.paced:
                self.begins = now + self._drawn(tenant.every)

    def _drawn(self, mean: int) -> int:
        spread = self._tenant.jitter
        return max(1, round(mean * (1 + spread * (2 * self._chance.random() - 1)))) if mean else 0


def run(tenants: Sequence[ModelTenant], seconds: float, chance: Random, change: int = CHANGE) -> ModelRun:
    """`change` is how long it takes to change contexts."""
    length, sample_phase = round(seconds * SECOND), round(chance.random() * SAMPLE)
    workers = [_Worker(tenant, chance, sample_phase) for tenant in tenants]
    turns: list[Turn] = []
    now, on_card = 0, -1
    while now < length:
        ready = [number for number, worker in enumerate(workers) if worker.ready(now)]
        if not ready:
            now = min(max(now + MILLI // 4, min(worker.begins for worker in workers)), length)
            continue
        chosen = chance.choice(ready)
        if chosen != on_card and on_card >= 0:
            turns[-1] = _stayed(turns[-1], now)
            now += change
        elif on_card >= 0:
            turns[-1] = _stayed(turns[-1], now)
        spent = min(TURN, workers[chosen].left)
        turns.append(Turn(chosen, now, now + spent, now + spent))
        now += spent
        workers[chosen].work(spent, now)
        on_card = chosen
    if turns:
        turns[-1] = _stayed(turns[-1], max(length, turns[-1].end))
    made = ModelRun(len(tenants), length, turns, ())
    return ModelRun(len(tenants), length, turns, tuple(_samples(made, sample_phase)))


def _stayed(turn: Turn, until: int) -> Turn:
    return Turn(turn.tenant, turn.begin, turn.worked, until)


def _samples(made: ModelRun, phase: int) -> Iterator[ModelSample]:
    for at in range(phase or SAMPLE, made.length, SAMPLE):
        place = bisect_right(made.turns, at, key=lambda turn: turn.begin) - 1
        if place >= 0:
            busy = sum(made.busy(max(0, at - SAMPLE), at)) / SAMPLE
            yield ModelSample(at, made.turns[place].tenant, min(1.0, busy))
