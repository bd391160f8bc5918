"""The sampler process. Its main thread never calls NVML, so it always answers in time.

It answers each ReadRequest on stdin with a Report on stdout, and exits when stdin ends. Its argument, if it has one, is
the path of the library.
"""

import os
import select
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from queue import Empty, SimpleQueue
from typing import Any

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from podgpu.model import Device, Fault, Gpu, Report
from podgpu.sources.child import frame, init_child, next_request
from podgpu.sources.nvml import ReadRequest, failure
from podgpu.sources.nvml.handle import CallTracker
from podgpu.sources.nvml.reader import GpuReader
from podgpu.sources.nvml.session import EventListener, FoundGpu, Session

ENUMERATE_SECONDS = 10.0
CLOSE_SECONDS = 0.5
BUSY_SAMPLE_SECONDS = 0.1
LATE_REPORTS = 2  # a reading is not shown if it is older than this many reports may take


class Worker:
    """A thread for NVML calls, so that a stuck call blocks nothing else.

    It runs one task at a time, in order, and puts (worker, result or exception) of each into `results`. Only the main
    thread uses `tasks`, the number of tasks whose result it has not taken.
    """

    def __init__(self, name: str, results: SimpleQueue[tuple["Worker", Any]]) -> None:
        self.tracker = CallTracker()
        self.tasks = 0
        self._began = 0.0
        self._queue: SimpleQueue[Callable[[], Any]] = SimpleQueue()
        self._results = results
        threading.Thread(target=self._run, name=name, daemon=True).start()

    @property
    def busy(self) -> bool:
        return self.tasks > 0

    def submit(self, task: Callable[[], Any]) -> None:
        """Start a task, or let it follow the one that runs."""
        if not self.busy:
            self._began = time.monotonic()
        self.tasks += 1
        self._queue.put(task)

    def hung(self) -> Fault:
        """Report the call that a busy worker is in, and for how many seconds it has been busy."""
        return Fault(reason="hung", call=self.tracker.call, seconds=time.monotonic() - self._began)

    def _run(self) -> None:
        while True:
            task = self._queue.get()
            try:
                result = task()
            except Exception as error:
                result = error
            self._results.put((self, result))


class GpuSlot(Struct):
    """The reader of a card and its thread. `absent` says why the driver no longer lists the card.

    `reading` is the newest, until a report shows it. `is_sampling` says that the last task of the thread was a busy
    sample, which a reading may follow.
    """

    worker: Worker
    reader: GpuReader
    absent: str = ""
    reading: Device | None = None
    is_sampling: bool = False

    @property
    def is_readable(self) -> bool:
        """A busy sample is short: that it runs when a report begins does not mean that the card hangs."""
        is_free = not self.worker.busy or (self.is_sampling and self.worker.tasks == 1)
        return is_free and not self.absent


class Sampler:
    """All threads of the process: one for the library, one per GPU, one for events."""

    def __init__(self, library: str | None) -> None:
        self.is_finished = False
        self._results: SimpleQueue[tuple[Worker, Any]] = SimpleQueue()
        self._control = Worker("control", self._results)
        self._listener = EventListener()
        self._session = Session(library, self._control.tracker, self._listener)
        self._slots: dict[str, GpuSlot] = {}
        self._unnamed: tuple[Device, ...] = ()  # the driver counts them but gives no handle or UUID
        self._enumerate_due = 0.0
        self._fault: Fault | None = None
        self._patience = 0.0
        self._sampled: frozenset[str] = frozenset()
        self._sample_due = 0.0

    def report(self, request: ReadRequest) -> Report:
        """Read every GPU whose thread is free or in a busy sample. For others, report the call they are stuck in."""
        began = time.monotonic()
        deadline = began + request.seconds
        self._patience = request.seconds
        self._sampled = frozenset(request.sampled)
        while not self._results.empty():
            self._take(*self._results.get())
        self._refresh(deadline)
        devices = (*self._read_cards(deadline, request), *self._unnamed) if self._session.is_open else ()
        if self.is_finished:  # the session failed, not the cards
            devices = ()
        return Report(
            devices=tuple(sorted(devices, key=lambda device: device.gpu.index)),
            fault=self._fault,
            events=self._listener.drain(),
            errors=self._errors(),
            driver_version=self._session.driver_version,
            nvml_version=self._session.nvml_version,
            seconds=time.monotonic() - began,
            brief=request.brief,
        )

    @property
    def seconds_to_sample(self) -> float | None:
        """None while no card is sampled."""
        return max(0.0, self._sample_due - time.monotonic()) if any(self._to_sample()) else None

    def sample_busy(self) -> None:
        """Take busy samples, at even times. A card that does not answer is left to the next report."""
        now = time.monotonic()
        self._sample_due = BUSY_SAMPLE_SECONDS + (
            self._sample_due if now - self._sample_due < BUSY_SAMPLE_SECONDS else now
        )
        slots = [slot for slot in self._to_sample() if not slot.worker.busy]
        for slot in slots:
            slot.is_sampling = True
            slot.worker.submit(slot.reader.sample_busy)
        self._wait({slot.worker for slot in slots}, now + BUSY_SAMPLE_SECONDS / 2)

    def _to_sample(self) -> Iterator[GpuSlot]:
        """A card that works or rests all the time has no windows to split."""
        for uuid in self._sampled & self._slots.keys():
            slot = self._slots[uuid]
            if slot.reader.has_pauses and not slot.absent:
                yield slot

    def close(self) -> None:
        """Close the library if its thread is free. The exit of the process closes the rest."""
        if not self._control.busy:
            self._control.submit(self._session.close)
            self._wait({self._control}, time.monotonic() + CLOSE_SECONDS)

    def _refresh(self, deadline: float) -> None:
        """Open the library or list its GPUs again, if that is due and its thread is free."""
        now = time.monotonic()
        has_faults = self._unnamed or any(slot.reader.fault or slot.absent for slot in self._slots.values())
        is_due = now >= self._enumerate_due or has_faults or not self._session.is_open
        if is_due and not self._control.busy:
            self._fault = None
            self._enumerate_due = now + ENUMERATE_SECONDS
            self._control.submit(self._session.refresh)
            # A listing that hangs must leave time to read the known cards.
            self._wait({self._control}, (now + deadline) / 2 if self._slots else deadline)
        if self._control.busy and not self._slots:
            self._fault = self._control.hung()

    def _read_cards(self, deadline: float, request: ReadRequest) -> Iterator[Device]:
        ready = {slot.worker for slot in self._slots.values() if slot.is_readable}
        for uuid, slot in self._slots.items():
            if slot.worker in ready:
                slot.is_sampling = False
                slot.worker.submit(
                    partial(
                        slot.reader.read,
                        windows=uuid in request.windows,
                        busy_samples=uuid in self._sampled,
                        brief=request.brief,
                    )
                )
        self._wait(ready, deadline)
        for slot in self._slots.values():
            reading, slot.reading = slot.reading, None
            is_listed = not slot.absent or slot.worker in ready
            yield self._with_xid_ability(reading if reading and is_listed else _silent(slot))

    def _with_xid_ability(self, device: Device) -> Device:
        """Say whether XIDs of the card are received, and if not, why: then their number is unknown."""
        if device.fault:
            return device
        refused = self._listener.misses(device.gpu.uuid)
        return replace(
            device,
            ability=replace(device.ability, hears_xids=refused is None),
            refused=(*device.refused, refused) if refused else device.refused,
        )

    def _wait(self, awaited: Iterable[Worker], deadline: float) -> None:
        """Take results until all of these workers are free or the deadline passes."""
        left = set(awaited)
        while left:
            try:
                worker, result = self._results.get(timeout=max(0.0, deadline - time.monotonic()))
            except Empty:
                break
            self._take(worker, result)
            if not worker.busy:
                left.discard(worker)

    def _take(self, worker: Worker, result: Any) -> None:
        """Keep a reading for the next report: it is shown even if it came after the report it was for."""
        worker.tasks -= 1
        if isinstance(result, Exception):
            self._failed(result)
        elif isinstance(result, list):
            self._adopt(result)
        elif isinstance(result, Device):
            is_recent = time.monotonic() - result.at < LATE_REPORTS * self._patience
            self._slots[result.gpu.uuid].reading = result if is_recent else None

    def _failed(self, error: Exception) -> None:
        """Report the error. An open session that broke cannot be repaired: a new process must load the library."""
        if isinstance(error, failure.NvmlFailure):
            self._fault = error.fault
            self.is_finished = self._session.is_open or error.fault.reason == "driver_mismatch"
        else:
            self._fault = failure.unforeseen(error)

    def _adopt(self, found: list[FoundGpu]) -> None:
        present = {gpu.uuid: gpu for gpu in found if gpu.uuid}
        reasons = {gpu.index: gpu.reason for gpu in found if gpu.reason}
        for uuid, gpu in present.items():
            self._update_slot(uuid, gpu)
        for uuid, slot in self._slots.items():
            slot.absent = "" if uuid in present else reasons.get(slot.reader.gpu.index, "gone")
        known = {slot.reader.gpu.index for slot in self._slots.values()}
        self._unnamed = tuple(
            Device(gpu=Gpu(uuid="", index=index), fault=Fault(reason=reason))
            for index, reason in reasons.items()
            if index not in known
        )

    def _update_slot(self, uuid: str, found: FoundGpu) -> None:
        slot = self._slots.get(uuid)
        if slot is None:
            worker = Worker(f"gpu{found.index}", self._results)
            self._slots[uuid] = GpuSlot(worker, GpuReader(found.raw, uuid, found.index, worker.tracker))
        elif not slot.worker.busy and (slot.reader.fault or slot.absent or slot.reader.gpu.index != found.index):
            slot.reader.reopen(found.raw, found.index)

    def _errors(self) -> Counter[str]:
        workers = (self._control, *(slot.worker for slot in self._slots.values()))
        idle = [worker for worker in workers if not worker.busy]
        listing = Counter(["listing_hung"] if self._control.busy and self._slots else [])
        return sum((worker.tracker.take_errors() for worker in idle), listing)


def _silent(slot: GpuSlot) -> Device:
    """Return a device with the reason why its card gave no data: not listed, or stuck in a call."""
    if slot.absent:
        return Device(gpu=slot.reader.gpu, fault=slot.reader.fault or Fault(reason=slot.absent))
    return Device(gpu=slot.reader.gpu, fault=slot.worker.hung())


def main() -> None:
    requests, answers = init_child()
    decode = msgspec.msgpack.Decoder(ReadRequest).decode
    sampler = Sampler(sys.argv[1] if len(sys.argv) > 1 else None)
    while not sampler.is_finished:
        if not select.select([requests], [], [], sampler.seconds_to_sample)[0]:
            sampler.sample_busy()
            continue
        message = next_request(requests)
        if message is None:
            break
        answers.write(frame(msgspec.msgpack.encode(sampler.report(decode(message)))))
        answers.flush()
    sampler.close()
    os._exit(0)  # a normal exit would wait for threads that are stuck in the driver
