"""One card over one round: what its processes do, and what power, heat and traffic follow from it.

Use and power are means over the time since the previous reading, and counters are their integrals: so what is divided
among the processes is what the card really did.
"""

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from random import Random

from podgpu.sources.simulator.layout import SimulatedCard, SimulatedProcess, Work
from podgpu.sources.simulator.motion import ROUND, Meter, Window, lagged, position, wave

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

Quantity = Callable[[Work], float]
_TRAFFIC: tuple[Quantity, ...] = (
    lambda work: work.pcie_transmit,
    lambda work: work.pcie_receive,
    lambda work: work.nvlink,
)


@dataclass(frozen=True, slots=True)
class Activity:
    """What one resident did since the previous reading.

    `load` is of the multiprocessors it runs on, `weight` their part of the card.
    """

    resident: SimulatedProcess
    busy_us: int
    load: float
    weight: float
    memory_bytes: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Moment:
    """A card at one time. Power and rates are means since the previous reading."""

    card: SimulatedCard
    activities: tuple[Activity, ...]
    power_watts: float
    power_instant_watts: float
    is_capped: bool
    is_hot: bool
    clock_megahertz: int
    temperature: int
    memory_temperature: int
    energy_millijoules: int
    capped_nanoseconds: int
    hot_nanoseconds: int
    pcie_transmit_bytes: int
    pcie_receive_bytes: int
    nvlink_bytes: int
    pcie_transmit_rate: float
    pcie_receive_rate: float
    nvlink_rate: float
    rounds: int


class Tape:
    """Everything that repeats is laid out once; a moment is then a few look-ups."""

    def __init__(self, card: SimulatedCard, seed: int) -> None:
        # Not a secret, and a string seed gives the same numbers on every machine.
        random = Random(f"{seed} {card.index}")  # noqa: S311
        self.card = card
        self._weights = tuple(_weight(card, resident) for resident in card.processes)
        self._loads = _loads(card, random)
        self._busy = tuple(Meter(round(load * 1e6) for load in loads) for loads in self._loads)
        self._demand = [IDLE_WATTS + self._total(lambda work: work.watts, second) for second in range(ROUND)]
        self._power = [round(1000 * _drawn(watts, random)) for watts in self._demand]
        inlet = 27 + random.random() * 4 + card.warmth
        self._heat = lagged([inlet + power / 18_000 for power in self._power], 25)
        transmit, receive, nvlink = (
            [int(self._total(quantity, second)) for second in range(ROUND)] for quantity in _TRAFFIC
        )
        self._energy = Meter(self._power, start=random.randrange(10**11, 10**12))
        self._capped = Meter(10**9 if watts > CAP_WATTS else 0 for watts in self._demand)
        self._hot = Meter(10**9 if heat >= HOT_CELSIUS else 0 for heat in self._heat)
        self._transmitted = Meter(transmit, start=random.randrange(10**12, 10**13))
        self._received = Meter(receive, start=random.randrange(10**12, 10**13))
        self._linked = Meter(nvlink, start=0)

    def at(self, window: Window) -> Moment:
        second, now = window.last_second, window.end
        return Moment(
            card=self.card,
            activities=tuple(self._activities(window)),
            power_watts=self._energy.rate(window) / 1000,
            power_instant_watts=self._power[second] / 1000,
            is_capped=self._demand[second] > CAP_WATTS,
            is_hot=self._heat[second] >= HOT_CELSIUS,
            clock_megahertz=_clock(self._demand[second], self._heat[second]),
            temperature=round(self._heat[second]),
            memory_temperature=round(self._heat[second] * 1.08 + 3),
            energy_millijoules=self._energy.at(now),
            capped_nanoseconds=self._capped.at(now),
            hot_nanoseconds=self._hot.at(now),
            pcie_transmit_bytes=self._transmitted.at(now),
            pcie_receive_bytes=self._received.at(now),
            nvlink_bytes=self._linked.at(now),
            pcie_transmit_rate=self._transmitted.rate(window),
            pcie_receive_rate=self._received.rate(window),
            nvlink_rate=self._linked.rate(window),
            rounds=position(now)[0],
        )

    def busy_us(self, window: Window) -> int:
        """How long the card worked, for anybody."""
        return sum(busy.during(window) for busy in self._busy)

    def loads(self, elapsed: float) -> list[tuple[int, float]]:
        """Each process's load at a time, by PID."""
        _, second, _ = position(elapsed)
        return [(one.pid, loads[second]) for one, loads in zip(self.card.processes, self._loads, strict=True)]

    def _activities(self, window: Window) -> Iterator[Activity]:
        for resident, busy, weight in zip(self.card.processes, self._busy, self._weights, strict=True):
            yield Activity(
                resident=resident,
                busy_us=busy.during(window),
                load=busy.rate(window) / 1e6,
                weight=weight,
                memory_bytes=_memory(resident, window.last_second),
            )

    def _total(self, quantity: Quantity, second: int) -> float:
        return sum(
            loads[second] * weight * quantity(resident.work)
            for resident, loads, weight in zip(self.card.processes, self._loads, self._weights, strict=True)
        )


def _weight(card: SimulatedCard, resident: SimulatedProcess) -> float:
    for part in card.slices:
        if part.gpu_instance_id == resident.instance:
            return part.profile.multiprocessors / MULTIPROCESSORS
    return 1.0


def _loads(card: SimulatedCard, random: Random) -> list[list[float]]:
    """Each resident's load. Those who share the same multiprocessors crowd each other out."""
    wanted = [wave(resident.rhythm, random) for resident in card.processes]
    if card.slices:
        return wanted
    crowding = [max(1.0, sum(second) / CEILING) for second in zip(*wanted, strict=True)]
    return [[load / crowd for load, crowd in zip(loads, crowding, strict=True)] for loads in wanted]


def _drawn(demand: float, random: Random) -> float:
    return min(demand, CAP_WATTS) + random.random() * 2


def _clock(demand: float, heat: float) -> int:
    """Slow down once the card is too hot and, in steps, once it wants more than it may draw."""
    if demand <= IDLE_WATTS:
        return IDLE_CLOCK
    if heat >= HOT_CELSIUS:
        return HOT_CLOCK
    return max(1200, MAX_CLOCK - 30 * int(max(0.0, demand - CAP_WATTS)))


def _memory(resident: SimulatedProcess, second: int) -> int:
    # The PID puts processes out of step with one another.
    turn = 2 * math.pi * (second + resident.pid) / ROUND
    swing = resident.swing_bytes * (1 - math.cos(turn)) / 2
    return resident.memory_bytes + int(swing) // PAGE * PAGE
