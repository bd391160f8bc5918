"""How a card's energy is divided: the idle part by reserved share, the active part by the weights of busy time.

A counter that is read or that moves only now and then brings the energy of several cycles at once. Until it does, the
power meter says how much was drawn in each cycle. These estimates divide what the counter then shows: nothing is booked
that was not counted, and a party that ran in one of these cycles pays for that cycle.
"""

from collections.abc import Mapping

from podgpu.ledger.activity import Weights
from podgpu.ledger.cycle import NO_ENERGY, EnergyParts, Interval, Party
from podgpu.ledger.shares import PARTS, Reserved, split

# A card can be idle and awake: clocks up, contexts held. If it drew more than this times its least power, a process
# worked between two samples.
AWAKE = 2
# A counter that stands for longer is broken, and the estimates since then say little.
LONGEST_US = 600_000_000


def settle(
    interval: Interval, busy_us: int, weights: Weights, claimed: Reserved, estimates: EnergyParts
) -> tuple[EnergyParts, EnergyParts]:
    """Return what is booked now, and the estimates for the next cycle. `estimates` are those since the last booking."""
    drawn_mj = None if interval.is_gap else interval.drawn_mj
    if drawn_mj is not None and (interval.stands or estimates.elapsed_us):
        own = _divided(interval, busy_us, weights, claimed, drawn_mj, interval.idle_drawn_mj)
        estimates = _plus(estimates, own)
        if interval.stands:
            return NO_ENERGY, estimates if estimates.elapsed_us < LONGEST_US else NO_ENERGY
        if estimates.idle_mj + estimates.active_mj:
            return _scaled(estimates, interval.energy_mj or 0), NO_ENERGY
    return _divided(interval, busy_us, weights, claimed, interval.energy_mj or 0, interval.idle_mj), NO_ENERGY


def _divided(
    interval: Interval, busy_us: int, weights: Weights, claimed: Reserved, energy_mj: int, idle_mj: int
) -> EnergyParts:
    works = busy_us > 0 or sum(weights.of.values()) > 0 or interval.is_gap
    # Where the idle power is unknown, all of it is the idle card's if nothing ran.
    most_idle = energy_mj if not idle_mj and not works else idle_mj * (1 if works else AWAKE)
    idle = min(energy_mj, most_idle)
    held = sum(claimed.shares.values())
    shares: dict[Party, int] = {"unknown": held} if interval.is_gap else dict(claimed.shares.items())
    # Where shares or instances have unknown sizes, it is unknown how much of the card is not held.
    free = "idle" if claimed.are_sized else "unknown"
    shares[free] = shares.get(free, 0) + max(0, PARTS - held)
    return EnergyParts(
        idle=split(idle, shares), active=weights.divide(energy_mj - idle), elapsed_us=interval.elapsed_us
    )


def _plus(first: EnergyParts, second: EnergyParts) -> EnergyParts:
    return EnergyParts(
        idle=_sums(first.idle, second.idle),
        active=_sums(first.active, second.active),
        elapsed_us=first.elapsed_us + second.elapsed_us,
    )


def _scaled(parts: EnergyParts, energy_mj: int) -> EnergyParts:
    """Divide another sum in the same proportions, exactly."""
    idle_mj = energy_mj * parts.idle_mj // (parts.idle_mj + parts.active_mj)
    return EnergyParts(
        idle=split(idle_mj, parts.idle),
        active=split(energy_mj - idle_mj, parts.active),
        elapsed_us=parts.elapsed_us,
    )


def _sums(first: Mapping[Party, int], second: Mapping[Party, int]) -> dict[Party, int]:
    return {party: first.get(party, 0) + second.get(party, 0) for party in {**first, **second}}
