"""What a person wants to see of a card first. Unknown is None."""

from collections.abc import Iterable
from math import isfinite

from msgspec import Struct

from podgpu import numbers
from podgpu.insight.problems.cards import LEAST_SWITCHING
from podgpu.model import Card, CardUse, Reading, Sampling, Use

LEAST_SHOWN = 0.005  # of the card's time


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


def use_text(use: Use | CardUse | None) -> str:
    """Write `23% (12–34)`."""
    if isinstance(use, Use):
        return numbers.use(use.ratio, use.least, use.most)
    return numbers.percent(use.ratio if use else None)


def shows(use: Use | None) -> bool:
    """Whether it would not be written as 0."""
    return use is not None and use.ratio is not None and use.ratio >= LEAST_SHOWN


def switching(card: Card) -> str:
    """How much of the card's time goes into switching between contexts; empty where that is nothing worth a word."""
    lost = card.balance.switching_ratio if card.balance else None
    return numbers.percent(lost) if lost is not None and lost >= LEAST_SWITCHING else ""


def evasion(sampling: Sampling | None) -> str:
    """Write `52% of the GPU's busy time, samples name it 0%` of a container that evades them; else nothing."""
    if sampling is None or not sampling.evades:
        return ""
    resident, named = numbers.percent(sampling.resident_ratio), numbers.percent(sampling.named_ratio)
    return f"{resident} of the GPU's busy time, samples name it {named}"
