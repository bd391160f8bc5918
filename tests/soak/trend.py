"""Whether a measured value grows: a line through it, and how sure its slope is."""

from collections.abc import Sequence
from math import sqrt
from statistics import fmean
from typing import NamedTuple

BLOCKS = 50


class Trend(NamedTuple):
    """Units an hour, and half of the width of the 95 % confidence interval."""

    slope: float
    doubt: float

    def __str__(self) -> str:
        return f"{self.slope:+.2f} ± {self.doubt:.2f}"


def trend(samples: Sequence[tuple[float, float]], blocks: int = BLOCKS) -> Trend | None:
    """Fit a line through means of blocks. Neighbouring samples are alike, so that each alone would prove too much."""
    if len(samples) < 2 * blocks:
        return None
    size = len(samples) // blocks
    means = [
        (fmean(at for at, _ in part), fmean(value for _, value in part))
        for part in (samples[start : start + size] for start in range(0, size * blocks, size))
    ]
    middle, height = fmean(x for x, _ in means), fmean(y for _, y in means)
    spread = sum((x - middle) ** 2 for x, _ in means)
    slope = sum((x - middle) * (y - height) for x, y in means) / spread
    left = sum((y - height - slope * (x - middle)) ** 2 for x, y in means)
    return Trend(3600 * slope, 3600 * 2.01 * sqrt(left / (blocks - 2) / spread))
