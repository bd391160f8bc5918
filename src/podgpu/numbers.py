"""Writes numbers for people, by one table. `web/numbers.js` does the same for the page.

A value is taken to 15 significant digits, which every decimal of that length survives in binary; then it is rounded, a
half away from zero. What is unknown, or no number, is a dash.
"""

from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from decimal import ROUND_HALF_UP, Context, Decimal
from functools import partial
from typing import TypeGuard

from msgspec import Struct

UNKNOWN = "-"
MOST = 1e30  # no quantity is larger, so such a number is written as unknown

KIB, MIB, GIB = 2.0**10, 2.0**20, 2.0**30
MINUTE, HOUR, DAY = 60.0, 3600.0, 86400.0


class Step(Struct, frozen=True):
    """One unit of a quantity. It applies to numbers that are written as less than `below`, in this unit.

    `unit` follows the number directly, so it begins with the space, if there is one. `units` is its plural.
    With `down`, the value is rounded to an integer first, and then cut to whole units; what is left is written in
    `rest`, if there is one.
    """

    unit: str = ""
    factor: float = 1.0
    decimals: int = 0
    below: float | None = None
    units: str = ""
    down: bool = False
    rest: tuple[float, str] | None = None


class QuantityFormat(Struct, frozen=True):
    """`zero` is for exactly 0. `trims` cuts zeros off the end of decimals. A value below `least` is written as that."""

    steps: tuple[Step, ...]
    zero: Step
    trims: bool = False
    least: float | None = None


def _power(unit: str, factor: float) -> tuple[Step, ...]:
    """Three significant digits, which fit a column of seven characters."""
    decimals = ((2, 10.0), (1, 100.0), (0, 1000.0))
    return tuple(Step(unit, factor, number, below) for number, below in decimals)


QUANTITIES: Mapping[str, QuantityFormat] = {
    "ratio": QuantityFormat((Step("%", 0.01),), zero=Step("%")),
    "gpus": QuantityFormat(
        (
            Step(" GPU", decimals=2, below=100, units=" GPUs"),
            Step(" GPU", decimals=1, below=1000, units=" GPUs"),
            Step(" GPU", units=" GPUs"),
        ),
        zero=Step(" GPU", units=" GPUs"),
        trims=True,
    ),
    "memory": QuantityFormat(
        (Step(" GiB", GIB, 2, 1), Step(" GiB", GIB, 1, 10_000), Step(" GiB", GIB)),
        zero=Step(" GiB", decimals=1),
    ),
    "size": QuantityFormat(
        (Step(" KiB", KIB, 0, 1024), Step(" MiB", MIB, 1, 1024), Step(" GiB", GIB, 1)),
        zero=Step(" KiB"),
    ),
    "power": QuantityFormat(
        (
            Step(" W", 1, 1, 10),
            Step(" W", 1, 0, 1000),
            *_power(" kW", 1e3),
            *_power(" MW", 1e6),
            Step(" GW", 1e9, 2),
        ),
        zero=Step(" W"),
    ),
    "energy": QuantityFormat(
        (
            Step(" J", 1, 0, HOUR),
            Step(" Wh", HOUR, 1, 1000),
            Step(" kWh", HOUR * 1e3, 1, 1000),
            Step(" MWh", HOUR * 1e6, 2),
        ),
        zero=Step(" J"),
    ),
    "frequency": QuantityFormat((Step(" MHz", 1e6),), zero=Step(" MHz")),
    "rate": QuantityFormat(
        (Step(" kB/s", 1e3, 0, 1000), Step(" MB/s", 1e6, 0, 1000), Step(" GB/s", 1e9, 1)), zero=Step(" kB/s")
    ),
    "temperature": QuantityFormat((Step(" °C"),), zero=Step(" °C")),
    "duration": QuantityFormat(
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
    "age": QuantityFormat(  # short enough for a column
        (
            Step("s", 1, 0, 120),
            Step("m", MINUTE, below=120, down=True),
            Step("h", HOUR, below=48, down=True),
            Step("d", DAY, down=True),
        ),
        zero=Step("s"),
        least=0,
    ),
    "money": QuantityFormat((Step(decimals=2),), zero=Step(decimals=2)),
    "money 0": QuantityFormat((Step(),), zero=Step()),  # of a currency without decimals
    "money 3": QuantityFormat((Step(decimals=3),), zero=Step(decimals=3)),
    "gpu hours": QuantityFormat(
        (Step(" GPU hour", 1, 4, 1, " GPU hours"), Step(" GPU hour", 1, 2, units=" GPU hours")),
        zero=Step(" GPU hour", decimals=2, units=" GPU hours"),
        trims=True,
    ),
    "kilowatt hours": QuantityFormat(
        (Step(" kWh", 1, 4, 1), Step(" kWh", 1, 2)),
        zero=Step(" kWh", decimals=2),
        trims=True,
    ),
    "times": QuantityFormat((Step("x", decimals=2),), zero=Step("x"), trims=True),
    "count": QuantityFormat((Step(),), zero=Step()),
}

# Plurals that are not made with an s, by the last word of the noun.
PLURALS: Mapping[str, str] = {"process": "processes", "switch": "switches"}

GROUP = ","  # between each three digits before the point
POINT = "."
MINUS = "-"
RANGE = "–"
LIKELY = "~"  # before a range that is likely, not proven

# A time of the past. A terminal, and the page without scripts, may be read anywhere: UTC, with the date. The page
# knows its reader's clock: `14:03` today, `17 Nov 14:03` else, and the year where it is another one. It says once which
# clock that is. Hours run to 24 everywhere, as in logs. The names of strftime depend on the locale.
DAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")
MOMENT = "%Y-%m-%d %H:%M:%S UTC"
MONTHS = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")

TABLE = {
    "quantities": QUANTITIES,
    "plurals": PLURALS,
    "unknown": UNKNOWN,
    "most": MOST,
    "group": GROUP,
    "point": POINT,
    "minus": MINUS,
    "range": RANGE,
    "likely": LIKELY,
    "months": MONTHS,
}

Number = float | None

_SIGNIFICANT = Context(prec=15, rounding=ROUND_HALF_UP)
_PLAIN = Context(prec=60, rounding=ROUND_HALF_UP)  # room for all digits of the largest number
_PLACES = [Decimal(1).scaleb(-decimals) for decimals in range(8)]
_ONE = _PLACES[0]


def write(quantity: str, value: Number) -> str:
    """Write it with its unit."""
    if not _known(value):
        return UNKNOWN
    how = QUANTITIES[quantity]
    value = value if how.least is None else max(value, how.least)
    step, size = _step(how, value)
    number = _signed(size, step.decimals, is_negative=value < 0, trims=how.trims)
    if step.rest is not None and (rest := _left(abs(value), step.factor, step.rest[0])):
        return f"{number}{step.unit} {rest}{step.rest[1]}"
    return f"{number}{step.unit if not step.units or 0 < size <= 1 else step.units}"


def bare(quantity: str, value: Number) -> str:
    """Write it without its unit, where the words around say which."""
    if not _known(value):
        return UNKNOWN
    how = QUANTITIES[quantity]
    step, size = _step(how, value)
    return _signed(size, step.decimals, is_negative=value < 0, trims=how.trims)


percent = partial(write, "ratio")
gpus = partial(write, "gpus")  # `0.25 GPU`, `1.3 GPUs`, `3 GPUs`
gpu_number = partial(bare, "gpus")  # where the column, or the word beside it, says so
memory = partial(write, "memory")
gib = partial(bare, "memory")  # for a column that is headed GiB
bytes_on_disk = partial(write, "size")
watts = partial(write, "power")
energy = partial(write, "energy")  # of joules
celsius = partial(write, "temperature")
duration = partial(write, "duration")  # `42 ms`, `2.1 s`, `12 s`, `5 min`, `3 h 12 min`, `5 d 4 h`
age = partial(write, "age")  # a duration for a narrow column: `42s`, `35m`, `12h`, `9d`
times = partial(write, "times")  # `2x`
integer = partial(write, "count")


def part_of(quantity: str, part: Number, total: Number) -> str:
    """Write `691 of 700 W`: a unit that both have is written once."""
    is_alike = _known(part) and _known(total) and (part == 0 or _unit(quantity, part) == _unit(quantity, total))
    return f"{bare(quantity, part) if is_alike else write(quantity, part)} of {write(quantity, total)}"


def _unit(quantity: str, value: float) -> str:
    return _step(QUANTITIES[quantity], value)[0].unit


def gib_of(used: Number, total: Number) -> str:
    """Write `used / total`, for a column that is headed GiB."""
    return UNKNOWN if used is None and total is None else f"{gib(used)} / {gib(total)}"


def count(things: int, noun: str) -> str:
    """`1 process`, `2 processes`, `3 more pods`."""
    *before, last = noun.split(" ")
    many = " ".join([*before, PLURALS.get(last, f"{last}s")])
    return f"{integer(things)} {noun if abs(things) == 1 else many}"


def coverage(ratio: Number) -> str:
    """Write a part that was seen: never 100% of what was not seen in full."""
    text = percent(ratio)
    return f"<{text}" if _known(ratio) and ratio < 1 and text == percent(1) else text


def money(value: Number, currency: str = "", digits: int = 2) -> str:
    """Without a currency for a column that is headed by it. `digits` are the currency's decimals."""
    written = bare("money" if digits == 2 else f"money {digits}", value)
    return written if written == UNKNOWN or not currency else f"{written} {currency}"


def column(quantity: str, value: Number, total: Number) -> str:
    """Write a value of a column, without its unit, with the decimals that the column's total has."""
    if not _known(value):
        return UNKNOWN
    step = _step(QUANTITIES[quantity], total if _known(total) else value)[0]
    return _signed(_rounded(abs(value), step), step.decimals, is_negative=value < 0)


def bounds(least: Number, most: Number) -> str:
    """Write `12–34`, in percent; nothing where they are unknown, or the same once they are written."""
    return _range(least, most, partial(bare, "ratio"))


def column_range(quantity: str, least: Number, most: Number, total: Number) -> str:
    """Write `1.2–3.4` as values of a column; nothing where they are unknown, or the same once they are written."""
    return _range(least, most, lambda value: column(quantity, value, total))


def _range(least: Number, most: Number, text: Callable[[Number], str]) -> str:
    if not _known(least) or not _known(most):
        return ""
    low, high = text(least), text(most)
    return "" if low == high else f"{low}{RANGE}{high}"


def use(ratio: Number, least: Number = None, most: Number = None, certainty: str = "bounded") -> str:
    """Write `23% (12–34)`, the number and its bounds where there is a doubt, or `23% (~12–34)`, with a likely range."""
    span = bounds(least, most)
    likely = LIKELY if certainty == "estimated" else ""
    return f"{percent(ratio)} ({likely}{span})" if span and _known(ratio) else percent(ratio)


def exact(number: int, places: int) -> str:
    """Write an integer of the books in a larger unit, all of its digits."""
    return f"{Decimal(number).scaleb(-places):f}"


def since(at: float, now: float) -> str:
    """Write when something began, as it is said: `14:03 UTC`, `Thursday`, `5 Nov` or `31 Dec 2025`."""
    try:
        began, today = (datetime.fromtimestamp(time, UTC).date() for time in (at, now))
    except (ValueError, OverflowError, OSError):
        return UNKNOWN
    days = (today - began).days
    if days == 0:
        return f"{datetime.fromtimestamp(at, UTC):%H:%M} UTC"
    if 0 < days < len(DAYS):
        return DAYS[began.weekday()]
    year = "" if began.year == today.year else f" {began.year}"
    return f"{began.day} {MONTHS[began.month - 1]}{year}"


def minute(at: float) -> str:
    """Write a time in UTC with its year, for what is kept: `1 Nov 2026 14:03`."""
    time = datetime.fromtimestamp(at, UTC)
    return f"{time.day} {MONTHS[time.month - 1]} {time.year} {time:%H:%M}"


def moment(at: Number) -> str:
    """Write a time of the past: `2026-11-15 14:03:11 UTC`."""
    try:
        return UNKNOWN if at is None else datetime.fromtimestamp(at, UTC).strftime(MOMENT)
    except (ValueError, OverflowError, OSError):
        return UNKNOWN


def _known(value: Number) -> TypeGuard[float]:
    return value is not None and -MOST <= value <= MOST


def _step(how: QuantityFormat, value: float) -> tuple[Step, Decimal]:
    """Find the step that a value is written by, and what is written without its sign."""
    if value == 0:
        return how.zero, Decimal(0)
    size = abs(value)
    for step in how.steps:
        if step.below is None:
            return step, _rounded(size, step)
        if size / step.factor < step.below and (written := _rounded(size, step)) < step.below:
            return step, written
    raise AssertionError("the last step has no end")


def _rounded(size: float, step: Step) -> Decimal:
    if step.down:
        return Decimal(_seconds(size) // int(step.factor))
    scaled = _SIGNIFICANT.create_decimal(size / step.factor)
    return scaled.quantize(_PLACES[step.decimals], context=_PLAIN)


def _left(size: float, factor: float, unit: float) -> int:
    return _seconds(size) % int(factor) // int(unit)


def _seconds(size: float) -> int:
    return int(_SIGNIFICANT.create_decimal(size).quantize(_ONE, context=_PLAIN))


def _signed(size: Decimal, decimals: int, *, is_negative: bool, trims: bool = False) -> str:
    text = f"{size:.{decimals}f}"
    digits, _, fraction = text.partition(".")
    fraction = fraction.rstrip("0") if trims else fraction
    grouped = f"{int(digits):,}".replace(",", GROUP) if len(digits) > 3 else digits
    number = f"{grouped}{POINT}{fraction}" if fraction else grouped
    return f"{MINUS}{number}" if is_negative and size else number
