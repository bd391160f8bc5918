"""Where GPM's tenths of a second lie, by what tenants really did: how long before the driver's windows they end.

`gpm.tenths` takes that for a constant. It was found with the recordings at hand, so each new one should confirm it.
"""

from bisect import bisect_right
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from podgpu.sources.nvml.window_split import DELAYS, TENTH, BusySample
from tests.samples.switches import by_looks, glimpsed

STEP = 2_000_000
STRETCH = 50  # glimpses, five seconds of them, that are taken to have the same delay
OUTLIERS = 0.1  # an answer about two tenths, or none


@dataclass(frozen=True)
class Lag:
    """`ahead_ms` fits best, with `error` from 0 to 1. `delays_ms` is how old the answers were, stretch by stretch."""

    ahead_ms: float
    error: float
    delays_ms: list[int]
    constant_error: float  # of the best constant lag


def measured(recorded: dict[str, Any]) -> Lag:
    glimpses, stamp = glimpsed(recorded), _stamp([look.end_ns for look in by_looks(recorded)])
    work = _work(recorded)
    total = work(glimpses[-1].end_ns) - work(glimpses[0].begin_ns)
    scale = sum(glimpse.busy * (glimpse.end_ns - glimpse.begin_ns) for glimpse in glimpses) / total
    stretches = [glimpses[first : first + STRETCH] for first in range(0, len(glimpses), STRETCH)]
    best: tuple[float, int, list[int]] | None = None
    for ahead in range(0, TENTH, STEP):
        fits = [_fit(part, (stamp - ahead) % TENTH, work, scale) for part in stretches]
        error = sum(error for error, _ in fits) / len(fits)
        if best is None or error < best[0]:
            best = error, ahead, [delay // 1_000_000 for _, delay in fits]
    assert best
    constant = min(_constant(glimpses, lag, work, scale) for lag in range(0, 2 * TENTH, 5 * STEP))
    return Lag(best[1] / 1e6, best[0], best[2], constant)


def _stamp(stamps: Sequence[int]) -> int:
    off = sorted((stamp - stamps[0] + TENTH // 2) % TENTH for stamp in stamps)
    return stamps[0] + off[len(off) // 2] - TENTH // 2


def _fit(glimpses: Sequence[BusySample], phase: int, work: Callable[[float], float], scale: float) -> tuple[float, int]:
    return min((_error(glimpses, delay, phase, work, scale), delay) for delay in DELAYS)


def _error(
    glimpses: Sequence[BusySample], delay: int, phase: int, work: Callable[[float], float], scale: float
) -> float:
    found = []
    for glimpse in glimpses:
        first, last = ((at - delay - phase) // TENTH for at in (glimpse.begin_ns, glimpse.end_ns))
        true = work(phase + last * TENTH) - work(phase + first * TENTH)
        found.append(abs(scale * true / (max(1, last - first) * TENTH) - glimpse.busy))
    return _mean(found)


def _constant(glimpses: Sequence[BusySample], lag: int, work: Callable[[float], float], scale: float) -> float:
    return _mean(
        [
            abs(
                scale
                * (work(glimpse.end_ns - lag) - work(glimpse.begin_ns - lag))
                / (glimpse.end_ns - glimpse.begin_ns)
                - glimpse.busy
            )
            for glimpse in glimpses
        ]
    )


def _mean(errors: Sequence[float]) -> float:
    kept = sorted(errors)[: round(len(errors) * (1 - OUTLIERS))]
    return sum(kept) / len(kept)


def _work(recorded: dict[str, Any]) -> Callable[[float], float]:
    """Return how long anybody had worked up to a time."""
    spans: list[list[float]] = []
    for begin, end, *_ in sorted(burst for log in recorded["logs"] for burst in log["bursts"]):
        if spans and begin * 1e9 <= spans[-1][1]:
            spans[-1][1] = max(spans[-1][1], end * 1e9)
        else:
            spans.append([begin * 1e9, end * 1e9])
    begins, before = [begin for begin, _ in spans], [0.0]
    for begin, end in spans:
        before.append(before[-1] + end - begin)

    def work(at: float) -> float:
        place = bisect_right(begins, at)
        return before[place - 1] + min(at, spans[place - 1][1]) - spans[place - 1][0] if place else 0.0

    return work
