"""The processes on a card: compute, graphics and MPS clients, and their memory; and the driver's windows of time."""

import time
from collections.abc import Iterable
from typing import Any, NamedTuple

import pynvml
from msgspec.structs import replace

from podgpu.model import BusyWindow, Process
from podgpu.sources.nvml import node_clock
from podgpu.sources.nvml.handle import Handle

LISTS = {
    "compute": "ComputeRunningProcesses_v3",
    "graphics": "GraphicsRunningProcesses_v3",
    "mps": "MPSComputeRunningProcesses_v3",
}
LARGEST_PID = 4_194_304
NO_INSTANCE = NO_FIGURE = 2**32 - 1
WINDOW = 200_000  # microseconds that the driver measures in
KEPT_SECONDS = 15.0  # for which the driver keeps a window, and a little more


# Of a card. It has no room for as many contexts that do any work; what a tenant may list beyond is not read.
MOST_PROCESSES = 2048


class Listing(NamedTuple):
    """`is_complete` is False if a list could not be read, or not to its end, so that there may be more processes."""

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
    if len(found) > MOST_PROCESSES:
        handle.tracker.errors["too_many_processes"] += 1
        largest = sorted(found.items(), key=lambda item: item[1].memory_bytes or 0, reverse=True)
        found, is_complete = dict(largest[:MOST_PROCESSES]), False
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


class DriverWindows:
    """The card's own busy time in each of the driver's windows of 200 ms. One call returns all new windows.

    The utilization of processes is made of the same windows, but here each is reported by itself. The driver keeps
    those of the last 14 seconds, and stamps them by the node's clock.
    """

    def __init__(self, handle: Handle) -> None:
        self._handle = handle
        self._last_stamp = node_clock.now()
        self._clock = node_clock.NodeClock()
        self._mixed_until = 0.0  # monotonic seconds

    def read(self) -> tuple[BusyWindow, ...]:
        if self._clock.was_set_back():
            # Until the driver forgets the older windows, they look like new ones.
            self._last_stamp = node_clock.now()
            self._mixed_until = time.monotonic() + KEPT_SECONDS
        answer = self._handle.call("nvmlDeviceGetSamples", function=self._list) or ()
        samples = [sample for sample in answer if self._last_stamp < sample.timeStamp <= node_clock.now()]
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
        self._last_stamp = node_clock.now()

    def _list(self, raw: Any) -> list[Any]:
        _, samples = pynvml.nvmlDeviceGetSamples(raw, pynvml.NVML_GPU_UTILIZATION_SAMPLES, self._last_stamp)
        return list(samples)
