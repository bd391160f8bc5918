"""Who draws how much of a card's power now: the card's own reading, divided as the energy was that it last counted.

So the power of all adds up to the card's at any moment, and the only one on a card has what the card has.
"""

from msgspec import Struct

DECIMALS = 6  # of a watt


class Draw(Struct, frozen=True, kw_only=True):
    """`energy_mj` is what the card's counter moved by the last time it moved, in `energy_us` if that is known.

    `power_watts` is the card's own reading, None if it has none. Then power is energy over its time.
    """

    energy_mj: int | None = None
    energy_us: int | None = None
    power_watts: float | None = None

    def watts(self, part_mj: int | None) -> float | None:
        """Return the power of whoever was booked this part of the energy, None if that is unknown."""
        if part_mj is None or self.energy_mj is None:
            return None
        if self.power_watts is None:
            return part_mj * 1e3 / self.energy_us if self.energy_us else None
        if self.energy_mj == 0:
            return None  # nothing says how the power is divided
        if part_mj == self.energy_mj:
            return self.power_watts
        return round(self.power_watts * part_mj / self.energy_mj, DECIMALS)
