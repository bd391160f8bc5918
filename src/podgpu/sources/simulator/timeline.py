"""One card over one round: what its processes do, and what power, heat and traffic follow from it.

The node repeats itself every round, so any time costs the same to compute. Use and power are means over the time since
the previous reading, and counters are their integrals: so what is divided among the processes is what the card did.
"""

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from itertools import accumulate
from random import Random

from podgpu.sources.simulator.scenario import KernelMix, LoadPattern, SimulatedCard, SimulatedProcess

ROUND = 1200  # seconds
MULTIPROCESSORS = 132
IDLE_WATTS = 84
CAP_WATTS = 690
IDLE_CLOCK = 345
MAX_CLOCK = 1980
HOT_CLOCK = 1305
HOT_CELSIUS = 87
# Kernels of several processes never fill a card to the last percent.
CEILING = 0.99
# The driver hands out memory in pages of this size.
PAGE = 2 << 20
# A camera begins a frame 25 times a second, and at every fifth frame the driver takes a sample. Until a frame is done,
# the camera and its neighbours take turns. So this part of their samples names it.
FRAME = 0.04
FRAME_WORK = 0.01
MISNAMED = 0.6

Quantity = Callable[[KernelMix], float]


@dataclass(frozen=True, slots=True)
class ReadingWindow:
    """What a reading covers: from the previous reading to now, in seconds since the start."""

    start: float
    end: float

    @property
    def last_second(self) -> int:
        """Which second of the round it ends in."""
        return (math.ceil(self.end) - 1) % ROUND


class RoundCounter:
    """A counter that rises by `rates[second]` in each second of a round. Whole numbers, so no drift.

    It also ran before the start, so that the first reading can cover the seconds before it.
    """

    def __init__(self, rates: Iterable[int], start: int = 0) -> None:
        self._rates = tuple(rates)
        self._before = tuple(accumulate(self._rates, initial=start))
        self._round = self._before[-1] - start

    def at(self, elapsed: float) -> int:
        rounds, second, part = position(elapsed)
        return rounds * self._round + self._before[second] + int(self._rates[second] * part)

    def during(self, window: ReadingWindow) -> int:
        return self.at(window.end) - self.at(window.start)

    def rate(self, window: ReadingWindow) -> float:
        return self.during(window) / (window.end - window.start)


@dataclass(frozen=True, slots=True)
class Activity:
    """What a process did since the previous reading.

    `load` is of the multiprocessors it runs on, `weight` their part of the card. `named_us` and `named_load` are by the
    driver's samples, which name a camera too often.
    """

    process: SimulatedProcess
    named_us: int
    named_load: float
    load: float
    weight: float
    memory_bytes: int


class CardTimeline:
    """Everything that repeats is computed once. A reading is then a few look-ups."""

    def __init__(self, card: SimulatedCard, seed: int) -> None:
        # Not a secret, and a string seed gives the same numbers on every machine.
        random = Random(f"{seed} {card.index}")  # noqa: S311
        self.card = card
        self._weights = tuple(_weight(card, process) for process in card.processes)
        self._loads = _loads(card, random)
        self._busy = tuple(RoundCounter(round(load * 1e6) for load in loads) for loads in self._loads)
        self._misnamed = tuple(RoundCounter(int(MISNAMED * load * 1e6) for load in loads) for loads in self._loads)
        self.demand_watts = [watts + IDLE_WATTS for watts in self._totals(lambda mix: mix.watts)]
        self.power_milliwatts = [
            round(1000 * (min(watts, CAP_WATTS) + random.random() * 2)) for watts in self.demand_watts
        ]
        inlet = 27 + random.random() * 4 + card.warmth
        self.heat = _lagged([inlet + power / 18_000 for power in self.power_milliwatts], 25)
        self.energy_millijoules = RoundCounter(self.power_milliwatts, random.randrange(10**11, 10**12))
        self.capped_ns = RoundCounter(10**9 * (watts > CAP_WATTS) for watts in self.demand_watts)
        self.hot_ns = RoundCounter(10**9 * (heat >= HOT_CELSIUS) for heat in self.heat)
        self.pcie_transmit_bytes = RoundCounter(
            map(int, self._totals(lambda mix: mix.pcie_transmit)), random.randrange(10**12, 10**13)
        )
        self.pcie_receive_bytes = RoundCounter(
            map(int, self._totals(lambda mix: mix.pcie_receive)), random.randrange(10**12, 10**13)
        )
        self.nvlink_bytes = RoundCounter(map(int, self._totals(lambda mix: mix.nvlink)))

    def activities(self, window: ReadingWindow) -> tuple[Activity, ...]:
        named, seconds = self._named(window), window.end - window.start
        return tuple(
            Activity(
                process=process,
                named_us=named_us,
                named_load=named_us / seconds / 1e6,
                load=busy.rate(window) / 1e6,
                weight=weight,
                memory_bytes=_memory(process, window.last_second),
            )
            for process, busy, named_us, weight in zip(
                self.card.processes, self._busy, named, self._weights, strict=True
            )
        )

    def _named(self, window: ReadingWindow) -> list[int]:
        """The busy time of the samples that name each process. Together it is that of the card."""
        named = [busy.during(window) for busy in self._busy]
        cameras = [number for number, process in enumerate(self.card.processes) if process.keeps_time]
        for camera in cameras:
            for number, misnamed in enumerate(self._misnamed):
                part = misnamed.during(window)
                named[number] -= part
                named[camera] += part
        return named

    def busy_us(self, window: ReadingWindow) -> int:
        """How long the card worked, for all processes together."""
        return sum(busy.during(window) for busy in self._busy)

    def loads(self, elapsed: float) -> list[tuple[int, float]]:
        """Each process's load at a time, by PID."""
        _, second, part = position(elapsed)
        now = FRAME / FRAME_WORK if part % FRAME < FRAME_WORK else 0.0
        return [
            (process.pid, loads[second] * (now if process.keeps_time else 1.0))
            for process, loads in zip(self.card.processes, self._loads, strict=True)
        ]

    def clock_megahertz(self, second: int) -> int:
        """Slow down once the card is too hot and, in steps, once it wants more than it may draw."""
        demand = self.demand_watts[second]
        if demand <= IDLE_WATTS:
            return IDLE_CLOCK
        if self.heat[second] >= HOT_CELSIUS:
            return HOT_CLOCK
        return max(1200, MAX_CLOCK - 30 * int(max(0.0, demand - CAP_WATTS)))

    def _totals(self, quantity: Quantity) -> list[float]:
        """Sum up a quantity over all processes, for each second of a round."""
        return [
            sum(
                loads[second] * weight * quantity(process.mix)
                for process, loads, weight in zip(self.card.processes, self._loads, self._weights, strict=True)
            )
            for second in range(ROUND)
        ]


def position(elapsed: float) -> tuple[int, int, float]:
    """How many whole rounds have passed, the second within the round, and the part of that second."""
    rounds, within = divmod(elapsed, ROUND)
    second = int(within)
    return int(rounds), second, within - second


def _load_curve(pattern: LoadPattern, random: Random) -> list[float]:
    """Return the load of each second of a round."""
    start = random.randrange(pattern.every)
    seconds: list[float] = []
    for _ in range(ROUND // pattern.every):
        height = pattern.busy * (1 - pattern.spread * random.random() / 2)
        length = pattern.every * pattern.duty * (1 + pattern.spread * (random.random() - 0.5))
        levels = (height if second < length else pattern.rest for second in range(pattern.every))
        seconds += [level * (1 - random.random() * 0.04) for level in levels]
    return seconds[start:] + seconds[:start]


def _lagged(values: list[float], lag: float) -> list[float]:
    """Follow the values slowly, from the state that is reached after a round."""
    followed = list(accumulate([*values, *values], lambda level, value: level + (value - level) / lag))
    return followed[len(values) :]


def _weight(card: SimulatedCard, process: SimulatedProcess) -> float:
    for instance in card.instances:
        if instance.gpu_instance_id == process.instance:
            return instance.profile.multiprocessors / MULTIPROCESSORS
    return 1.0


def _loads(card: SimulatedCard, random: Random) -> list[list[float]]:
    """Each process's load. Those that share the same multiprocessors slow each other down."""
    wanted = [_load_curve(process.load, random) for process in card.processes]
    if card.instances:
        return wanted
    crowding = [max(1.0, sum(second) / CEILING) for second in zip(*wanted, strict=True)]
    return [[load / crowd for load, crowd in zip(loads, crowding, strict=True)] for loads in wanted]


def _memory(process: SimulatedProcess, second: int) -> int:
    # The PID puts processes out of step with one another.
    turn = 2 * math.pi * (second + process.pid) / ROUND
    swing = process.swing_bytes * (1 - math.cos(turn)) / 2
    return process.memory_bytes + int(swing) // PAGE * PAGE
