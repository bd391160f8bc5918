"""Kubernetes quantities: `8Gi`, `1500m`, `16e9`."""

import re
from fractions import Fraction

_QUANTITY = re.compile(r"(?P<number>[0-9]{1,18}(?:\.[0-9]{1,9})?)(?P<unit>[A-Za-z]{0,2}|[eE][0-9]{1,2})")
_UNITS = (
    {"": Fraction(1), "m": Fraction(1, 1000)}
    | {unit: Fraction(1000**power) for power, unit in enumerate("kMGTPE", 1)}
    | {f"{unit}i": Fraction(1024**power) for power, unit in enumerate("KMGTPE", 1)}
    | {f"{mark}{power}": Fraction(10**power) for mark in "eE" for power in range(19)}
)


def quantity(value: str | int) -> Fraction | None:
    """Read a quantity that is more than nothing."""
    if isinstance(value, int):
        return Fraction(value) if value > 0 else None
    found = _QUANTITY.fullmatch(value)
    if found is None or found["unit"] not in _UNITS:
        return None
    return Fraction(found["number"]) * _UNITS[found["unit"]] or None


def amount(value: str) -> float | None:
    """Read a quantity that may be nothing. None if it is no quantity."""
    found = quantity(value)
    return float(found) if found is not None else 0.0 if value == "0" else None
