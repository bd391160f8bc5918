"""The agent's loop: in each interval one report becomes one immutable snapshot, published to all who wait."""

import asyncio
import time
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from typing import Protocol

import msgspec

from podgpu import __version__, log
from podgpu.agent.attribution import Attributed, Attribution
from podgpu.agent.counters import MOST_CARDS, Counters, SeenCards
from podgpu.agent.join import read, unattributed
from podgpu.agent.xid_log import XidLog
from podgpu.feed import SnapshotFeed
from podgpu.insight import InsightSettings, conclude
from podgpu.model import Device, ErrorCount, Fault, Gpu, GuestCard, Lanes, PartStatus, Report, Snapshot
from podgpu.sources.protocols import Source
from podgpu.supervise import Supervisor, Work, is_crash

STALE_INTERVALS = 3  # nothing older is served
SOON_SECONDS = 0.3  # after a brief report: rates need two readings, and the driver some time between them


class BackgroundPart(Protocol):
    """A part beside the reading, such as a push of what was read. Its state is in each snapshot."""

    @property
    def name(self) -> str: ...
    @property
    def errors(self) -> Counter[str]: ...
    async def run(self) -> None: ...
    def status(self) -> PartStatus: ...
    async def close(self) -> None: ...


class Agent(SnapshotFeed):
    """Reads, books and publishes. A source that fails leaves a snapshot that says so."""

    name = "attribution"  # the part that is reported if booking fails

    def __init__(
        self,
        source: Source,
        *,
        node: str,
        interval: float,
        settings: InsightSettings,
        attribution: Attribution | None = None,
        address: str = "",
        guests: Callable[[], tuple[GuestCard, ...]] = tuple,
        leaves_log: Callable[[str], bool] = lambda _: False,
    ) -> None:
        """`leaves_log` says of a driver's version whether its log of context switches could be read, and is not."""
        self.ready = False
        self._settings = settings
        # A simulator knows what its node did before.
        self._watched_since = None if source.demo else time.time()
        self.supervisor = Supervisor(self._show_failure)
        self._address = address
        self._guests = guests
        self._leaves_log = leaves_log
        self._source = source
        self._attribution = attribution
        self._background: list[BackgroundPart] = []
        self._node = node
        self._interval = interval
        self._seen_cards = SeenCards(MOST_CARDS)
        self._counters = Counters()
        self._xids = XidLog()
        self._gpus: dict[str, Gpu] = {}  # those that are not forgotten
        self._errors: Counter[tuple[str, str]] = Counter()
        self._last_good: float | None = None
        self._wake = asyncio.Event()
        self._expiry: asyncio.TimerHandle | None = None
        self._logged: dict[str, str] = {}
        super().__init__(self._snapshot(Report(fault=Fault(reason="starting")), Attributed()))

    def attach(self, part: BackgroundPart) -> None:
        """Let a part run with the agent and show its state. Comes before `run`."""
        self._background.append(part)

    async def run(self) -> None:
        """Work until cancelled."""
        works: list[tuple[str, Work]] = [(part.name, part.run) for part in self._background]
        if self._attribution:
            works.append((self.name, partial(self._attribution.run, self.supervisor)))
        await self.supervisor.run([*works, (self._source.name, self._loop)])

    async def _loop(self) -> None:
        """Read once per interval; a release brings the next reading forward."""
        while True:
            began = time.monotonic()
            self._wake.clear()  # before the reading: a release in its midst counts too
            is_brief = await self.cycle()
            due = began + (min(SOON_SECONDS, self._interval) if is_brief else self._interval)
            # Not wait_for: in Python 3.11 it loses a cancellation that comes with the release.
            with suppress(TimeoutError):
                async with asyncio.timeout(max(0.0, due - time.monotonic())):
                    await self._wake.wait()

    async def cycle(self) -> bool:
        """Read and publish once. Return whether the next reading should come soon, since this one was brief."""
        try:
            report = await self._source.read()
        except Exception as error:
            report = Report(fault=Fault(reason="source_error", detail=repr(error)))
        await self._publish(report)
        return report.brief

    def lanes(self, card: str) -> Lanes | None:
        return self._attribution.lanes(card) if self._attribution else None

    async def release(self, seconds: float) -> bool:
        released = await self._source.release(seconds)
        if self._attribution:
            released &= await self._attribution.release(seconds)
        log.info("GPUs released", seconds=seconds, complete=released)
        self._wake.set()
        return released

    async def close(self) -> None:
        if self._expiry:
            self._expiry.cancel()
        for part in self._background:
            await part.close()
        await self._source.close()
        if self._attribution:
            await self._attribution.close()

    async def _publish(self, report: Report) -> None:
        taken, wall = time.monotonic(), time.time()
        self._node = report.node or self._node
        if report.fault is None:
            self._last_good = taken
        devices = self._carried(report, taken)
        attribute = self._attributed if self.ready or report.fault else self._attributed_first
        attributed = await attribute(devices, report, wall)
        cards = self._xids.noted(report.events, attributed.cards)
        attributed = msgspec.structs.replace(attributed, cards=cards)
        snapshot = self._snapshot(report, attributed, wall)
        self._count_errors(report, attributed)
        self.publish(msgspec.structs.replace(snapshot, errors=self._error_counts()))
        self._expire_at(taken + STALE_INTERVALS * self._interval)
        self.ready = True
        self._log_changes(snapshot)

    def _carried(self, report: Report, now: float) -> list[Device]:
        """Return each card once, its counters carried over resets. What was away for long is forgotten."""
        devices = {device.gpu.uuid: device for device in report.devices}
        forgotten = self._seen_cards.note(devices, now)
        self._counters.forget(forgotten)
        self._xids.forget(forgotten)
        if self._attribution:
            self._attribution.forget(forgotten)
        self._counters.note((event for event in report.events if event.uuid in devices), now)
        shown = (*devices.values(), *self._missing(devices, forgotten, report))
        return [self._counters.apply(device) for device in shown]

    def _missing(self, devices: dict[str, Device], forgotten: list[str], report: Report) -> list[Device]:
        """Return the cards that the source no longer lists, as an exporter may: they are down, not absent."""
        for uuid in forgotten:
            self._gpus.pop(uuid, None)
        self._gpus |= {uuid: device.gpu for uuid, device in devices.items() if uuid}
        if report.fault:  # the source says itself why there is nothing
            return []
        away = (gpu for uuid, gpu in self._gpus.items() if uuid not in devices)
        return [Device(gpu=gpu, fault=Fault(reason="gone")) for gpu in away]

    async def _attributed(self, devices: list[Device], report: Report, wall: float) -> Attributed:
        """Whatever goes wrong in attribution, the devices' own numbers stand."""
        parts: tuple[PartStatus, ...] = ()
        try:
            if self._attribution:
                return await self._attribution.attribute(
                    devices, wall, reported=report.allocations, reporter=self._source.name
                )
        except Exception as error:  # shown as a part that is down
            fault = Fault(reason="attribution_error", detail=repr(error))
            self._errors[self.name, fault.reason] += 1
            parts = (PartStatus(name=self.name, up=False, fault=fault),)
        return Attributed(cards=tuple(map(unattributed, devices)), parts=parts)

    async def _attributed_first(self, devices: list[Device], report: Report, wall: float) -> Attributed:
        """The first page does not wait for the kubelet: the cards' own numbers come first."""
        if self._attribution:
            awaited = PartStatus(name=self.name, up=False, fault=Fault(reason="starting"))
            cards = tuple(map(read, devices))
            self.publish(self._snapshot(report, Attributed(cards=cards, parts=(awaited,)), wall))
            await asyncio.sleep(0)  # those who wait for the first page get it
        return await self._attributed(devices, report, wall)

    def _snapshot(self, report: Report, attributed: Attributed, wall: float | None = None) -> Snapshot:
        status = PartStatus(
            name=self._source.name,
            up=report.fault is None,
            fault=report.fault,
            duration_seconds=report.seconds,
            age_seconds=None if self._last_good is None else time.monotonic() - self._last_good,
        )
        guests = self._guests()
        given_away = {guest.pci_bus_id for guest in guests}
        return Snapshot(
            node=self._node,
            address=self._address,
            taken_at=time.time() if wall is None else wall,
            interval_seconds=self._interval,
            watched_since=self._watched_since,
            version=__version__,
            demo=self._source.demo,
            driver_version=report.driver_version,
            nvml_version=report.nvml_version,
            # A card that was given to a virtual machine while the agent runs is not lost.
            cards=tuple(card for card in attributed.cards if not card.fault or card.gpu.pci_bus_id not in given_away),
            guests=guests or None,
            pods=attributed.pods,
            unclaimed=attributed.unclaimed,
            unplaced=attributed.unplaced or None,
            sharing=attributed.sharing,
            log_is_off=self._leaves_log(report.driver_version),
            parts=self.supervisor.shown(
                (status, *report.parts, *attributed.parts, *(part.status() for part in self._background))
            ),
        )

    def _completed(self, newest: Snapshot) -> Snapshot:
        return conclude(newest, self._settings)

    def _show_failure(self) -> None:
        """Say at once that a task has failed: the next reading may never come."""
        last = self.snapshot
        parts = self.supervisor.shown(last.parts)
        self.publish(msgspec.structs.replace(last, parts=parts, errors=self._error_counts()))

    def _expire_at(self, when: float) -> None:
        """Set a timer for the time from which the snapshot must not be served any more."""
        if self._expiry:
            self._expiry.cancel()
        loop = asyncio.get_running_loop()
        self._expiry = loop.call_later(when - time.monotonic(), self._expire)

    def _expire(self) -> None:
        last = self.snapshot
        if last.cards:
            stale = self._snapshot(Report(fault=Fault(reason="stale")), Attributed())
            fresh = {part.name for part in stale.parts}
            others = [part for part in last.parts if part.name not in fresh]
            self.publish(msgspec.structs.replace(stale, parts=(*stale.parts, *others), errors=last.errors))

    def _count_errors(self, report: Report, attributed: Attributed) -> None:
        """Count the errors of the source: the parts of attribution keep their own counts."""
        faults = [(self._source.name, card.fault) for card in attributed.cards]
        faults += [(self._source.name, report.fault), *((part.name, part.fault) for part in report.parts)]
        for name, fault in faults:
            if fault and fault.reason != "released":
                self._errors[name, fault.reason] += 1
        for name, errors in ((self._source.name, report.errors), *report.part_errors.items()):
            self._errors.update({(name, reason): count for reason, count in errors.items()})

    def _error_counts(self) -> tuple[ErrorCount, ...]:
        counts = self._errors + self.supervisor.errors
        if self._attribution:
            counts += self._attribution.errors
        for part in self._background:
            counts.update({(part.name, reason): count for reason, count in part.errors.items()})
        return tuple(
            ErrorCount(source=source, reason=reason, count=count) for (source, reason), count in sorted(counts.items())
        )

    def _log_changes(self, snapshot: Snapshot) -> None:
        """Log a line when a part or GPU goes down, changes its reason, or comes back. The supervisor logs crashes."""
        faults = {part.name: part.fault for part in snapshot.parts if not is_crash(part.fault)}
        cards = {_title(card.gpu): card.fault for card in snapshot.cards}
        for name, fault in (faults | cards).items():
            reason = fault.reason if fault else ""
            if self._logged.get(name, "") != reason:
                self._logged[name] = reason
                _log_change(name, fault)
        # A source may list new cards in every cycle.
        kept = {*(part.name for part in snapshot.parts), *cards, *map(_title, self._gpus.values())}
        self._logged = {name: reason for name, reason in self._logged.items() if name in kept and reason}


def _title(gpu: Gpu) -> str:
    return f"gpu {gpu.index} {gpu.uuid}"


def _log_change(name: str, fault: Fault | None) -> None:
    if fault is None:
        log.info("back", part=name)
    else:
        known = {key: value for key, value in msgspec.structs.asdict(fault).items() if value}
        log.warning("down", part=name, **known)
