"""Two samples of a card, the older and the newer, and what GPM makes of them."""

from collections.abc import Sequence
from contextlib import suppress
from typing import Any

import pynvml

from podgpu.sources.nvml.handle import Handle


class Pair:
    """Samples of a GPU, or of one of its GPU instances through the GPU's handle."""

    def __init__(self, handle: Handle, ids: Sequence[int], gpu_instance_id: int | None = None) -> None:
        self._handle = handle
        self._instance = gpu_instance_id
        self._samples: list[Any] = []
        self._request = _request(ids)

    def open(self) -> bool:
        """Take the first sample. Return False, with nothing held, if the device gives none."""
        try:
            self._samples = [pynvml.nvmlGpmSampleAlloc(), pynvml.nvmlGpmSampleAlloc()]
        except pynvml.NVMLError:
            self._handle.journal.errors["gpm_sample"] += 1
            return False
        if self.step():
            return True
        self.close()
        return False

    @property
    def is_open(self) -> bool:
        return bool(self._samples)

    def step(self) -> bool:
        """Take the next sample in place of the older one."""
        if self._taken(self._samples[0]):
            self._samples.reverse()
            return True
        return False

    def values(self) -> dict[int, float] | None:
        """Return the means between the two, by id. None if there is no answer."""
        self._request.sample1, self._request.sample2 = self._samples
        self._handle.journal.begin("nvmlGpmMetricsGet")
        try:
            pynvml.nvmlGpmMetricsGet(self._request)
        except pynvml.NVMLError:
            self._handle.journal.errors["gpm_metrics"] += 1
            return None
        finally:
            self._handle.journal.end()
        asked = self._request.metrics[: self._request.numMetrics]
        return {one.metricId: one.value for one in asked if not one.nvmlReturn}

    def close(self) -> None:
        for sample in self._samples:
            with suppress(pynvml.NVMLError):  # the library may have freed it together with its card
                pynvml.nvmlGpmSampleFree(sample)
        self._samples = []

    def _taken(self, sample: Any) -> bool:
        if self._instance is None:
            return self._handle.call("nvmlGpmSampleGet", sample) is not None
        return self._handle.call("nvmlGpmMigSampleGet", self._instance, sample) is not None


def _request(ids: Sequence[int]) -> Any:
    request = pynvml.c_nvmlGpmMetricsGet_t()
    request.version = pynvml.NVML_GPM_METRICS_GET_VERSION
    request.numMetrics = len(ids)
    for metric, id_ in zip(request.metrics, ids, strict=False):
        metric.metricId = id_
    return request
