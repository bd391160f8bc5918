"""What a person wants to see of a card first, and how to write it. Unknown is None and written as a dash."""

from collections.abc import Iterable
from datetime import UTC, datetime
from math import isfinite

from msgspec import Struct

from podgpu.model import Band, Card, Fault, Reading, Rest, Sampling, Tenant
from podgpu.views.text import line

UNKNOWN = "-"
LEAST_SHOWN = 0.005  # of the card's time
LEAST_SWITCHING = 0.05  # of the card's time


class Glance(Struct, frozen=True, kw_only=True):
    """A field is named as the reading it shows."""

    utilization_ratio: float | None = None
    memory_used_bytes: float | None = None
    memory_total_bytes: float | None = None
    power_watts: float | None = None
    temperature_celsius: float | None = None
    sm_active_ratio: float | None = None
    tensor_active_ratio: float | None = None
    dram_active_ratio: float | None = None


def glance(readings: Iterable[Reading]) -> Glance:
    """Of several readings of one name, such as a card's temperatures, the first speaks for the card."""
    values: dict[str, float] = {}
    for reading in readings:
        if reading.metric in Glance.__struct_fields__ and isfinite(reading.value):
            values.setdefault(reading.metric, reading.value)
    return Glance(**values)


def problem(fault: Fault) -> str:
    """One line: the reason, the call it is stuck in, for how long, and what the source said."""
    words = [line(fault.reason)]
    if fault.call:
        words.append(f"in {line(fault.call)}")
    if fault.seconds > 0:
        words.append(f"for {seconds(fault.seconds)}")
    text = " ".join(words)
    return f"{text}: {line(fault.detail)}" if fault.detail else text


def percent(ratio: float | None) -> str:
    return UNKNOWN if ratio is None else f"{ratio * 100:.0f}%"


def gib(size: float | None) -> str:
    if size is None:
        return UNKNOWN
    return f"{size / 2**30:.2f}" if 0 < size < 2**30 else f"{size / 2**30:.1f}"


def memory(seen: Glance) -> str:
    """Write `used / total`."""
    known = seen.memory_used_bytes is not None or seen.memory_total_bytes is not None
    return f"{gib(seen.memory_used_bytes)} / {gib(seen.memory_total_bytes)}" if known else UNKNOWN


def whole(value: float | None, unit: str) -> str:
    return UNKNOWN if value is None else f"{value:.0f} {unit}"


def watts(value: float | None) -> str:
    """To the watt from 10 W on: a small container's part is not nothing."""
    return UNKNOWN if value is None else f"{value:.0f} W" if value == 0 or value >= 10 else f"{value:.1f} W"


def seconds(value: float | None) -> str:
    """`42 ms`, `2.1 s`, `12 s`, `5 min`, `3 h`."""
    if value is None:
        return UNKNOWN
    if value < 1:
        return f"{value * 1000:.0f} ms"
    if value < 10:
        return f"{value:.2g} s"
    if value < 120:
        return f"{value:.0f} s"
    return f"{value / 60:.0f} min" if value < 7200 else f"{value / 3600:.0f} h"


def age(value: float) -> str:
    """Short enough for a column: `42s`, `35m`, `12h`, `9d`."""
    for size, unit in ((86400, "d"), (3600, "h"), (60, "m")):
        if value >= 2 * size:
            return f"{value // size:.0f}{unit}"
    return f"{max(value, 0):.0f}s"


def moment(at: float) -> str:
    """Write a time of the past: `2026-11-15 14:03:11 UTC`."""
    try:
        return datetime.fromtimestamp(at, UTC).strftime("%Y-%m-%d %H:%M:%S UTC")
    except (ValueError, OverflowError, OSError):
        return "at a time that makes no sense"


class Use(Struct, frozen=True):
    """Parts of the whole card's time. `least` and `most` are the bounds, None where there is no doubt."""

    ratio: float | None = None
    least: float | None = None
    most: float | None = None

    @property
    def bounds(self) -> str:
        """Write `12–34`, without the percent sign; nothing where there is no doubt."""
        if self.least is None or self.most is None:
            return ""
        return f"{self.least * 100:.0f}–{self.most * 100:.0f}"

    @property
    def shows(self) -> bool:
        """Whether it would not be written as 0."""
        return self.ratio is not None and self.ratio >= LEAST_SHOWN

    def __str__(self) -> str:
        if self.ratio is None:
            return UNKNOWN
        return f"{percent(self.ratio)} ({self.bounds})" if self.bounds else percent(self.ratio)


class Uses:
    """How busy a card and everybody on it was, all of one period.

    Where looks of the driver leave a doubt, that is the last full minute, and the doubt stands beside the number. Else
    it is the time since the previous reading. A tenant that came within the minute has no number of it yet: until it
    has, the whole card goes by the previous reading. `reported` is what the card reports as its utilisation: it will do
    where nothing is booked.
    """

    def __init__(self, card: Card, reported: float | None = None) -> None:
        self._card = card
        self._reported = reported
        bands = [tenant.booking.band for tenant in card.tenants]
        whole = card.balance.band if card.balance else None
        self.is_minute = whole is not None and None not in bands and any(one and one.is_wide for one in bands)

    @property
    def of_card(self) -> Use:
        balance = self._card.balance
        if self.is_minute and balance is not None and balance.band is not None:
            return of_band(balance.band)
        ratio = balance.busy_ratio if balance else None
        return Use(self._reported if ratio is None else ratio)

    def of_tenant(self, tenant: Tenant) -> Use:
        return self._of(tenant.booking.sm_ratio, tenant.booking.band)

    def of_rest(self, rest: Rest) -> Use:
        return self._of(rest.sm_ratio, rest.band)

    def _of(self, ratio: float | None, band: Band | None) -> Use:
        if not self.is_minute:
            return Use(ratio)
        return of_band(band) if band is not None else Use()


def of_band(band: Band) -> Use:
    ratio = band.ratio(band.booked_us)
    if not band.is_wide:
        return Use(ratio)
    return Use(ratio, band.ratio(band.least_us), band.ratio(band.most_us))


def switching(card: Card) -> str:
    """How much of the card's time goes into switching between contexts; empty where that is nothing worth a word."""
    lost = card.balance.switching_ratio if card.balance else None
    return percent(lost) if lost is not None and lost >= LEAST_SWITCHING else ""


def evasion(sampling: Sampling | None) -> str:
    """Write `52% of the GPU's busy time, samples name it 0%` of a container that evades them; else nothing."""
    if sampling is None or not sampling.evades:
        return ""
    return f"{percent(sampling.resident_ratio)} of the GPU's busy time, samples name it {percent(sampling.named_ratio)}"
