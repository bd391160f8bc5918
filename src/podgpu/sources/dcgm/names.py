"""What the names on a page mean: the catalog's aliases of all generations, and a few spellings it has no room for."""

from collections import defaultdict
from dataclasses import dataclass

from podgpu.catalog import device_rows
from podgpu.catalog.row import Call, Metric, Unit
from podgpu.catalog.units import BYTES_PER_SECOND, FLAG


@dataclass(frozen=True, slots=True)
class Meaning:
    """A value of `unit` is one of `row`. With `bit` it is a mask, and the row is whether that bit is set."""

    row: Metric
    unit: Unit
    bit: int | None = None

    def base(self, value: float) -> float | None:
        """Return the value in base units, None where no card can mean it."""
        if self.bit is not None:
            return float(bool(int(value) & self.bit)) if value >= 0 else None
        factor = self.unit.factor
        # Divided by thousands rather than multiplied by thousandths: 1234 mJ is 1.234 J to the last digit.
        base = value * factor if factor >= 1 else value / round(1 / factor)
        return base if abs(base) <= self._ceiling else None

    @property
    def _ceiling(self) -> float:
        """Whichever of the two worlds allows more: a profiled ratio may read 1.003."""
        own = self.row.read.unit.ceiling if self.row.read else 0.0
        return max(own, self.unit.ceiling)

    @property
    def is_card_wide(self) -> bool:
        """Whether what DCGM prints on the row of a MIG instance is the whole card's: its clocks, power, heat.

        Use is not. The hardware does not tell it for a card with MIG on, whatever a row of an instance says.
        """
        return not self.row.mig and not self.row.name.endswith("utilization_ratio")


# Rates under names that sound like totals; the second pair is the later exporter's with 1.x names.
_RATES = {
    "DCGM_FI_PROF_NVLINK_TX_BYTES": "nvlink_transmit_bytes_per_second",
    "DCGM_FI_PROF_NVLINK_RX_BYTES": "nvlink_receive_bytes_per_second",
    "dcgm_fi_prof_pcie_tx_bytes": "pcie_transmit_bytes_per_second",
    "dcgm_fi_prof_pcie_rx_bytes": "pcie_receive_bytes_per_second",
}
_CLOCK_MASKS = ("DCGM_FI_DEV_CLOCKS_EVENT_REASONS", "DCGM_FI_DEV_CLOCK_THROTTLE_REASONS")


def _aliases() -> dict[str, tuple[Meaning, ...]]:
    """A name for the sum of several rows, as of both directions of NVLink, tells none of them."""
    found: dict[str, set[Meaning]] = defaultdict(set)
    for row in device_rows():
        for alias in (row.dcgm, row.dcgm49, row.dcgm1x):
            if alias:
                found[alias.name].add(Meaning(row, alias.unit))
    return {name: tuple(meanings) for name, meanings in found.items() if len(meanings) == 1}


def _rates() -> dict[str, tuple[Meaning, ...]]:
    rows = {row.name: row for row in device_rows()}
    return {name: (Meaning(rows[row], BYTES_PER_SECOND),) for name, row in _RATES.items()}


def _masks() -> dict[str, tuple[Meaning, ...]]:
    bits = tuple(
        Meaning(row, FLAG, row.read.bit)
        for row in device_rows()
        if isinstance(row.read, Call) and row.read.function == "CurrentClocksEventReasons"
    )
    return dict.fromkeys(_CLOCK_MASKS, bits)


MEANINGS: dict[str, tuple[Meaning, ...]] = _aliases() | _rates() | _masks()
