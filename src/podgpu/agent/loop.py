"""The agent's heartbeat: each interval one report becomes one immutable snapshot."""

import asyncio
import time
from collections import Counter

import msgspec

from podgpu import __version__, log
from podgpu.agent.counters import Counters
from podgpu.model import ErrorCount, Fault, PartStatus, Report, Snapshot
from podgpu.sources import Source

STALE_INTERVALS = 3  # nothing older is served


class Agent:
    """Holds the current snapshot. A source that fails leaves a snapshot that says so."""

    def __init__(self, source: Source, *, node: str, interval: float) -> None:
        self.ready = False
        self._source = source
        self._node = node
        self._interval = interval
        self._counters = Counters()
        self._errors: Counter[tuple[str, str]] = Counter()
        self._last_good: float | None = None
        self._wake = asyncio.Event()
        self._logged: dict[str, str] = {}
        self._taken = time.monotonic()
        self._snapshot = self._assembled(Report(fault=Fault(reason="starting")))

    def snapshot(self) -> Snapshot:
        """Return what is known now. A snapshot that has grown too old loses its devices."""
        if time.monotonic() - self._taken > STALE_INTERVALS * self._interval and self._snapshot.devices:
            self._snapshot = self._assembled(Report(fault=Fault(reason="stale")))
        return self._snapshot

    async def run(self) -> None:
        """Read once an interval until cancelled; a release brings the next reading forward."""
        while True:
            due = time.monotonic() + self._interval
            await self.cycle()
            self._wake.clear()
            try:
                await asyncio.wait_for(self._wake.wait(), max(0.0, due - time.monotonic()))
            except TimeoutError:
                continue

    async def cycle(self) -> None:
        try:
            report = await self._source.read()
        except Exception as error:
            report = Report(fault=Fault(reason="source_error", detail=repr(error)))
        self._publish(report)

    async def release(self, seconds: float) -> bool:
        released = await self._source.release(seconds)
        log.info("GPUs released", seconds=seconds, complete=released)
        self._wake.set()
        return released

    async def close(self) -> None:
        await self._source.close()

    def _publish(self, report: Report) -> None:
        now = time.monotonic()
        if report.fault is None:
            self._last_good = now
        self._taken = now
        self._counters.note(report.events)
        self._count_errors(report)
        self._snapshot = self._assembled(report)
        self.ready = True
        self._log_changes(report)

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
            parts=(status,),
            errors=tuple(
                ErrorCount(source=source, reason=reason, count=count)
                for (source, reason), count in sorted(self._errors.items())
            ),
        )

    def _count_errors(self, report: Report) -> None:
        faults = [report.fault, *(device.fault for device in report.devices)]
        for fault in faults:
            if fault and fault.reason != "released":
                self._errors[self._source.name, fault.reason] += 1
        for reason, count in report.errors.items():
            self._errors[self._source.name, reason] += count

    def _log_changes(self, report: Report) -> None:
        """One line when a source or GPU goes down, changes its reason, or comes back."""
        faults = {self._source.name: report.fault}
        faults |= {f"gpu {device.gpu.index} {device.gpu.uuid}": device.fault for device in report.devices}
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
