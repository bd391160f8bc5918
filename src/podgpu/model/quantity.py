"""Quantities as Kubernetes writes them, such as `8Gi`, `1500m`, `16e9` and `+.5k`, and sums of what may be unknown."""

import re
from collections.abc import Iterable
from fractions import Fraction
from typing import TypeVar

N = TypeVar("N", int, float)

_QUANTITY = re.compile(
    r"\+?(?P<number>[0-9]{1,18}(?:\.[0-9]{0,9})?|\.[0-9]{1,9})(?P<unit>[A-Za-z]{0,2}|[eE][+-]?[0-9]{1,2})"
)
_UNITS = (
    {"": Fraction(1), "m": Fraction(1, 1000), "u": Fraction(1, 1000**2), "n": Fraction(1, 1000**3)}
    | {unit: Fraction(1000**power) for power, unit in enumerate("kMGTPE", 1)}
    | {f"{unit}i": Fraction(1024**power) for power, unit in enumerate("KMGTPE", 1)}
    | {f"e{power}": Fraction(10) ** power for power in range(-18, 19)}
)


def quantity(value: str | int) -> Fraction | None:
    """Read a quantity that is more than nothing."""
    found = Fraction(value) if isinstance(value, int) else _parsed(value)
    return found if found and found > 0 else None


def amount(value: str) -> float | None:
    """Read a quantity that may be nothing. None if it is no quantity."""
    found = _parsed(value)
    return None if found is None else float(found)


def total(values: Iterable[N | None]) -> N | None:
    """Add up. A sum of which a part is unknown is unknown, and so is a sum of nothing."""
    found = list(values)
    known = [value for value in found if value is not None]
    return sum(known[1:], known[0]) if known and len(known) == len(found) else None


def total_of_known(values: Iterable[N | None]) -> N | None:
    """Add up what is known; None if nothing is."""
    known = [value for value in values if value is not None]
    return sum(known[1:], known[0]) if known else None


def _parsed(text: str) -> Fraction | None:
    found = _QUANTITY.fullmatch(text)
    unit = _UNITS.get(_unit(found["unit"])) if found else None
    return None if found is None or unit is None else Fraction(found["number"]) * unit


def _unit(text: str) -> str:
    """Write an exponent in one way: `E+03` as `e3`. `E` alone is a unit."""
    is_exponent = text[:1] in ("e", "E") and len(text) > 1 and text[-1].isdigit()
    return f"e{int(text[1:])}" if is_exponent else text
