"""How numbers move. The node repeats itself every round, so any time costs the same to compute."""

from collections.abc import Iterable
from dataclasses import dataclass
from itertools import accumulate
from math import ceil
from random import Random

from podgpu.sources.simulator.layout import Rhythm

ROUND = 1200


@dataclass(frozen=True, slots=True)
class Window:
    """What a reading covers: from the previous reading to now, in seconds since the start."""

    start: float
    end: float

    @property
    def seconds(self) -> float:
        return self.end - self.start

    @property
    def last_second(self) -> int:
        """Which second of the round it ends in."""
        return (ceil(self.end) - 1) % ROUND


def position(elapsed: float) -> tuple[int, int, float]:
    """How many whole rounds have passed, the second within the round, and the part of that second."""
    rounds, within = divmod(elapsed, ROUND)
    second = int(within)
    return int(rounds), second, within - second


def wave(rhythm: Rhythm, random: Random) -> list[float]:
    """Lay out the load of each second of a round."""
    start = random.randrange(rhythm.every)
    seconds: list[float] = []
    for _ in range(ROUND // rhythm.every):
        height = rhythm.busy * (1 - rhythm.spread * random.random() / 2)
        length = rhythm.every * rhythm.duty * (1 + rhythm.spread * (random.random() - 0.5))
        levels = (height if second < length else rhythm.rest for second in range(rhythm.every))
        seconds += [level * (1 - random.random() * 0.04) for level in levels]
    return seconds[start:] + seconds[:start]


def lagged(values: list[float], lag: float) -> list[float]:
    """Follow the values slowly, in the state that is reached after many rounds."""
    level = values[0]
    for value in values:
        level += (value - level) / lag
    followed = []
    for value in values:
        level += (value - level) / lag
        followed.append(level)
    return followed


class Meter:
    """A counter that rises by `rates[second]` in each second of a round. Whole numbers, so no drift.

    It ran before the start too, so that there is something to be said of the seconds before.
    """

    def __init__(self, rates: Iterable[int], start: int = 0) -> None:
        self._rates = tuple(rates)
        self._before = tuple(accumulate(self._rates, initial=start))
        self._round = self._before[-1] - start

    def at(self, elapsed: float) -> int:
        rounds, second, part = position(elapsed)
        return rounds * self._round + self._before[second] + int(self._rates[second] * part)

    def during(self, window: Window) -> int:
        return self.at(window.end) - self.at(window.start)

    def rate(self, window: Window) -> float:
        return self.during(window) / window.seconds
