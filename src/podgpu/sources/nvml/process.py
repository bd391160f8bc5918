"""Who is on the card: compute, graphics and MPS clients, their memory, and their share of the time."""

import time
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import msgspec
import pynvml

from podgpu.model import Process
from podgpu.sources.nvml.handle import Handle

LISTS = {
    "compute": "ComputeRunningProcesses_v3",
    "graphics": "GraphicsRunningProcesses_v3",
    "mps": "MPSComputeRunningProcesses_v3",
}
LARGEST_PID = 4_194_304
INITIAL_PID_NAMESPACE = 0xEFFFFFFC
NO_INSTANCE = 2**32 - 1
NEWEST_WINDOW = 1_000_000  # microseconds: a window this old has surely been reported


def running(handle: Handle, memory_total: float | None) -> tuple[Process, ...]:
    """List the processes on a handle, one entry each: a PID in two lists is one process, not two."""
    found: dict[tuple[int, int | None, int | None], Process] = {}
    for kind, function in LISTS.items():
        entries = handle.get(function) or ()
        if not _plausible(entries, memory_total):
            handle.journal.errors["process_list_layout"] += 1
            continue
        for entry in entries:
            process = _process(entry, kind)
            key = (process.pid, process.gpu_instance_id, process.compute_instance_id)
            found[key] = _merged(found[key], process) if key in found else process
    return tuple(sorted(found.values(), key=lambda process: (process.pid, process.gpu_instance_id or 0)))


def all_are_seen() -> bool:
    """Whether an empty list means that nobody is there: the driver hides processes of other PID namespaces."""
    return Path("/proc/self/ns/pid").stat().st_ino == INITIAL_PID_NAMESPACE


def _plausible(entries: Iterable[Any], memory_total: float | None) -> bool:
    """Drivers 535.43 to 535.86 answer in a longer struct under the same name; its numbers are scrambled."""
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


def _merged(one: Process, other: Process) -> Process:
    known = [memory for memory in (one.memory_bytes, other.memory_bytes) if memory is not None]
    return msgspec.structs.replace(
        one, kinds=(*one.kinds, *other.kinds), memory_bytes=max(known) if known else None
    )


class Utilization:
    """The driver's process utilisation, read so that it adds up.

    The driver books a window of 200 ms at a time. Asked with the newest stamp it gave before, it answers with
    each process's mean since then; a process it leaves out did nothing. Asked with 0 it counts history again.
    """

    def __init__(self, handle: Handle) -> None:
        self._handle = handle
        self._last_stamp = _now() - NEWEST_WINDOW

    def apply(self, processes: tuple[Process, ...]) -> tuple[Process, ...]:
        """Fill in use, None where the device cannot tell, and add processes that worked but are gone already."""
        before = self._last_stamp
        samples = self._samples()
        if samples is None:
            return processes
        by_pid = {sample.pid: sample for sample in samples}
        listed = {process.pid for process in processes}
        ended = tuple(Process(pid=pid) for pid in sorted(by_pid) if pid not in listed)
        window = self._last_stamp - before
        return tuple(_with_use(one, by_pid.get(one.pid), window) for one in (*processes, *ended))

    def _samples(self) -> list[Any] | None:
        name = "nvmlDeviceGetProcessUtilization"
        if self._handle.refuses(name):
            return None
        samples = [sample for sample in self._ask(name) if self._last_stamp < sample.timeStamp <= _now()]
        if self._handle.refuses(name):
            return None
        newest = max((sample.timeStamp for sample in samples), default=0)
        self._last_stamp = max(self._last_stamp, newest or _now() - NEWEST_WINDOW)
        return samples

    def _ask(self, name: str) -> Iterator[Any]:
        """NOT_FOUND or an empty success means that nobody was active. The list may grow between two calls."""
        journal = self._handle.journal
        for _ in range(3):
            journal.begin(name)
            try:
                yield from pynvml.nvmlDeviceGetProcessUtilization(self._handle.raw, self._last_stamp)
            except pynvml.NVMLError as error:
                if error.value == pynvml.NVML_ERROR_INSUFFICIENT_SIZE:
                    continue
                if error.value not in (pynvml.NVML_SUCCESS, pynvml.NVML_ERROR_NOT_FOUND):
                    self._handle.fail(error.value, name)
            finally:
                journal.end()
            return


def _with_use(process: Process, sample: Any | None, window: int) -> Process:
    """A sample's figure is the mean over the window; a process without one had none of it."""
    return msgspec.structs.replace(
        process,
        sm_busy_us=round(_ratio(sample.smUtil) * window) if sample else 0,
        sm_ratio=_ratio(sample.smUtil) if sample else 0.0,
        memory_ratio=_ratio(sample.memUtil) if sample else 0.0,
        encoder_ratio=_ratio(sample.encUtil) if sample else 0.0,
        decoder_ratio=_ratio(sample.decUtil) if sample else 0.0,
    )


def _ratio(percent: int) -> float:
    return min(percent, 100) / 100


def _now() -> int:
    return time.time_ns() // 1000
