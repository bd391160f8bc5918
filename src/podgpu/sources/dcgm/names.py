"""What the names on a page mean: the catalog's aliases for all versions, and masks, which do not fit the catalog."""

from collections import defaultdict
from dataclasses import dataclass

from podgpu.catalog import device_rows
from podgpu.catalog.row import Call, Metric
from podgpu.catalog.units import FLAG, Unit


@dataclass(frozen=True, slots=True)
class Meaning:
    """The value is one of `row`, in `unit`. With `bit` it is a mask, and the row says whether that bit is set."""

    row: Metric
    unit: Unit
    bit: int | None = None

    def base(self, value: float) -> float | None:
        """Return the value in base units, or None if no card can have it."""
        if self.bit is not None:
            return float(bool(int(value) & self.bit)) if value >= 0 else None
        base = self.unit.base(value)
        return base if abs(base) <= self._ceiling else None

    @property
    def _ceiling(self) -> float:
        """The larger of the two ceilings: a profiled ratio may read 1.003."""
        own = self.row.read.unit.ceiling if self.row.read else 0.0
        return max(own, self.unit.ceiling)

    @property
    def is_card_wide(self) -> bool:
        """Whether a value on the row of a MIG instance describes the whole card, such as its clocks, power and heat.

        Utilisation does not: the hardware does not report it for a card in MIG mode, whatever the row says.
        """
        return not self.row.mig and not self.row.name.endswith("utilization_ratio")


_CLOCK_MASKS = ("DCGM_FI_DEV_CLOCKS_EVENT_REASONS", "DCGM_FI_DEV_CLOCK_THROTTLE_REASONS")


def _aliases() -> dict[str, tuple[Meaning, ...]]:
    """Leave out names that stand for the sum of several rows, such as both directions of NVLink."""
    found: dict[str, set[Meaning]] = defaultdict(set)
    for row in device_rows():
        for alias in (row.dcgm, row.dcgm49, row.dcgm1x, *row.dcgm_also):
            if alias:
                found[alias.name].add(Meaning(row, alias.unit))
    return {name: tuple(meanings) for name, meanings in found.items() if len(meanings) == 1}


def _masks() -> dict[str, tuple[Meaning, ...]]:
    bits = tuple(
        Meaning(row, FLAG, row.read.bit)
        for row in device_rows()
        if isinstance(row.read, Call) and row.read.function == "CurrentClocksEventReasons"
    )
    return dict.fromkeys(_CLOCK_MASKS, bits)


MEANINGS: dict[str, tuple[Meaning, ...]] = _aliases() | _masks()

# How every name of dcgm-exporter begins, known or not: a row that names a GPU shows that there is one.
PREFIXES = ("DCGM_", "dcgm_")
