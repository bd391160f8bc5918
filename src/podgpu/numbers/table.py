"""How each quantity is written: its units, its decimals, where one unit gives way to the next. Data only.

The page gets this table as JSON, so Python and JavaScript write by the same one.
"""

from collections.abc import Mapping

from msgspec import Struct

UNKNOWN = "-"
MOST = 1e30  # a larger number is of nothing there is, and is written as unknown

KIB, MIB, GIB = 2.0**10, 2.0**20, 2.0**30
MINUTE, HOUR, DAY = 60.0, 3600.0, 86400.0


class Step(Struct, frozen=True):
    """One unit of a quantity. It holds for numbers that are written as less than `below`, in this unit.

    `unit` stands right after the number, so it begins with the space, if there is one. `units` is its plural.
    With `down`, the value is rounded to a whole one first, and then cut to whole units; what is left is written in
    `rest`, if there is one.
    """

    unit: str = ""
    factor: float = 1.0
    decimals: int = 0
    below: float | None = None
    units: str = ""
    down: bool = False
    rest: tuple[float, str] | None = None


class Quantity(Struct, frozen=True):
    """`zero` is for what is exactly 0. `trims` cuts zeros off the end of decimals. What is below `least` is `least`."""

    steps: tuple[Step, ...]
    zero: Step
    trims: bool = False
    least: float | None = None


def _power(unit: str, factor: float) -> tuple[Step, ...]:
    """Three digits at least, so that it fits a column of seven characters."""
    decimals = ((2, 10.0), (1, 100.0), (0, 1000.0))
    return tuple(Step(unit, factor, number, below) for number, below in decimals)


QUANTITIES: Mapping[str, Quantity] = {
    "ratio": Quantity((Step("%", 0.01),), zero=Step("%")),
    "gpus": Quantity(
        (
            Step(" GPU", decimals=2, below=100, units=" GPUs"),
            Step(" GPU", decimals=1, below=1000, units=" GPUs"),
            Step(" GPU", units=" GPUs"),
        ),
        zero=Step(" GPU", units=" GPUs"),
        trims=True,
    ),
    "memory": Quantity(
        (Step(" GiB", GIB, 2, 1), Step(" GiB", GIB, 1, 10_000), Step(" GiB", GIB)),
        zero=Step(" GiB", decimals=1),
    ),
    "size": Quantity(
        (Step(" KiB", KIB, 0, 1024), Step(" MiB", MIB, 1, 1024), Step(" GiB", GIB, 1)),
        zero=Step(" KiB"),
    ),
    "power": Quantity(
        (
            Step(" W", 1, 1, 10),
            Step(" W", 1, 0, 1000),
            *_power(" kW", 1e3),
            *_power(" MW", 1e6),
            Step(" GW", 1e9, 2),
        ),
        zero=Step(" W"),
    ),
    "energy": Quantity(
        (
            Step(" J", 1, 0, HOUR),
            Step(" Wh", HOUR, 1, 1000),
            Step(" kWh", HOUR * 1e3, 1, 1000),
            Step(" MWh", HOUR * 1e6, 2),
        ),
        zero=Step(" J"),
    ),
    "temperature": Quantity((Step(" °C"),), zero=Step(" °C")),
    "duration": Quantity(
        (
            Step(" ms", 0.001, 0, 1000),
            Step(" s", 1, 1, 10),
            Step(" s", 1, 0, 120),
            Step(" min", MINUTE, below=60, down=True),
            Step(" h", HOUR, below=48, down=True, rest=(MINUTE, " min")),
            Step(" d", DAY, down=True, rest=(HOUR, " h")),
        ),
        zero=Step(" s"),
        trims=True,
        least=0,
    ),
    "age": Quantity(  # short enough for a column
        (
            Step("s", 1, 0, 120),
            Step("m", MINUTE, below=120, down=True),
            Step("h", HOUR, below=48, down=True),
            Step("d", DAY, down=True),
        ),
        zero=Step("s"),
        least=0,
    ),
    "money": Quantity((Step(decimals=2),), zero=Step(decimals=2)),
    "gpu hours": Quantity(
        (Step(" GPU hour", 1, 4, 1, " GPU hours"), Step(" GPU hour", 1, 2, units=" GPU hours")),
        zero=Step(" GPU hour", decimals=2, units=" GPU hours"),
        trims=True,
    ),
    "kilowatt hours": Quantity(
        (Step(" kWh", 1, 4, 1), Step(" kWh", 1, 2)),
        zero=Step(" kWh", decimals=2),
        trims=True,
    ),
    "times": Quantity((Step("x", decimals=2),), zero=Step("x"), trims=True),
    "count": Quantity((Step(),), zero=Step()),
}

# Plurals that are not made with an s, by the last word of the noun.
PLURALS: Mapping[str, str] = {"process": "processes", "switch": "switches"}

GROUP = ","  # between each three digits before the point
POINT = "."
MINUS = "-"
RANGE = "–"

# A time of the past. A terminal, and the page without scripts, may be read by anybody: UTC, with the date. The page
# knows its reader's clock: the date only where it is not today. Hours run to 24 everywhere, as in logs.
MOMENT = "%Y-%m-%d %H:%M:%S UTC"
TIME_ON_PAGE = {"hour": "2-digit", "minute": "2-digit", "hourCycle": "h23"}
DAY_ON_PAGE = {"day": "numeric", "month": "short"}

TABLE = {
    "quantities": QUANTITIES,
    "plurals": PLURALS,
    "unknown": UNKNOWN,
    "most": MOST,
    "group": GROUP,
    "point": POINT,
    "minus": MINUS,
    "range": RANGE,
    "time": TIME_ON_PAGE,
    "day": DAY_ON_PAGE,
}
