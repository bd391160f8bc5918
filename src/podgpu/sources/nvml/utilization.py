"""The utilization of processes, by the driver's call that works on the card."""

import ctypes
from abc import ABC, abstractmethod
from collections.abc import Sequence
from functools import partial
from typing import Any

import pynvml
from msgspec.structs import replace

from podgpu.model import Process
from podgpu.sources.nvml import node_clock
from podgpu.sources.nvml.handle import TRIES, Handle
from podgpu.sources.nvml.process import MOST_PROCESSES, NO_FIGURE

BUSY = 0.1  # of the card's time: so much work must be somebody's
ROOM = 64  # processes in an answer, until there are more
MOST_ROOM = 65_536
REPORTED_AFTER = 1_000_000  # microseconds until the driver has certainly reported a window


class SampleCall(ABC):
    """A call for the samples of processes. The bindings ask twice, first for the size alone: a millisecond more."""

    name: str
    _entry: type[ctypes.Structure]

    def __init__(self) -> None:
        self._answer: Any = (self._entry * ROOM)()

    def since(self, stamp: int, raw: Any) -> Sequence[Any]:
        """NOT_FOUND or an empty list means that no process was active. A list that has grown is asked for again."""
        function = getattr(pynvml.nvmlLib, self.name, None)
        if function is None:
            raise pynvml.NVMLError(pynvml.NVML_ERROR_FUNCTION_NOT_FOUND)
        for _ in range(TRIES):
            code, count = self._ask(function, raw, stamp)
            if code != pynvml.NVML_ERROR_INSUFFICIENT_SIZE:
                break
            self._answer = (self._entry * min(2 * max(count, len(self._answer)), MOST_ROOM))()
        if code not in (pynvml.NVML_SUCCESS, pynvml.NVML_ERROR_NOT_FOUND):
            raise pynvml.NVMLError(code)
        samples: list[Any] = self._answer[:count] if code == pynvml.NVML_SUCCESS else []
        return samples

    @abstractmethod
    def _ask(self, function: Any, raw: Any, stamp: int) -> tuple[int, int]:
        """Return NVML's code and how many entries it wrote or has."""


class OlderCall(SampleCall):
    """It names nobody on some Blackwell cards, however busy they are."""

    name = "nvmlDeviceGetProcessUtilization"
    _entry = pynvml.c_nvmlProcessUtilizationSample_t

    def _ask(self, function: Any, raw: Any, stamp: int) -> tuple[int, int]:
        count = ctypes.c_uint(len(self._answer))
        code = function(raw, self._answer, ctypes.byref(count), ctypes.c_ulonglong(stamp))
        return code, count.value


class NewerCall(SampleCall):
    """It came with driver 550."""

    name = "nvmlDeviceGetProcessesUtilizationInfo"
    _entry = pynvml.c_nvmlProcessUtilizationInfo_v1_t

    def _ask(self, function: Any, raw: Any, stamp: int) -> tuple[int, int]:
        question = pynvml.c_nvmlProcessesUtilizationInfo_v1_t(
            version=pynvml.ProcessesUtilizationInfo_v1,
            processSamplesCount=len(self._answer),
            lastSeenTimeStamp=stamp,
            procUtilArray=self._answer,
        )
        code = function(raw, ctypes.byref(question))
        return code, question.processSamplesCount


class Utilization:
    """The utilization of processes, read in such a way that it adds up over time.

    The driver measures windows of 200 ms. Given its newest timestamp, it returns the mean of each process since then,
    and leaves out a process that did nothing. Given 0, it would count the past again.

    The driver has two calls for this. The newer is asked first, and the older one if the newer is refused or names
    nobody on a busy card. The first that names a process is `chosen` for good. Until then, nobody named on a busy card
    means that nothing is known.
    """

    def __init__(self, handle: Handle) -> None:
        self._handle = handle
        self._clock = node_clock.NodeClock()
        self._last_stamp = node_clock.now() - REPORTED_AFTER
        self._calls: tuple[SampleCall, ...] = (NewerCall(), OlderCall())
        self.chosen: str | None = None  # the call, without `nvmlDeviceGet`

    def apply(self, processes: tuple[Process, ...], *, is_busy: bool = False) -> tuple[Process, ...]:
        """Fill in the utilization, and add processes that worked but have ended. Without an answer, change nothing."""
        before, now = self._last_stamp, node_clock.now()
        if self._clock.was_set_back() or before > now:  # so the length of the window is unknown
            self._last_stamp = now
            return processes
        samples = self._samples(is_busy=is_busy)
        if samples is None:
            return processes
        by_pid = {sample.pid: sample for sample in samples}
        listed = {process.pid for process in processes}
        others = sorted(by_pid.keys() - listed, key=lambda pid: -(_ratio(by_pid[pid].smUtil) or 0.0))
        # Of a flood of brief processes, the time of the least busy is nobody's.
        ended = tuple(Process(pid=pid) for pid in sorted(others[:MOST_PROCESSES]))
        window = self._last_stamp - before
        return tuple(_with_use(process, by_pid.get(process.pid), window) for process in (*processes, *ended))

    def _samples(self, *, is_busy: bool) -> list[Any] | None:
        samples: list[Any] | None = None
        for call in self._calls:
            answer = self._handle.call(call.name, function=partial(call.since, self._last_stamp))
            if answer is None:
                continue
            samples = [sample for sample in answer if self._last_stamp < sample.timeStamp <= node_clock.now()]
            if samples:
                self._calls, self.chosen = (call,), call.name.removeprefix("nvmlDeviceGet")
            if samples or not is_busy:
                break
        if samples is None:
            return None
        newest = max((sample.timeStamp for sample in samples), default=0)
        self._last_stamp = max(self._last_stamp, newest or node_clock.now() - REPORTED_AFTER)
        return samples if samples or self.chosen or not is_busy else None


def _with_use(process: Process, sample: Any | None, window: int) -> Process:
    """A sample is the mean over the window. A process without a sample did nothing in it."""
    sm_ratio = _ratio(sample.smUtil) if sample else 0.0
    return replace(
        process,
        sm_busy_us=None if sm_ratio is None else round(sm_ratio * window),
        sm_ratio=sm_ratio,
        memory_ratio=_ratio(sample.memUtil) if sample else 0.0,
        encoder_ratio=_ratio(sample.encUtil) if sample else 0.0,
        decoder_ratio=_ratio(sample.decUtil) if sample else 0.0,
    )


def _ratio(percent: int) -> float | None:
    return None if percent == NO_FIGURE else min(percent, 100) / 100
