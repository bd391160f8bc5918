"""How the numbers move. The node repeats every round, so late moments cost no more to compute than early ones."""

from collections.abc import Iterable
from itertools import accumulate
from random import Random

from podgpu.sources.simulator.layout import Rhythm

ROUND = 1200


def position(elapsed: float) -> tuple[int, int, float]:
    """Return the number of whole rounds, the second within the round, and the fraction of that second."""
    rounds, within = divmod(elapsed, ROUND)
    second = int(within)
    return int(rounds), second, within - second


def wave(rhythm: Rhythm, random: Random) -> list[float]:
    """Return the load of each second of a round."""
    start = random.randrange(rhythm.every)
    seconds: list[float] = []
    for _ in range(ROUND // rhythm.every):
        height = rhythm.busy * (1 - rhythm.spread * random.random() / 2)
        length = rhythm.every * rhythm.duty * (1 + rhythm.spread * (random.random() - 0.5))
        levels = (height if second < length else rhythm.rest for second in range(rhythm.every))
        seconds += [level * (1 - random.random() * 0.04) for level in levels]
    return seconds[start:] + seconds[:start]


def lagged(values: list[float], lag: float) -> list[float]:
    """Follow the values slowly, as if many rounds had gone before."""
    level = values[0]
    for value in values:
        level += (value - level) / lag
    followed = []
    for value in values:
        level += (value - level) / lag
        followed.append(level)
    return followed


class Meter:
    """A counter that rises by `rates[second]` in each second of a round. It uses integers and so never drifts."""

    def __init__(self, rates: Iterable[int], start: int = 0) -> None:
        self._rates = tuple(rates)
        self._before = tuple(accumulate(self._rates, initial=start))
        self._round = self._before[-1] - start

    def at(self, elapsed: float) -> int:
        rounds, second, part = position(elapsed)
        return rounds * self._round + self._before[second] + int(self._rates[second] * part)
