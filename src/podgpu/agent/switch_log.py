"""Decides which cards' logs of context switches are read, and prepares what they say about each cycle."""

import time
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from itertools import chain

from msgspec import Struct, field
from msgspec.structs import replace

from podgpu.ledger.cycle import CycleBooks, Interval
from podgpu.ledger.residency import Evidence
from podgpu.model import BusyWindow, Device, PartStatus, Process, Slice, Span, SpotLog, SwitchLog
from podgpu.model.ports import SwitchLogSource

LINGER_SECONDS = 60.0  # a log stays open this long after its card was last shared, so as not to open it again and again
NO_OWNER = frozenset({"overhead", "idle"})


class SwitchLogs:
    """Reads the logs of all cards (`always`), of those that are shared, or of these at random moments (`checks_only`).

    Where a log says nothing, the samples divide.
    """

    def __init__(
        self,
        reader: SwitchLogSource,
        *,
        always: bool,
        checks_only: bool = False,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._reader = reader
        self._always = always
        self._checks_only = checks_only
        self._clock = clock
        self._shared_at: dict[str, float] = {}
        self._buffers: dict[str, EvidenceBuffer] = {}
        self._logs: dict[str, SwitchLog] = {}
        self._checks: dict[str, Sequence[SpotLog]] = {}
        self._wanted: Collection[str] = ()

    @property
    def name(self) -> str:
        return self._reader.name

    @property
    def errors(self) -> Counter[str]:
        return self._reader.errors

    @property
    def open(self) -> Mapping[str, bool]:
        """The cards whose log is read throughout, and whether it was read in the last cycle."""
        return {} if self._checks_only else {card: card in self._logs for card in self._wanted}

    def status(self) -> PartStatus:
        return self._reader.status()

    async def release(self, seconds: float) -> bool:
        return await self._reader.release(seconds)

    async def close(self) -> None:
        await self._reader.close()

    async def watch(self, devices: Sequence[Device]) -> list[Device]:
        """Read the logs. Return the devices with all processes that were on them, also those that no sample named."""
        self._forget_unshared()
        wanted = {
            device.gpu.uuid: device.gpu.minor
            for device in devices
            if device.gpu.minor is not None and not _brings_log(device) and self._is_wanted(device)
        }
        self._wanted = tuple(wanted)
        self._logs = {device.gpu.uuid: device.log for device in devices if device.log}
        self._checks = {device.gpu.uuid: device.checks for device in devices if device.checks is not None}
        if self._checks_only:
            found = await self._reader.check(wanted)
            self._checks |= {card: found.get(card, ()) for card in wanted}
        else:
            self._logs |= await self._reader.read(wanted)
        self._buffers = {uuid: self._buffers.get(uuid) or EvidenceBuffer() for uuid in self._logs}
        return [_with_logged(device, self._slices(device.gpu.uuid)) for device in devices]

    def evidence(self, device: Device, interval: Interval) -> Evidence | None:
        """What the log says about this cycle. Without busy windows, the whole cycle is one."""
        log = self._logs.get(device.gpu.uuid)
        if log is None:
            return None
        windows = device.windows or _whole(device, interval)
        return self._buffers[device.gpu.uuid].take(log, windows)

    def checks(self, card: str) -> Sequence[SpotLog] | None:
        """What was read at random moments since the previous cycle; None if the card is not checked."""
        return self._checks.get(card)

    def note(self, cycles: Iterable[CycleBooks]) -> None:
        """Remember which cards are shared by processes of several owners."""
        now = self._clock()
        for cycle in cycles:
            owners = [party for party, booking in cycle.bookings.items() if booking.running and party not in NO_OWNER]
            if len(owners) > 1:
                self._shared_at[cycle.gpu] = now

    def forget(self, cards: Iterable[str]) -> None:
        for card in cards:
            self._shared_at.pop(card, None)

    def _forget_unshared(self) -> None:
        self.forget([card for card in self._shared_at if not self._is_shared(card)])

    def _is_wanted(self, device: Device) -> bool:
        if device.fault or device.gpu.mig_enabled:
            return False
        return self._always or self._is_shared(device.gpu.uuid)

    def _is_shared(self, card: str) -> bool:
        shared_at = self._shared_at.get(card)
        return shared_at is not None and self._clock() - shared_at < LINGER_SECONDS

    def _slices(self, card: str) -> Iterable[Slice]:
        if log := self._logs.get(card):
            return log.slices
        return chain.from_iterable(check.slices for check in self._checks.get(card, ()))


def _brings_log(device: Device) -> bool:
    return device.log is not None or device.checks is not None


def _with_logged(device: Device, slices: Iterable[Slice]) -> Device:
    listed = {process.pid for process in device.processes}
    missed = sorted({piece.pid for piece in slices if piece.pid > 0} - listed)
    if not missed:
        return device
    # Their sampled time is 0, not unknown: the log has them.
    more = [Process(pid=pid, sm_busy_us=0, sm_ratio=0.0) for pid in missed]
    return replace(device, processes=(*device.processes, *more))


def _whole(device: Device, interval: Interval) -> Iterable[BusyWindow]:
    if interval.busy_us is None or interval.is_gap or not interval.elapsed_us:
        return ()
    end_ns = round(device.at * 1e9) + time.time_ns() - time.monotonic_ns()
    return (BusyWindow(end_ns - 1000 * interval.elapsed_us, end_ns, 1000 * interval.busy_us),)


LARGEST_DRIFT_NS = 20_000_000  # a log that begins longer before the end of the last has another clock
KEPT_NS = 1_000_000_000  # a window that has not come yet may begin this long ago


class EvidenceBuffer(Struct):
    """What is known about a card and not yet booked: windows end a little before or after the log does."""

    windows: list[BusyWindow] = field(default_factory=list)
    slices: list[Slice] = field(default_factory=list)
    blind: list[Span] = field(default_factory=list)
    known_ns: int = 0  # the end of the log so far

    def take(self, log: SwitchLog, windows: Iterable[BusyWindow]) -> Evidence:
        """Return what is complete, and keep the rest. After a clock was set back, no time before it can be compared."""
        if log.begin_ns < self.known_ns - LARGEST_DRIFT_NS:
            self.windows, self.slices, self.blind, self.known_ns = [], [], [], 0
            windows = ()  # they may be by either clock
        self._wait_for(windows)
        self.slices += log.slices
        self.blind += log.lost
        if log.begin_ns > self.known_ns:
            self.blind.append(Span(self.known_ns, log.begin_ns))
        self.known_ns = log.end_ns
        evidence = Evidence(
            windows=tuple(window for window in self.windows if window.end_ns <= log.end_ns),
            slices=tuple(self.slices),
            blind=tuple(self.blind),
            log=log,
        )
        self.windows = [window for window in self.windows if window.end_ns > log.end_ns]
        oldest = min((log.end_ns - KEPT_NS, *(window.begin_ns for window in self.windows)))
        self.slices = [piece for piece in self.slices if piece.end_ns > oldest]
        # What is forgotten is not known any more.
        self.blind = [Span(0, oldest), *(span for span in self.blind if span.end_ns > oldest)]
        return evidence

    def _wait_for(self, windows: Iterable[BusyWindow]) -> None:
        """Add windows. Those that seem to end after later ones were stamped before the clock was set back."""
        for window in windows:
            if self.windows and window.end_ns < self.windows[-1].end_ns - LARGEST_DRIFT_NS:
                self.windows = []
            self.windows.append(window)
