"""A card over a whole round: the load of its processes, and the power, heat and traffic that follow from it."""

import math
from collections.abc import Callable
from dataclasses import dataclass
from random import Random

from podgpu.sources.simulator.layout import SimulatedCard, SimulatedProcess, Work
from podgpu.sources.simulator.motion import ROUND, Meter, lagged, position, wave

MULTIPROCESSORS = 132
IDLE_WATTS = 84
CAP_WATTS = 690
IDLE_CLOCK = 345
MAX_CLOCK = 1980
# Several processes never fill a card to the last percent.
CEILING = 0.99
# The driver hands out memory in pages of this size.
PAGE = 2 << 20

Quantity = Callable[[Work], float]
_TRAFFIC: tuple[Quantity, ...] = (
    lambda work: work.pcie_transmit,
    lambda work: work.pcie_receive,
    lambda work: work.nvlink,
)


@dataclass(frozen=True, slots=True)
class Activity:
    """What a process does at one moment.

    `load` is a ratio of the multiprocessors that it runs on, `weight` is their share of the card.
    """

    process: SimulatedProcess
    load: float
    weight: float
    memory_bytes: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Moment:
    """A card at one moment."""

    card: SimulatedCard
    activities: tuple[Activity, ...]
    power_milliwatts: int
    throttled: bool
    clock_megahertz: int
    temperature: int
    memory_temperature: int
    energy_millijoules: int
    throttled_nanoseconds: int
    pcie_transmit_bytes: int
    pcie_receive_bytes: int
    nvlink_bytes: int
    pcie_transmit_rate: int
    pcie_receive_rate: int
    nvlink_rate: int
    rounds: int


class Tape:
    """Everything that repeats, computed once. A moment then takes a few look-ups."""

    def __init__(self, card: SimulatedCard, seed: int) -> None:
        # These numbers are no secret, and a string as seed gives the same ones on every machine.
        random = Random(f"{seed} {card.index}")  # noqa: S311
        self._card = card
        self._weights = tuple(_weight(card, process) for process in card.processes)
        self._loads = _loads(card, random)
        self._demand = [IDLE_WATTS + self._total(lambda work: work.watts, second) for second in range(ROUND)]
        self._power = [round(1000 * _drawn(watts, random)) for watts in self._demand]
        inlet = 27 + random.random() * 4
        self._heat = lagged([inlet + power / 18_000 for power in self._power], 25)
        self._transmit, self._receive, self._nvlink = (
            [int(self._total(quantity, second)) for second in range(ROUND)] for quantity in _TRAFFIC
        )
        self._energy = Meter(self._power, start=random.randrange(10**11, 10**12))
        self._throttle = Meter(10**9 if watts > CAP_WATTS else 0 for watts in self._demand)
        self._transmitted = Meter(self._transmit, start=random.randrange(10**12, 10**13))
        self._received = Meter(self._receive, start=random.randrange(10**12, 10**13))
        self._linked = Meter(self._nvlink, start=0)

    def at(self, elapsed: float) -> Moment:
        rounds, second, _ = position(elapsed)
        return Moment(
            card=self._card,
            activities=self._activities(second),
            power_milliwatts=self._power[second],
            throttled=self._demand[second] > CAP_WATTS,
            clock_megahertz=_clock(self._demand[second]),
            temperature=round(self._heat[second]),
            memory_temperature=round(self._heat[second] * 1.08 + 3),
            energy_millijoules=self._energy.at(elapsed),
            throttled_nanoseconds=self._throttle.at(elapsed),
            pcie_transmit_bytes=self._transmitted.at(elapsed),
            pcie_receive_bytes=self._received.at(elapsed),
            nvlink_bytes=self._linked.at(elapsed),
            pcie_transmit_rate=self._transmit[second],
            pcie_receive_rate=self._receive[second],
            nvlink_rate=self._nvlink[second],
            rounds=rounds,
        )

    def _activities(self, second: int) -> tuple[Activity, ...]:
        return tuple(
            Activity(process, loads[second], weight, _memory(process, second))
            for process, loads, weight in zip(self._card.processes, self._loads, self._weights, strict=True)
        )

    def _total(self, quantity: Quantity, second: int) -> float:
        return sum(
            loads[second] * weight * quantity(process.work)
            for process, loads, weight in zip(self._card.processes, self._loads, self._weights, strict=True)
        )


def _weight(card: SimulatedCard, process: SimulatedProcess) -> float:
    for part in card.slices:
        if part.gpu_instance_id == process.instance:
            return part.profile.multiprocessors / MULTIPROCESSORS
    return 1.0


def _loads(card: SimulatedCard, random: Random) -> list[list[float]]:
    """Return the load of each process. Processes on the same multiprocessors crowd each other out."""
    wanted = [wave(process.rhythm, random) for process in card.processes]
    if card.slices:
        return wanted
    crowding = [max(1.0, sum(second) / CEILING) for second in zip(*wanted, strict=True)]
    return [[load / crowd for load, crowd in zip(loads, crowding, strict=True)] for loads in wanted]


def _drawn(demand: float, random: Random) -> float:
    return min(demand, CAP_WATTS) + random.random() * 2


def _clock(demand: float) -> int:
    """Slow down in steps once the card needs more power than its limit."""
    if demand <= IDLE_WATTS:
        return IDLE_CLOCK
    return max(1200, MAX_CLOCK - 30 * int(max(0.0, demand - CAP_WATTS)))


def _memory(process: SimulatedProcess, second: int) -> int:
    # The PID keeps processes out of step with each other.
    turn = 2 * math.pi * (second + process.pid) / ROUND
    swing = process.swing_bytes * (1 - math.cos(turn)) / 2
    return process.memory_bytes + int(swing) // PAGE * PAGE
