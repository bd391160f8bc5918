"""The figures of a workload's evidence that the rules judge by."""

from collections.abc import Sequence
from math import ceil
from typing import TypeVar

from msgspec import Struct

from podgpu.model.fit import AT_LIMIT, FitTerms, WorkloadUse

N = TypeVar("N", int, float)

USED_RATIO = 1e-4  # a minute in which it was busy for less is one without use
FULL_RATIO = 0.95  # busy for so much of its part is all of it
STEPS_BEFORE_RESTART = 3
STEADY_GROWTH = 0.02  # a peak that grew by less is the same


class UseFigures(Struct, frozen=True, kw_only=True):
    seen_steps: int
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
        seen_steps=max(len(memory), len(most)),
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
    """Return the value that so many of the values do not exceed."""
    ordered = sorted(values)
    return ordered[max(ceil(part * len(ordered)) - 1, 0)]


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
    return sum(
        max(memory[max(at - STEPS_BEFORE_RESTART, 0) : at], default=0) >= AT_LIMIT * size
        for at in use.restarts
    )
