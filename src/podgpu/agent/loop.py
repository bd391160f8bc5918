"""The agent's heartbeat: each interval one report becomes one immutable snapshot."""

import asyncio
import time
from collections import Counter
from contextlib import suppress

import msgspec

from podgpu import __version__, log
from podgpu.agent.attendance import MOST_CARDS
from podgpu.agent.attribution import Attribution
from podgpu.agent.counters import Counters
from podgpu.model import ErrorCount, Fault, PartStatus, Report, Snapshot
from podgpu.sources import Source

STALE_INTERVALS = 3  # nothing older is served


class Agent:
    """Holds the current snapshot. A source that fails leaves a snapshot that says so."""

    def __init__(
        self,
        source: Source,
        *,
        node: str,
        interval: float,
        attribution: Attribution | None = None,
        most_cards: int = MOST_CARDS,
    ) -> None:
        self.ready = False
        self._source = source
        self._attribution = attribution
        self._node = node
        self._interval = interval
        self._counters = Counters(most_cards)
        self._errors: Counter[tuple[str, str]] = Counter()
        self._last_good: float | None = None
        self._wake = asyncio.Event()
        self._news = asyncio.Event()
        self._logged: dict[str, str] = {}
        self._taken = time.monotonic()
        self._snapshot = self._assembled(Report(fault=Fault(reason="starting")))

    @property
    def snapshot(self) -> Snapshot:
        """Return what is known now. A snapshot that has grown too old loses its devices."""
        if time.monotonic() - self._taken > STALE_INTERVALS * self._interval and self._snapshot.devices:
            stale = self._assembled(Report(fault=Fault(reason="stale")))
            others = [part for part in self._snapshot.parts if part.name != self._source.name]
            self._snapshot = msgspec.structs.replace(
                stale, parts=(*stale.parts, *others), errors=self._snapshot.errors
            )
        return self._snapshot

    async def changed(self, seen: Snapshot) -> Snapshot:
        """Wait until a newer snapshot than that is published, and return it."""
        while self.snapshot is seen:
            await self._news.wait()
        return self.snapshot

    async def run(self) -> None:
        """Work until cancelled."""
        async with asyncio.TaskGroup() as group:
            if self._attribution:
                group.create_task(self._attribution.run())
            group.create_task(self._beat())

    async def _beat(self) -> None:
        """Read once an interval; a release brings the next reading forward."""
        while True:
            due = time.monotonic() + self._interval
            self._wake.clear()  # before the reading: a release in its midst counts too
            await self.cycle()
            # Not wait_for: in Python 3.11 it loses a cancellation that comes with the release.
            with suppress(TimeoutError):
                async with asyncio.timeout(max(0.0, due - time.monotonic())):
                    await self._wake.wait()

    async def cycle(self) -> None:
        try:
            report = await self._source.read()
        except Exception as error:
            report = Report(fault=Fault(reason="source_error", detail=repr(error)))
        await self._publish(report)

    async def release(self, seconds: float) -> bool:
        released = await self._source.release(seconds)
        log.info("GPUs released", seconds=seconds, complete=released)
        self._wake.set()
        return released

    async def close(self) -> None:
        await self._source.close()
        if self._attribution:
            await self._attribution.close()

    async def _publish(self, report: Report) -> None:
        taken = time.monotonic()
        if report.fault is None:
            self._last_good = taken
        self._counters.note(report.events)
        snapshot = await self._attributed(self._assembled(report), report)
        self._count_errors(report, snapshot)
        self._taken = taken
        self._snapshot = msgspec.structs.replace(snapshot, errors=self._error_counts())
        self.ready = True
        self._news.set()
        self._news = asyncio.Event()
        self._log_changes(snapshot)

    async def _attributed(self, snapshot: Snapshot, report: Report) -> Snapshot:
        """Whatever goes wrong in attribution, the devices' own numbers stand."""
        if self._attribution is None:
            return snapshot
        try:
            return await self._attribution.attribute(
                snapshot, told=report.allocations, sees_processes=report.sees_processes
            )
        except Exception as error:  # shown as a part that is down
            fault = Fault(reason="attribution_error", detail=repr(error))
            broken = PartStatus(name="attribution", up=False, fault=fault)
            return msgspec.structs.replace(snapshot, parts=(*snapshot.parts, broken))

    def _assembled(self, report: Report) -> Snapshot:
        status = PartStatus(
            name=self._source.name,
            up=report.fault is None,
            fault=report.fault,
            duration_seconds=report.seconds,
            age_seconds=None if self._last_good is None else time.monotonic() - self._last_good,
        )
        return Snapshot(
            node=self._node,
            taken_at=time.time(),
            interval_seconds=self._interval,
            version=__version__,
            demo=self._source.demo,
            driver_version=report.driver_version,
            nvml_version=report.nvml_version,
            devices=tuple(self._counters.apply(device) for device in report.devices),
            parts=(status, *report.parts),
        )

    def _count_errors(self, report: Report, snapshot: Snapshot) -> None:
        """Count what nobody else does: the parts of attribution keep their own counts."""
        own = {"procfs", "workloads", "attribution", self._source.name, *(part.name for part in report.parts)}
        faults = [(self._source.name, device.fault) for device in report.devices]
        faults += [(part.name, part.fault) for part in snapshot.parts if part.name in own]
        for name, fault in faults:
            if fault and fault.reason != "released":
                self._errors[name, fault.reason] += 1
        for name, errors in ((self._source.name, report.errors), *report.part_errors.items()):
            self._errors.update({(name, reason): count for reason, count in errors.items()})

    def _error_counts(self) -> tuple[ErrorCount, ...]:
        counts = self._errors + (self._attribution.errors if self._attribution else Counter())
        return tuple(
            ErrorCount(source=source, reason=reason, count=count)
            for (source, reason), count in sorted(counts.items())
        )

    def _log_changes(self, snapshot: Snapshot) -> None:
        """One line when a part or GPU goes down, changes its reason, or comes back."""
        faults = {part.name: part.fault for part in snapshot.parts}
        faults |= {f"gpu {device.gpu.index} {device.gpu.uuid}": device.fault for device in snapshot.devices}
        for name, fault in faults.items():
            reason = fault.reason if fault else ""
            if self._logged.get(name, "") != reason:
                self._logged[name] = reason
                _log_change(name, fault)


def _log_change(name: str, fault: Fault | None) -> None:
    if fault is None:
        log.info("back", part=name)
    else:
        known = {key: value for key, value in msgspec.structs.asdict(fault).items() if value}
        log.warning("down", part=name, **known)
