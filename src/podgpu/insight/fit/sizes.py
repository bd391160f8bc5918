"""What a workload used, in figures; which parts of a card there are; and the smallest part that holds the use."""

from collections.abc import Sequence
from math import ceil
from operator import add
from typing import TypeVar

from msgspec import Struct

from podgpu.catalog.mig_profiles import MEDIA, mig_card
from podgpu.model.fit import AT_LIMIT, INSTANCE, PORTION, CardType, FitTerms, WantedPart, WorkloadUse
from podgpu.numbers import memory, percent

N = TypeVar("N", int, float)

GIB = 1 << 30
CORE_STEP = 0.05  # parts of the cores are asked for in such steps
LEAST_CORES = 0.1
GROWTHS_AHEAD = 2  # halves of the period for which growing memory is given room
USED_RATIO = 1e-4  # a minute that was busy for less counts as unused
FULL_RATIO = 0.95  # of its part: busy for more counts as all of it
STEPS_BEFORE_RESTART = 3
STEADY_GROWTH = 0.02  # of the peak: less is no growth


class UseFigures(Struct, frozen=True, kw_only=True):
    peak_bytes: int | None = None  # the most memory that was seen
    usual_bytes: int | None = None  # memory at the percentile that was asked for
    growth_bytes: int = 0  # by how much the second half exceeds the first, at the percentile
    busy: float | None = None  # at most, at the percentile that was asked for
    mean_least: float | None = None
    mean_most: float | None = None
    used_ratio: float | None = None  # how many of the minutes had any use
    longest_pause: int = 0  # steps without use, within what was seen
    unused_steps: int = 0  # since the last use, seen or not
    unused_seen: int = 0  # those of them that were seen
    full_ratio: float = 0.0  # how many of the minutes used all of its part, at least
    restarts: int = 0
    out_of_memory: int = 0  # restarts with all of its memory in use right before


def figures_of(use: WorkloadUse, terms: FitTerms) -> UseFigures:
    series = use.series
    memory = [value for value in series.memory if value >= 0]
    most = [value for value in series.most if value >= 0]
    least = [value for value in series.least if value >= 0]
    peak = max(memory, default=None)
    half = len(memory) // 2
    halves = [percentile(part, terms.percentile) for part in (memory[:half], memory[half:]) if part]
    growth = halves[1] - halves[0] if half else 0
    unused_steps, unused_seen, pause = _pauses(series.most)
    part = use.held.ratio or 1.0
    full = sum(value >= FULL_RATIO * part for value in least) / len(least) if least else 0.0
    return UseFigures(
        peak_bytes=peak,
        usual_bytes=None if peak is None else percentile(memory, terms.percentile),
        growth_bytes=growth if peak and growth > STEADY_GROWTH * peak else 0,
        busy=percentile(most, terms.percentile) if most else None,
        mean_least=sum(least) / len(least) if least else None,
        mean_most=sum(most) / len(most) if most else None,
        used_ratio=sum(value > USED_RATIO for value in most) / len(most) if most else None,
        longest_pause=pause,
        unused_steps=unused_steps,
        unused_seen=unused_seen,
        full_ratio=full,
        restarts=len(use.restarts),
        out_of_memory=_out_of_memory(use),
    )


def percentile(values: Sequence[N], part: float) -> N:
    """Return the value that this part of the values does not exceed."""
    ordered = sorted(values)
    return ordered[max(ceil(part * len(ordered)) - 1, 0)]


def summed(series: Sequence[Sequence[float]]) -> list[float]:
    """Add up minute by minute. A minute that was not seen counts as no use: the coverage says how much that may be."""
    first, *others = ([max(value, 0) for value in each] if min(each, default=0) < 0 else each for each in series)
    total = list(first)
    for each in others:
        total = list(map(add, total, each))
    return total


def _pauses(most: Sequence[float]) -> tuple[int, int, int]:
    """Return the steps since the last use, those of them that were seen, and the longest run of steps without use."""
    longest = current = seen = since = 0
    for value in most:
        if value > USED_RATIO:
            longest, current, seen, since = max(longest, current), 0, 0, 0
        elif value >= 0:
            current += 1
            seen += 1
            since += 1
        else:
            since += 1
    return since, seen, max(longest, current)


def memory_size(use: WorkloadUse) -> int | None:
    """Return how much memory it may use of each of its cards."""
    limit = use.held.memory_limit_bytes
    return use.card.memory_bytes if limit is None else limit


def _out_of_memory(use: WorkloadUse) -> int:
    size = memory_size(use)
    if size is None:
        return 0
    memory = use.series.memory
    return sum(max(memory[max(at - STEPS_BEFORE_RESTART, 0) : at], default=0) >= AT_LIMIT * size for at in use.restarts)


class PartSize(Struct, frozen=True, kw_only=True):
    """A part of a card that can be asked for."""

    kind: str  # INSTANCE or PORTION
    name: str  # for people
    ratio: float  # of the card: what it costs
    memory_bytes: int
    core_ratio: float
    bandwidth_ratio: float = 1.0  # of the card's memory: a part without hardware of its own may use it all
    wanted: WantedPart


class Need(Struct, frozen=True, kw_only=True):
    """What a part must hold."""

    memory_bytes: int
    core_ratio: float
    bandwidth_ratio: float = 0.0

    def fits(self, part: PartSize) -> bool:
        return (
            self.memory_bytes <= part.memory_bytes
            and self.core_ratio <= part.core_ratio
            and self.bandwidth_ratio <= part.bandwidth_ratio
        )


def need_of(figures: UseFigures, terms: FitTerms, dram_ratio: float | None) -> Need | None:
    """Return None where memory or busy time is not known. Never less than the most that was seen, plus headroom.

    A card's memory is hardly read or written while no kernel runs, so busy time bounds a bandwidth that is not known.
    """
    if figures.peak_bytes is None or figures.busy is None:
        return None
    peak = figures.peak_bytes * (1 + terms.headroom) + GROWTHS_AHEAD * figures.growth_bytes
    bandwidth = figures.busy if dram_ratio is None else dram_ratio
    return Need(memory_bytes=ceil(peak), core_ratio=figures.busy, bandwidth_ratio=bandwidth)


def instances_of(card: CardType) -> tuple[PartSize, ...]:
    """Return the MIG profiles of the card, smallest first; none if it has no MIG, or is not known."""
    kind = mig_card(card.model)
    if kind is None:
        return ()
    slices = max(profile.compute_slices for profile in kind.profiles)
    found = []
    for profile in kind.profiles:
        cores, memory_part = profile.compute_slices / slices, profile.memory_slices / kind.memory_slices
        if MEDIA in profile.name or min(cores, memory_part) >= 1:  # asked for on purpose, or no part
            continue
        found.append(
            PartSize(
                kind=INSTANCE,
                name=profile.name,
                ratio=max(cores, memory_part),
                memory_bytes=profile.memory_bytes,
                core_ratio=cores,
                bandwidth_ratio=memory_part,
                wanted=WantedPart(profile=profile.name),
            )
        )
    return tuple(sorted(found, key=lambda part: (part.ratio, part.memory_bytes)))


def portion_for(need: Need, card: CardType) -> PartSize | None:
    """Return the part of memory and cores that holds it, in whole GiB and steps of cores; None if it is no part."""
    if card.memory_bytes is None:
        return None
    size = ceil(need.memory_bytes / GIB) * GIB
    cores = max(ceil(round(need.core_ratio / CORE_STEP, 6)) * CORE_STEP, LEAST_CORES)
    ratio = max(size / card.memory_bytes, cores)
    if ratio >= 1:
        return None
    return PartSize(
        kind=PORTION,
        name=f"{memory(size)}, {percent(cores)}",
        ratio=ratio,
        memory_bytes=size,
        core_ratio=cores,
        wanted=WantedPart(memory_bytes=size, core_ratio=round(cores, 2), ratio=round(ratio, 4)),
    )


def smallest(parts: Sequence[PartSize], need: Need) -> PartSize | None:
    return next((part for part in parts if need.fits(part)), None)
