"""How values are written: podgpu's own way, and those of the systems whose pages it stands in for.

Each takes all numbers of a family at once. What is not a finite number becomes `NOTHING`.
"""

from collections.abc import Callable, Iterable
from decimal import Decimal
from math import isfinite

import msgspec

NOTHING = "null"

Writing = Callable[[Iterable[float]], list[str]]


def own(values: Iterable[float]) -> list[str]:
    """Every number as a float, as short as it can be: `33.0`, `0.25`, `150754820096.0`."""
    # One call formats all numbers of the family: much faster than repr, as exact. It writes `null` for NaN
    # and the infinities. `float` is there for the odd int or bool.
    return msgspec.json.encode(list(map(float, values))).decode()[1:-1].split(",")


def _plain(value: float) -> str:
    return f"{value:.0f}" if value == int(value) else f"{Decimal(repr(value)):f}"


def _go(value: float) -> str:
    """Go switches to the exponent from 1e6 on, and below 1e-4."""
    if value == 0 or 1e-4 <= abs(value) < 1e6:
        return _plain(value)
    mantissa, exponent = f"{Decimal(repr(value)).normalize():e}".split("e")
    return f"{mantissa}e{int(exponent):+03d}"


def _each(write: Callable[[float], str]) -> Writing:
    def written(values: Iterable[float]) -> list[str]:
        return [write(value) if isfinite(value) else NOTHING for value in values]

    return written


def decimals(places: int) -> Writing:
    """C's and Go's `%f` with so many places: `652.557000`."""
    return _each(f"{{:.{places}f}}".format)


# C's and Go's `%d`: `33`.
whole_numbers = decimals(0)
# As few digits as say it, never an exponent: `33`, `15.507`. Go's `FormatFloat` with `f` and -1.
shortest = _each(_plain)
# Prometheus' Go library: `33`, `0.25`, and from a million on an exponent, `1.50754820096e+11`.
go = _each(_go)
# Prometheus' C++ library: 16 digits, and an exponent only beyond them.
cpp = _each("{:.16g}".format)


def in_json(value: float | None) -> float | None:
    """A number as Go writes it into JSON: without a fraction if it has none. None stays None."""
    return int(value) if value is not None and isfinite(value) and value == int(value) else value
