"""Adds up what containers used, minute by minute, to what their workloads used.

A workload has the peaks of all its cards and replicas: they have one spec, so it must suit each of them.
"""

from array import array
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import pairwise
from typing import NamedTuple

from msgspec import Struct, field
from msgspec.structs import replace

from podgpu.cluster.report.counters import CardKey, NodeKey
from podgpu.model.fit import AT_LIMIT, UNSEEN, CardType, HeldPart, UseSeries, WorkloadName, WorkloadUse
from podgpu.model.kube import grouped

# Seconds of a step. The shortest is chosen with which the series are not too long.
STEPS = (60, 300, 900, 3600)
BRIDGED_STEPS = 3  # if a counter has no samples for so long, it is taken to have grown evenly
MOST_BYTES = 1 << 60  # more than any card has: a broken agent may report anything
RECENT_STEPS = 10  # holders that were seen so shortly before the end of the workload are its replicas


class FitPeriod(NamedTuple):
    """The series begin at `start`. Both times are whole steps."""

    start: int
    end: int
    step: int

    @property
    def steps(self) -> int:
        return (self.end - self.start) // self.step

    def number(self, at: float) -> int:
        """Return the step that ends at a time."""
        return round((at - self.start) / self.step) - 1


class PeriodUse(NamedTuple):
    period: FitPeriod
    uses: list[WorkloadUse]
    is_demo: bool = False
    coverage: float | None = None  # how much of the GPUs' time in the period was seen
    holders: int = 0  # that the source knows of in the period, whether anything of them was seen or not


class FitHolder(NamedTuple):
    """A container on a card or an instance."""

    card: CardKey
    mig: str
    namespace: str
    pod: str
    container: str

    @property
    def node(self) -> NodeKey:
        return self.card.cluster, self.card.node


class HolderFacts(Struct, frozen=True, kw_only=True):
    """A holder's workload, its card, and what it holds of the card, as of the last sample."""

    workload: WorkloadName
    card: CardType
    held: HeldPart
    dram_ratio: float | None = None


class HolderMinutes(Struct, frozen=True):
    """What a holder used in a part of the period, by the number of the minute: bytes, and its likely busy time."""

    memory: Mapping[int, float]
    most: Mapping[int, float]
    least: Mapping[int, float]


class _HolderState(Struct):
    last: int  # minute in which it was seen
    seen: int = 0
    unseen: int = 0
    memory: float = 0.0  # in that minute
    is_used: bool = False


class _WorkloadState(Struct):
    memory: "array[int]"
    most: "array[float]"
    least: "array[float]"
    doubt: float = 0.0  # how wide the likely ranges are, summed over all minutes that have one
    doubted: int = 0  # the number of those minutes
    restarts: set[int] = field(default_factory=set)
    holders: dict[FitHolder, _HolderState] = field(default_factory=dict)


class WorkloadUseBuilder:
    """Parts of the period are added in order of time. `steps` is the number of minutes, each of `step` seconds."""

    def __init__(self, facts: Mapping[FitHolder, HolderFacts], steps: int, step: int) -> None:
        self._facts = facts
        self._steps = steps
        self._step = step
        self.scraped: dict[NodeKey, bytearray] = defaultdict(lambda: bytearray(steps))
        self._workloads: dict[WorkloadName, _WorkloadState] = {}

    def add_node(self, node: NodeKey, minutes: Iterable[int]) -> None:
        """Add the minutes in which the node's agent was scraped."""
        scraped = self.scraped[node]
        for minute in minutes:
            if 0 <= minute < self._steps:
                scraped[minute] = 1

    def add(self, holder: FitHolder, minutes: HolderMinutes) -> None:
        facts = self._facts.get(holder)
        numbers = sorted({*minutes.memory, *minutes.most})
        if facts is None or not numbers:
            return
        workload = self._workloads.get(facts.workload)
        if workload is None:
            workload = self._workloads[facts.workload] = _WorkloadState(*_unseen_series(self._steps))
        self._note(workload, holder, numbers, minutes)
        for number, used in minutes.memory.items():
            workload.memory[number] = max(workload.memory[number], round(min(used, MOST_BYTES)))
        for number, ratio in minutes.most.items():
            workload.most[number] = max(workload.most[number], ratio)
        for number, ratio in minutes.least.items():
            so_far = workload.least[number]
            workload.least[number] = ratio if so_far < 0 else min(so_far, ratio)
            workload.doubt += max(minutes.most.get(number, 1.0) - ratio, 0.0)
            workload.doubted += 1

    def _note(
        self, workload: _WorkloadState, holder: FitHolder, numbers: Sequence[int], minutes: HolderMinutes
    ) -> None:
        """Count the minutes in which the holder was seen and unseen, and note restarts."""
        first = numbers[0]
        state = workload.holders.get(holder)
        if state is None:
            state = workload.holders[holder] = _HolderState(first - 1)
            if first and len(workload.holders) > 1:
                workload.restarts.add(first)
        scraped = self.scraped[holder.node]
        facts = self._facts[holder]
        size = facts.held.memory_limit_bytes or facts.card.memory_bytes
        for number in numbers:
            if number <= state.last:
                continue
            state.unseen += scraped.count(0, state.last + 1, number)
            state.seen += 1
            state.last = number
            used = minutes.memory.get(number)
            if used is not None:
                if _is_restarted(state.memory, used, size):
                    workload.restarts.add(number)
                state.memory = used
        state.is_used = state.is_used or any(ratio > 0 for ratio in minutes.most.values())

    def uses(self) -> Iterator[WorkloadUse]:
        for name in sorted(self._workloads):
            yield self._use(name, self._workloads[name])

    def _use(self, name: WorkloadName, state: _WorkloadState) -> WorkloadUse:
        last = max(holder.last for holder in state.holders.values())
        recent = [holder for holder, seen in state.holders.items() if seen.last > last - RECENT_STEPS]
        for holder in recent:
            state.holders[holder].unseen += self._missing_after(holder, state.holders[holder].last)
        pods = grouped(recent, lambda holder: (holder.node, holder.pod))
        facts = self._facts[recent[-1]]
        dram_ratios = [self._facts[holder].dram_ratio for holder in state.holders]
        used = [sum(state.holders[holder].is_used for holder in holders) for holders in pods.values()]
        seen = sum(holder.seen for holder in state.holders.values())
        unseen = sum(holder.unseen for holder in state.holders.values())
        held = sum(1 for number in range(self._steps) if state.memory[number] >= 0 or state.most[number] >= 0)
        return WorkloadUse(
            workload=name,
            card=facts.card,
            held=replace(facts.held, devices=max(map(len, pods.values()))),
            series=UseSeries(memory=state.memory, most=state.most, least=state.least),
            replicas=len(pods),
            used_devices=max(used),
            watched_seconds=self._step * held * (seen + unseen) / seen,
            seen_ratio=seen / (seen + unseen),
            busy_doubt=state.doubt / state.doubted if state.doubted else None,
            dram_ratio=max((ratio for ratio in dram_ratios if ratio is not None), default=None),
            restarts=tuple(sorted(state.restarts)),
            nodes=tuple(sorted({holder.card.node for holder in recent})),
        )

    def _missing_after(self, holder: FitHolder, last: int) -> int:
        """Count the minutes after its last one in which its node was not scraped, until it was scraped without it."""
        scraped = self.scraped[holder.node]
        again = scraped.find(1, last + 1)
        return scraped.count(0, last + 1, self._steps if again < 0 else again)


def counter_ratios(points: Sequence[tuple[int, float]], step: int) -> Iterator[tuple[int, float]]:
    """Yield how much a counter of seconds grew in each step, as a ratio of the step. Points have the step's number.

    Bounds are booked once a minute, and two bookings may fall into one step: the first belongs to the step before.
    """
    ratios: dict[int, float] = {}
    for (before, base), (number, value) in pairwise(points):
        missed = number - before
        if 0 < missed <= BRIDGED_STEPS:
            grown = (value - base if value >= base else value) / (step * missed)
            ratios |= dict.fromkeys(range(before + 1, number + 1), grown)
    for number, ratio in ratios.items():
        late = max(ratios.get(number + 1, 0.0) - 1.0, 0.0)
        yield number, min(ratio + late, 1.0)


def _is_restarted(before: float, used: float, size: int | None) -> bool:
    """Whether its process ended since. If another began at once, that shows only if the first had used all memory."""
    return before > 0 and (used == 0 or (size is not None and before >= AT_LIMIT * size and used < before / 2))


def _unseen_series(steps: int) -> tuple["array[int]", "array[float]", "array[float]"]:
    return array("q", [UNSEEN]) * steps, array("f", [UNSEEN]) * steps, array("f", [UNSEEN]) * steps
