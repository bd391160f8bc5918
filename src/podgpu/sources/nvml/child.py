"""The sampler process. Its main thread never calls NVML, so it always answers in time.

`python -m podgpu.sources.nvml.child [LIBRARY]`, driven over stdin and stdout (see `wire`).
"""

import os
import select
import sys
import time
from collections import Counter
from collections.abc import Collection, Iterable
from functools import partial
from queue import Empty, SimpleQueue
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from podgpu.model import Device, Fault, Gpu, Report
from podgpu.sources import pipe
from podgpu.sources.child import settle
from podgpu.sources.nvml import failure, wire
from podgpu.sources.nvml.event import EventListener
from podgpu.sources.nvml.reader import GpuReader
from podgpu.sources.nvml.session import FoundGpu, Session, Unavailable
from podgpu.sources.nvml.worker import Worker

ENUMERATE_SECONDS = 10.0
CLOSE_SECONDS = 0.5
BEAT_SECONDS = 0.1  # between two glimpses of a watched card
LATE_REPORTS = 2  # times the time that a report may take; an older reading is not shown


class Seat(Struct):
    """The reader of a card and its thread. `absent` says why the driver no longer lists the card.

    `late` is a reading that came after the report it was for. It is shown if the next one is late too. `beats` says
    that the last task of its thread was a beat, which a reading may follow.
    """

    worker: Worker
    reader: GpuReader
    absent: str = ""
    late: Device | None = None
    beats: bool = False

    @property
    def is_readable(self) -> bool:
        """A beat is short: that it runs when a report begins does not mean that the card hangs."""
        is_free = not self.worker.busy or (self.beats and self.worker.tasks == 1)
        return is_free and not self.absent


class Crew:
    """All threads of the process: one for the library, one per GPU, one for events."""

    def __init__(self, library: str | None) -> None:
        self.finished = False
        self._results: SimpleQueue[tuple[Worker, Any]] = SimpleQueue()
        self._control = Worker("control", self._results)
        self._listener = EventListener()
        self._session = Session(library, self._control.journal, self._listener)
        self._seats: dict[str, Seat] = {}
        self._unnamed: tuple[Device, ...] = ()  # the driver counts them but gives no handle or UUID
        self._enumerate_due = 0.0
        self._fault: Fault | None = None
        self._patience = 0.0
        self._watched: frozenset[str] = frozenset()
        self._beat_due = 0.0

    def report(self, request: wire.Read) -> Report:
        """Read every GPU whose thread is free, or in a beat. For the others, report the call that it is stuck in."""
        began = time.monotonic()
        deadline = began + request.seconds
        self._patience = request.seconds
        self._watched = frozenset(request.watched)
        self._take_late_results()
        self._refresh(deadline)
        devices = (
            (*self._read_cards(deadline, request.windows), *self._unnamed) if self._session.is_open else ()
        )
        if self.finished:  # the session failed, not the cards
            devices = ()
        return Report(
            devices=tuple(sorted(devices, key=lambda device: device.gpu.index)),
            fault=self._fault,
            events=self._listener.drain(),
            errors=self._errors(),
            driver_version=self._session.driver_version,
            nvml_version=self._session.nvml_version,
            seconds=time.monotonic() - began,
        )

    @property
    def seconds_to_beat(self) -> float | None:
        """None while no card is watched."""
        return max(0.0, self._beat_due - time.monotonic()) if self._watched else None

    def beat(self) -> None:
        """Take a glimpse of the watched cards, at even times. One that does not answer is left to the next report."""
        now = time.monotonic()
        self._beat_due = BEAT_SECONDS + (self._beat_due if now - self._beat_due < BEAT_SECONDS else now)
        seats = [
            seat
            for uuid, seat in self._seats.items()
            if uuid in self._watched and not seat.absent and not seat.worker.busy
        ]
        for seat in seats:
            seat.beats = True
            seat.worker.submit(seat.reader.beat)
        self._wait({seat.worker for seat in seats}, now + BEAT_SECONDS / 2)

    def close(self) -> None:
        """Close the library if its thread is free. The exit of the process closes the rest."""
        if not self._control.busy:
            self._control.submit(self._session.close)
            self._wait({self._control}, time.monotonic() + CLOSE_SECONDS)

    def _refresh(self, deadline: float) -> None:
        """Open the library or list its GPUs again, if that is due and its thread is free."""
        now = time.monotonic()
        has_faults = self._unnamed or any(seat.reader.fault or seat.absent for seat in self._seats.values())
        is_due = now >= self._enumerate_due or has_faults or not self._session.is_open
        if is_due and not self._control.busy:
            self._fault = None
            self._enumerate_due = now + ENUMERATE_SECONDS
            self._control.submit(self._session.refresh)
            # A listing that hangs must leave time to read the known cards.
            self._wait({self._control}, (now + deadline) / 2 if self._seats else deadline)
        if self._control.busy and not self._seats:
            call, seconds = self._control.stuck_in()
            self._fault = Fault(reason="hung", call=call, seconds=seconds)

    def _read_cards(self, deadline: float, windows: Collection[str]) -> Iterable[Device]:
        ready = {seat.worker for seat in self._seats.values() if seat.is_readable}
        for uuid, seat in self._seats.items():
            if seat.worker in ready:
                seat.beats = False
                seat.worker.submit(
                    partial(seat.reader.read, windows=uuid in windows, glimpses=uuid in self._watched)
                )
        devices = {
            result.gpu.uuid: result
            for result in self._wait(ready, deadline).values()
            if isinstance(result, Device)
        }
        for uuid, seat in self._seats.items():
            late, seat.late = seat.late, None
            devices.setdefault(uuid, late if late and not seat.absent else _silent(seat))
        return map(self._with_hearing, devices.values())

    def _with_hearing(self, device: Device) -> Device:
        """Say whether the card's XIDs are heard, and if not, why: then nobody knows how many there were."""
        if device.fault:
            return device
        refused = self._listener.misses(device.gpu.uuid)
        return replace(
            device,
            ability=replace(device.ability, hears_xids=refused is None),
            refused=(*device.refused, refused) if refused else device.refused,
        )

    def _wait(self, awaited: Iterable[Worker], deadline: float) -> dict[Worker, Any]:
        """Collect the last result of each of these workers until all have come or the deadline passes."""
        left = set(awaited)
        results: dict[Worker, Any] = {}
        while left:
            try:
                worker, result = self._results.get(timeout=max(0.0, deadline - time.monotonic()))
            except Empty:
                break
            self._took(worker, result)
            if worker in left and not worker.busy:
                left.discard(worker)
                results[worker] = result
            else:
                self._keep(worker, result)
        return results

    def _take_late_results(self) -> None:
        while not self._results.empty():
            worker, result = self._results.get()
            self._took(worker, result)
            self._keep(worker, result)

    def _keep(self, worker: Worker, result: Any) -> None:
        """A card that always takes longer than a report may wait is still shown, one report later."""
        for seat in self._seats.values():
            if seat.worker is worker and isinstance(result, Device):
                is_recent = time.monotonic() - result.at < LATE_REPORTS * self._patience
                seat.late = result if is_recent else None

    def _took(self, worker: Worker, result: Any) -> None:
        worker.tasks -= 1
        if isinstance(result, Exception):
            self._failed(result)
        elif worker is self._control and isinstance(result, list):
            self._adopt(result)

    def _failed(self, error: Exception) -> None:
        """Report the error. An open session that broke cannot be repaired: a new process must load the library."""
        if isinstance(error, Unavailable | failure.Gone):
            self._fault = Fault(reason=error.reason, call=error.call, detail=getattr(error, "detail", ""))
            self.finished = self._session.is_open or error.reason == "driver_mismatch"
        else:
            self._fault = failure.unforeseen(error)

    def _adopt(self, found: list[FoundGpu]) -> None:
        present = {one.uuid: one for one in found if one.uuid}
        reasons = {one.index: one.reason for one in found if one.reason}
        for uuid, one in present.items():
            self._seat(uuid, one)
        for uuid, seat in self._seats.items():
            seat.absent = "" if uuid in present else reasons.get(seat.reader.gpu.index, "gone")
        known = {seat.reader.gpu.index for seat in self._seats.values()}
        self._unnamed = tuple(
            Device(gpu=Gpu(uuid="", index=index), fault=Fault(reason=reason))
            for index, reason in reasons.items()
            if index not in known
        )

    def _seat(self, uuid: str, found: FoundGpu) -> None:
        seat = self._seats.get(uuid)
        if seat is None:
            worker = Worker(f"gpu{found.index}", self._results)
            self._seats[uuid] = Seat(worker, GpuReader(found.raw, uuid, found.index, worker.journal))
        elif not seat.worker.busy and (
            seat.reader.fault or seat.absent or seat.reader.gpu.index != found.index
        ):
            seat.reader.reopen(found.raw, found.index)

    def _errors(self) -> Counter[str]:
        workers = (self._control, *(seat.worker for seat in self._seats.values()))
        idle = [worker for worker in workers if not worker.busy]
        listing = Counter(["listing_hung"] if self._control.busy and self._seats else [])
        return sum((worker.journal.take_errors() for worker in idle), listing)


def _silent(seat: Seat) -> Device:
    """Return a device with the reason why its card gave no data: not listed, or stuck in a call."""
    if seat.absent:
        return Device(gpu=seat.reader.gpu, fault=seat.reader.fault or Fault(reason=seat.absent))
    call, seconds = seat.worker.stuck_in()
    return Device(gpu=seat.reader.gpu, fault=Fault(reason="hung", call=call, seconds=seconds))


def main() -> None:
    requests, answers = settle()
    crew = Crew(sys.argv[1] if len(sys.argv) > 1 else None)
    while not crew.finished:
        if not select.select([requests], [], [], crew.seconds_to_beat)[0]:
            crew.beat()
            continue
        message = pipe.next_request(requests)
        request = wire.decode_request(message) if message else None
        if not isinstance(request, wire.Read):
            break
        answers.write(pipe.frame(crew.report(request)))
        answers.flush()
    crew.close()
    os._exit(0)  # a normal exit would wait for threads that are stuck in the driver


if __name__ == "__main__":
    main()
