"""GPM: the profiling counters of Hopper and newer cards. It needs neither DCGM nor privileges.

A metric is the mean between two samples. The driver answers 0 without an error for ids that do not exist, so only the
ids of catalog rows are read.
"""

import time
from collections import deque
from collections.abc import Iterator, Sequence
from contextlib import suppress
from math import inf
from typing import Any

import pynvml

from podgpu.catalog.row import Gpm, Metric
from podgpu.model import Reading
from podgpu.sources.nvml import plan
from podgpu.sources.nvml.handle import Handle
from podgpu.sources.nvml.window_split import BusySample

CLOSEST_SAMPLES = 0.1  # seconds that the driver requires between two samples
MOST_BUSY_SAMPLES = 300  # half a minute; the oldest are dropped
BUSY_METRIC = pynvml.NVML_GPM_METRIC_GRAPHICS_UTIL  # of the whole card, as in `graphics_engine_active_ratio`
RETRY_SECONDS = 30.0  # after a device that can be profiled, or does not say, gave no sample

IDS = sorted({gpm.id for _, gpm in plan.GPM_ROWS})
WHOLE_IDS = sorted({gpm.id for _, gpm in plan.GPM_ROWS if gpm.part_of is None})
DIVIDED_IDS = {gpm.part_of for _, gpm in plan.GPM_ROWS if gpm.part_of is not None}


class GpmSamples:
    """The last two samples of a GPU, or of one of its GPU instances through the GPU's handle."""

    def __init__(self, handle: Handle, ids: Sequence[int], gpu_instance_id: int | None = None) -> None:
        self._handle = handle
        self._sample_call = (
            ("nvmlGpmSampleGet",) if gpu_instance_id is None else ("nvmlGpmMigSampleGet", gpu_instance_id)
        )
        self._samples: list[Any] = []
        self._request = pynvml.c_nvmlGpmMetricsGet_t()
        self._request.version = pynvml.NVML_GPM_METRICS_GET_VERSION
        self.ask(ids)

    def ask(self, ids: Sequence[int]) -> None:
        """Ask for these from now on."""
        self._ids = ids
        self._request.numMetrics = len(ids)
        for metric, id_ in zip(self._request.metrics, ids, strict=False):
            metric.metricId = id_

    def open(self) -> bool:
        """Take the first sample. Return False, with nothing held, if the device gives none."""
        try:
            self._samples = [pynvml.nvmlGpmSampleAlloc(), pynvml.nvmlGpmSampleAlloc()]
        except pynvml.NVMLError:
            self._handle.tracker.errors["gpm_sample"] += 1
            return False
        if self.take():
            return True
        self.close()
        return False

    @property
    def is_open(self) -> bool:
        return bool(self._samples)

    def take(self) -> bool:
        """Take the next sample in place of the older one."""
        if self._handle.call(*self._sample_call, self._samples[0]) is None:
            return False
        self._samples.reverse()
        return True

    def means(self) -> dict[int, float] | None:
        """Return the means between the two samples, by id. None if there is no answer."""
        self._request.sample1, self._request.sample2 = self._samples
        try:
            self._handle.tracker.run("nvmlGpmMetricsGet", pynvml.nvmlGpmMetricsGet, self._request)
        except pynvml.NVMLError:
            self._handle.tracker.errors["gpm_metrics"] += 1
            return None
        answers = zip(self._ids, self._request.metrics, strict=False)
        return {id_: metric.value for id_, metric in answers if not metric.nvmlReturn}

    def close(self) -> None:
        for sample in self._samples:
            with suppress(pynvml.NVMLError):  # the library may have freed it together with its card
                pynvml.nvmlGpmSampleFree(sample)
        self._samples = []


class Profiler:
    """Profiles a GPU, or one of its GPU instances through the GPU's handle."""

    def __init__(self, handle: Handle, gpu_instance_id: int | None = None) -> None:
        self._handle = handle
        self._open_due = 0.0
        self._samples = GpmSamples(handle, WHOLE_IDS, gpu_instance_id)
        self._asks_parts = False
        self._rows = [(row, gpm) for row, gpm in plan.GPM_ROWS if row.mig or gpu_instance_id is None]
        self._taken_at = 0.0
        self._seen: set[Metric] = set()
        self._sums: dict[Metric, float] = {}

    @property
    def is_open(self) -> bool:
        return self._samples.is_open

    def open(self) -> None:
        """Take the first sample if the device can be profiled. A failure may pass, so it is tried again later."""
        if self.is_open or (now := time.monotonic()) < self._open_due:
            return
        self._open_due = now + RETRY_SECONDS
        support = self._handle.call("nvmlGpmQueryDeviceSupport")
        if support is None:
            return
        if not support.isSupportedDevice:
            self._open_due = inf
        elif self._samples.open():
            self._taken_at = time.monotonic()

    def read(self) -> Iterator[Reading]:
        """Yield the means since the previous read. Wait if the last sample is too recent."""
        if not self.is_open:
            return
        time.sleep(max(0.0, self._taken_at + CLOSEST_SAMPLES - time.monotonic()))
        if not self._samples.take():
            return
        before, self._taken_at = self._taken_at, time.monotonic()
        if (means := self._samples.means()) is not None:
            for row, gpm in self._rows:
                if found := self._reading(row, gpm, means.get(gpm.id), self._taken_at - before):
                    yield found
            if not self._asks_parts and any(means.get(id_) for id_ in DIVIDED_IDS):
                self._samples.ask(IDS)
                self._asks_parts = True

    def close(self) -> None:
        self._samples.close()

    def _reading(self, row: Metric, gpm: Gpm, value: float | None, seconds: float) -> Reading | None:
        if value:
            self._seen.add(row)
        elif gpm.doubtful and row not in self._seen:
            return None
        reading = plan.reading(row, value, self._handle.tracker)
        if reading and gpm.integral:
            self._sums[row] = self._sums.get(row, 0.0) + reading.value * seconds
            return Reading(row.name, self._sums[row], row.label_values)
        return reading


class BusySampler:
    """Samples ten times a second how busy a card is. The samples of the profiler are not touched."""

    def __init__(self, handle: Handle) -> None:
        self._samples = GpmSamples(handle, [BUSY_METRIC])
        self._sampled_ns = 0
        self._kept: deque[BusySample] = deque(maxlen=MOST_BUSY_SAMPLES)

    def sample(self) -> None:
        """Take a GPM sample. Together with the one before it makes a BusySample."""
        now = time.time_ns()
        if not self._samples.is_open:
            self._sampled_ns = now if self._samples.open() else 0
            return
        if not self._samples.take():
            self.close()
            return
        busy = (self._samples.means() or {}).get(BUSY_METRIC)
        if busy is not None and 0 <= busy <= 100 and now > self._sampled_ns:  # a clock may be set back
            self._kept.append(BusySample(self._sampled_ns, now, busy / 100))
        self._sampled_ns = now

    def drain(self) -> list[BusySample]:
        """Return the samples since the last time."""
        found = list(self._kept)
        self._kept.clear()
        return found

    def close(self) -> None:
        self._samples.close()
        self._kept.clear()
