"""GPM: the profiling counters of Hopper and newer cards. It needs neither DCGM nor privileges.

A metric is the mean between two samples. The driver answers 0 without an error for ids that do not exist, so only the
ids of catalog rows are read.

    pair    two samples of a card, and what GPM makes of them
    pulse   ten glimpses a second of how busy a card is
    tenths  which tenth of a second a glimpse is about
"""

import time
from collections.abc import Iterator

from podgpu.catalog.row import Gpm, Metric
from podgpu.model import Reading
from podgpu.sources.nvml import plan
from podgpu.sources.nvml.gpm.pair import Pair
from podgpu.sources.nvml.handle import Handle

CLOSEST_SAMPLES = 0.1  # seconds that the driver requires between two samples


def _gpm(row: Metric) -> Gpm:
    assert isinstance(row.read, Gpm)  # noqa: S101 - plan.GPM_ROWS holds nothing else
    return row.read


IDS = sorted({_gpm(row).id for row in plan.GPM_ROWS})


class Profiler:
    """Profiles a GPU, or one of its GPU instances through the GPU's handle."""

    def __init__(self, handle: Handle, gpu_instance_id: int | None = None) -> None:
        self._handle = handle
        self._pair = Pair(handle, IDS, gpu_instance_id)
        self._rows = [row for row in plan.GPM_ROWS if row.mig or gpu_instance_id is None]
        self._taken_at = 0.0
        self._seen: set[Metric] = set()
        self._sums: dict[Metric, float] = {}

    @staticmethod
    def supported(handle: Handle) -> bool | None:
        """Ask whether the device can be profiled. Return None if it does not answer."""
        support = handle.call("nvmlGpmQueryDeviceSupport")
        return None if support is None else bool(support.isSupportedDevice)

    def open(self) -> bool:
        """Take the first sample. Return False if the device has no profiling after all."""
        if not self._pair.open():
            return False
        self._taken_at = time.monotonic()
        return True

    def read(self) -> Iterator[Reading]:
        """Yield the means since the previous read. Wait if the last sample is too recent."""
        time.sleep(max(0.0, self._taken_at + CLOSEST_SAMPLES - time.monotonic()))
        if not self._pair.step():
            return
        before, self._taken_at = self._taken_at, time.monotonic()
        if (values := self._pair.values()) is not None:
            for row in self._rows:
                yield from self._reading(row, values.get(_gpm(row).id), self._taken_at - before)

    def close(self) -> None:
        self._pair.close()

    def _reading(self, row: Metric, value: float | None, seconds: float) -> Iterator[Reading]:
        if value:
            self._seen.add(row)
        if _gpm(row).doubtful and row not in self._seen:
            return
        for reading in plan.reading(row, value, self._handle.journal):
            if _gpm(row).integral:
                self._sums[row] = self._sums.get(row, 0.0) + reading.value * seconds
                yield Reading(row.name, self._sums[row], row.label_values)
            else:
                yield reading
