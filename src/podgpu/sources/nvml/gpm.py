"""GPM: the profiling counters of Hopper and newer cards. It needs neither DCGM nor privileges.

A metric is the mean between two samples. The driver answers 0 without an error for ids that do not exist, so only the
ids of catalog rows are read.
"""

import time
from collections.abc import Iterator
from contextlib import suppress
from typing import Any

import pynvml

from podgpu.catalog.row import Gpm, Metric
from podgpu.model import Reading
from podgpu.sources.nvml import plan
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
        self._instance = gpu_instance_id
        self._rows = [row for row in plan.GPM_ROWS if row.mig or gpu_instance_id is None]
        self._samples: list[Any] = []
        self._taken_at = 0.0
        self._request = _request()
        self._seen: set[Metric] = set()
        self._sums: dict[Metric, float] = {}

    @staticmethod
    def supported(handle: Handle) -> bool | None:
        """Ask whether the device can be profiled. Return None if it does not answer."""
        support = handle.call("nvmlGpmQueryDeviceSupport")
        return None if support is None else bool(support.isSupportedDevice)

    def open(self) -> bool:
        """Take the first sample. Return False if the device has no profiling after all."""
        try:
            self._samples = [pynvml.nvmlGpmSampleAlloc(), pynvml.nvmlGpmSampleAlloc()]
        except pynvml.NVMLError:
            self._handle.journal.errors["gpm_sample"] += 1
            return False
        if self._sample(self._samples[0]):
            self._taken_at = time.monotonic()
            return True
        self.close()
        return False

    def read(self) -> Iterator[Reading]:
        """Yield the means since the previous read. Wait if the last sample is too recent."""
        time.sleep(max(0.0, self._taken_at + CLOSEST_SAMPLES - time.monotonic()))
        if not self._sample(self._samples[1]):
            return
        before, self._taken_at = self._taken_at, time.monotonic()
        self._request.sample1, self._request.sample2 = self._samples
        self._samples.reverse()
        if self._compute():
            values = {
                one.metricId: one.value for one in self._request.metrics[: len(IDS)] if not one.nvmlReturn
            }
            for row in self._rows:
                yield from self._reading(row, values.get(_gpm(row).id), self._taken_at - before)

    def close(self) -> None:
        for sample in self._samples:
            with suppress(pynvml.NVMLError):  # the library may have freed it together with its card
                pynvml.nvmlGpmSampleFree(sample)
        self._samples = []

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

    def _sample(self, sample: Any) -> bool:
        if self._instance is None:
            return self._handle.call("nvmlGpmSampleGet", sample) is not None
        return self._handle.call("nvmlGpmMigSampleGet", self._instance, sample) is not None

    def _compute(self) -> bool:
        self._handle.journal.begin("nvmlGpmMetricsGet")
        try:
            pynvml.nvmlGpmMetricsGet(self._request)
        except pynvml.NVMLError:
            self._handle.journal.errors["gpm_metrics"] += 1
            return False
        finally:
            self._handle.journal.end()
        return True


def _request() -> Any:
    request = pynvml.c_nvmlGpmMetricsGet_t()
    request.version = pynvml.NVML_GPM_METRICS_GET_VERSION
    request.numMetrics = len(IDS)
    for metric, id_ in zip(request.metrics, IDS, strict=False):
        metric.metricId = id_
    return request
