"""The processes on a card: compute, graphics and MPS clients, their memory and their utilization."""

import ctypes
import time
from collections.abc import Iterable
from typing import Any, NamedTuple

import pynvml
from msgspec.structs import replace

from podgpu.model import BusyWindow, Process
from podgpu.sources.nvml.handle import TRIES, Handle

LISTS = {
    "compute": "ComputeRunningProcesses_v3",
    "graphics": "GraphicsRunningProcesses_v3",
    "mps": "MPSComputeRunningProcesses_v3",
}
LARGEST_PID = 4_194_304
NO_INSTANCE = NO_FIGURE = 2**32 - 1
SAMPLES_CALL = "nvmlDeviceGetProcessUtilization"
ROOM = 64  # processes in an answer, until there are more
MOST_ROOM = 65_536
WINDOW = 200_000  # microseconds that the driver measures in
KEPT_SECONDS = 15.0  # for which the driver keeps a window, and a little more
LARGEST_DRIFT = 100_000  # microseconds that a clock may lag behind between two readings without being set
REPORTED_AFTER = 1_000_000  # microseconds until the driver has certainly reported a window


class Listing(NamedTuple):
    """`is_complete` is False if a list could not be read, so that there may be more processes."""

    processes: tuple[Process, ...]
    is_complete: bool


def running(handle: Handle, memory_total: float | None) -> Listing:
    """List the processes on a handle. A PID in two of the driver's lists is one process, not two."""
    found: dict[tuple[int, int | None, int | None], Process] = {}
    is_complete = True
    for kind, function in LISTS.items():
        entries = handle.get(function)
        if entries is None:
            # Every card lists compute processes. Many cannot list graphics or MPS clients.
            is_complete &= kind != "compute" and handle.lacks(f"nvmlDeviceGet{function}")
        elif not _plausible(entries, memory_total):
            handle.tracker.errors["process_list_layout"] += 1
            entries, is_complete = None, False
        for entry in entries or ():
            process = _process(entry, kind)
            key = (process.pid, process.gpu_instance_id, process.compute_instance_id)
            found[key] = _merged(found[key], process) if key in found else process
    ordered = sorted(found.values(), key=lambda process: (process.pid, process.gpu_instance_id or 0))
    return Listing(tuple(ordered), is_complete)


def _plausible(entries: Iterable[Any], memory_total: float | None) -> bool:
    """Drivers 535.43 to 535.86 use a longer struct for the same function, which scrambles the numbers."""
    return all(
        0 < entry.pid <= LARGEST_PID
        and (memory_total is None or entry.usedGpuMemory is None or entry.usedGpuMemory <= memory_total)
        for entry in entries
    )


def _process(entry: Any, kind: str) -> Process:
    gpu_instance = getattr(entry, "gpuInstanceId", NO_INSTANCE)
    compute_instance = getattr(entry, "computeInstanceId", NO_INSTANCE)
    return Process(
        pid=entry.pid,
        kinds=(kind,),
        memory_bytes=entry.usedGpuMemory,
        gpu_instance_id=None if gpu_instance == NO_INSTANCE else gpu_instance,
        compute_instance_id=None if compute_instance == NO_INSTANCE else compute_instance,
    )


def _merged(first: Process, second: Process) -> Process:
    known = [process.memory_bytes for process in (first, second) if process.memory_bytes is not None]
    return replace(first, kinds=(*first.kinds, *second.kinds), memory_bytes=max(known, default=None))


class NodeClock:
    """The node's wall clock, by which the driver stamps."""

    def __init__(self) -> None:
        self._ahead = _ahead()

    def was_set_back(self) -> bool:
        """Whether it was set back since the last call."""
        before, self._ahead = self._ahead, _ahead()
        return before - self._ahead > LARGEST_DRIFT


class Utilization:
    """The utilization of processes, read in such a way that it adds up over time.

    The driver measures windows of 200 ms. Given its newest timestamp, it returns the mean of each process since then,
    and leaves out a process that did nothing. Given 0, it would count the past again.
    """

    def __init__(self, handle: Handle) -> None:
        self._handle = handle
        self._clock = NodeClock()
        self._last_stamp = _now() - REPORTED_AFTER
        self._answer = (pynvml.c_nvmlProcessUtilizationSample_t * ROOM)()

    def apply(self, processes: tuple[Process, ...]) -> tuple[Process, ...]:
        """Fill in the utilization, and add processes that worked but have ended. Without an answer, change nothing."""
        before, now = self._last_stamp, _now()
        if self._clock.was_set_back() or before > now:  # so the length of the window is unknown
            self._last_stamp = now
            return processes
        samples = self._samples()
        if samples is None:
            return processes
        by_pid = {sample.pid: sample for sample in samples}
        listed = {process.pid for process in processes}
        ended = tuple(Process(pid=pid) for pid in sorted(by_pid) if pid not in listed)
        window = self._last_stamp - before
        return tuple(_with_use(process, by_pid.get(process.pid), window) for process in (*processes, *ended))

    def _samples(self) -> list[Any] | None:
        answer = self._handle.call(SAMPLES_CALL, function=self._list)
        if answer is None:
            return None
        samples = [sample for sample in answer if self._last_stamp < sample.timeStamp <= _now()]
        newest = max((sample.timeStamp for sample in samples), default=0)
        self._last_stamp = max(self._last_stamp, newest or _now() - REPORTED_AFTER)
        return samples

    def _list(self, raw: Any) -> list[Any]:
        """NOT_FOUND or an empty list means that no process was active. A list that has grown is asked for again.

        The bindings ask twice, first for the size alone. That costs the driver a millisecond.
        """
        function = getattr(pynvml.nvmlLib, SAMPLES_CALL, None)
        if function is None:
            raise pynvml.NVMLError(pynvml.NVML_ERROR_FUNCTION_NOT_FOUND)
        count, since = ctypes.c_uint(), ctypes.c_ulonglong(self._last_stamp)
        for _ in range(TRIES):
            count.value = len(self._answer)
            code = function(raw, self._answer, ctypes.byref(count), since)
            if code != pynvml.NVML_ERROR_INSUFFICIENT_SIZE:
                break
            room = min(2 * max(count.value, len(self._answer)), MOST_ROOM)
            self._answer = (pynvml.c_nvmlProcessUtilizationSample_t * room)()
        if code not in (pynvml.NVML_SUCCESS, pynvml.NVML_ERROR_NOT_FOUND):
            raise pynvml.NVMLError(code)
        samples: list[Any] = self._answer[: count.value] if code == pynvml.NVML_SUCCESS else []
        return samples


class DriverWindows:
    """The card's own busy time in each of the driver's windows of 200 ms. One call returns all new windows.

    The utilization of processes is made of the same windows, but here each is reported by itself. The driver keeps
    those of the last 14 seconds, and stamps them by the node's clock.
    """

    def __init__(self, handle: Handle) -> None:
        self._handle = handle
        self._last_stamp = _now()
        self._clock = NodeClock()
        self._mixed_until = 0.0  # monotonic seconds

    def read(self) -> tuple[BusyWindow, ...]:
        if self._clock.was_set_back():
            # Until the driver forgets the older windows, they look like new ones.
            self._last_stamp = _now()
            self._mixed_until = time.monotonic() + KEPT_SECONDS
        answer = self._handle.call("nvmlDeviceGetSamples", function=self._list) or ()
        samples = [sample for sample in answer if self._last_stamp < sample.timeStamp <= _now()]
        self._last_stamp = max((sample.timeStamp for sample in samples), default=self._last_stamp)
        if time.monotonic() < self._mixed_until:
            return ()
        return tuple(
            BusyWindow(
                (sample.timeStamp - WINDOW) * 1000,
                sample.timeStamp * 1000,
                WINDOW * 10 * min(sample.sampleValue.uiVal, 100),
            )
            for sample in samples
        )

    def skip(self) -> None:
        """Leave out the windows so far."""
        self._last_stamp = _now()

    def _list(self, raw: Any) -> list[Any]:
        _, samples = pynvml.nvmlDeviceGetSamples(raw, pynvml.NVML_GPU_UTILIZATION_SAMPLES, self._last_stamp)
        return list(samples)


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


def _now() -> int:
    return time.time_ns() // 1000


def _ahead() -> int:
    """By how many microseconds the wall clock is ahead of the monotonic clock."""
    return _now() - time.monotonic_ns() // 1000
