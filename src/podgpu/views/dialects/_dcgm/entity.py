"""What has rows of its own: a card, or each GPU instance of a card that is split by MIG."""

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from math import isfinite

from podgpu.catalog.row import Metric, Unit
from podgpu.catalog.units import JOULES, MIB, RATIO, WATTS
from podgpu.model import Device, Instance, Reading
from podgpu.views.dialects._dcgm.counters import Counter

# DCGM repeats a card's value for each of its instances, but not these.
_CARD_ALONE = frozenset(
    {
        "utilization_ratio",
        "memory_utilization_ratio",
        "encoder_utilization_ratio",
        "decoder_utilization_ratio",
        "remapped_rows",
        "row_remap_pending",
        "row_remap_failed",
        "pcie_transmit_bytes_per_second",
        "pcie_receive_bytes_per_second",
    }
)
DECIMALS = 6  # as dcgm-exporter prints fractions
_FRACTIONS = (WATTS, RATIO, JOULES)
_COMPUTE_PART = re.compile(r"[0-9]+c\.")


@dataclass(frozen=True, slots=True)
class Entity:
    """`instances` are the compute instances of one GPU instance, none for a whole card."""

    device: Device
    instances: tuple[Instance, ...] = ()

    @property
    def migs(self) -> tuple[str, ...]:
        """What claims and bookings call it: UUIDs of MIG devices, or nothing for a whole card."""
        return tuple(one.mig.uuid for one in self.instances) or ("",)

    @property
    def profile(self) -> str:
        """The GPU instance's: that of a compute instance within it begins with its own part."""
        return _COMPUTE_PART.sub("", self.instances[0].mig.profile, count=1) if self.instances else ""

    def owns(self, row: Metric) -> bool:
        """Whether its value of the row is its own, and not the card's."""
        return row.mig or not self.instances

    def values(self, counter: Counter) -> dict[tuple[str, ...], float]:
        """Return the values in the counter's unit, by those of the row's own labels: most often one, by none."""
        totals: dict[tuple[str, ...], float] = {}
        for row in counter.rows:
            for labels, value in self._row(row).items():
                totals[labels] = totals.get(labels, 0.0) + value
        named = {labels: told(value, counter.unit) for labels, value in totals.items()}
        return {labels: value for labels, value in named.items() if value is not None}

    def _row(self, row: Metric) -> dict[tuple[str, ...], float]:
        fitting = (one for one in self._readings(row) if _fits(one, row))
        return {one.labels if row.own_labels else (): one.value for one in fitting}

    def _readings(self, row: Metric) -> tuple[Reading, ...]:
        if self.instances and row.mig:
            return self.instances[0].readings  # memory and activity are those of the GPU instance
        return () if self.instances and row.name in _CARD_ALONE else self.device.readings


def entities(devices: Iterable[Device]) -> Iterator[Entity]:
    for device in devices:
        parts: dict[int, tuple[Instance, ...]] = {}
        for one in device.instances:
            place = one.mig.gpu_instance_id
            parts[place] = (*parts.get(place, ()), one)
        yield from (Entity(device, instances) for instances in parts.values() or [()])


def told(value: float, unit: Unit) -> float | None:
    """Turn a base value into what DCGM says. Most are whole numbers: MiB are cut, the rest is rounded.

    There is none for what is too large for a number.
    """
    quotient = value / unit.factor
    if not isfinite(quotient):
        return None
    return float(int(quotient)) if unit is MIB else rounded(quotient, unit)


def rounded(quotient: float, unit: Unit) -> float:
    return round(quotient, DECIMALS) if unit in _FRACTIONS else float(round(quotient))


def _fits(reading: Reading, row: Metric) -> bool:
    if reading.metric != row.name or not isfinite(reading.value):
        return False
    return (
        len(reading.labels) == len(row.own_labels) if row.own_labels else reading.labels == row.label_values
    )
