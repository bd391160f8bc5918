"""Two sources combined: the first reads everything, the second adds the profiling counters that the first lacks.

NVML has no profiling counters for cards older than Hopper. DCGM reads them in another way.
"""

import asyncio
import re
import time
from collections import Counter, deque
from collections.abc import Iterable

from msgspec.structs import replace

from podgpu.catalog import profiling
from podgpu.model import Device, Fault, Instance, MigInstance, PartStatus, Reading, Report
from podgpu.sources.protocols import SlowSource, Source
from podgpu.supervise import brief

PATIENCE = 0.5  # seconds to wait for the second after the first; a later answer counts for the next cycle
FRESH_CYCLES = 2  # an older answer is not merged
PROFILED = frozenset(row.name for row in profiling.ROWS)
LATE = Report(fault=Fault(reason="page_late", detail="no page in time"))

_COMPUTE_SLICES = re.compile(r"^[0-9]+c\.")


class Merged:
    demo = False

    def __init__(self, first: Source, second: Source) -> None:
        self.name = first.name
        self._first = first
        self._second = second
        self._asking: asyncio.Task[Report] | None = None
        self._answer = LATE  # the latest
        self._answered_at: float | None = None  # when the oldest card of the last good answer was read
        self._errors: Counter[str] = Counter()
        self._began: deque[float] = deque(maxlen=FRESH_CYCLES + 1)

    async def begin(self) -> None:
        if isinstance(self._first, SlowSource):
            await self._first.begin()

    async def read(self) -> Report:
        """Return the first source's report even if the second fails. The second is shown as a part."""
        self._began.append(time.monotonic())
        self._take_answer()
        asking = self._asking = self._asking or brief(self._second.read())
        report = await self._first.read()
        await asyncio.wait({asking}, timeout=PATIENCE)
        self._take_answer()
        errors, self._errors = self._errors, Counter()
        other = self._fresh()
        part_errors = {self._second.name: dict(errors)} if errors else {}
        return replace(_merged(report, other), parts=(self._status(other),), part_errors=part_errors)

    async def release(self, seconds: float) -> bool:
        released = [await source.release(seconds) for source in (self._first, self._second)]
        return all(released)

    async def close(self) -> None:
        if self._asking:
            self._asking.cancel()
        await self._first.close()
        await self._second.close()

    def _take_answer(self) -> None:
        """Take the answer if it has come, perhaps between two cycles."""
        if self._asking is None or not self._asking.done():
            return
        self._answer, self._asking = _answer(self._asking), None
        self._errors.update(self._answer.errors)
        if self._answer.fault is None:
            self._answered_at = min((device.at for device in self._answer.devices), default=time.monotonic())

    def _fresh(self) -> Report:
        """Return the last answer without the cards that are too old."""
        if self._answer.fault is not None:
            return self._answer
        devices = tuple(device for device in self._answer.devices if device.at >= self._began[0])
        return replace(self._answer, devices=devices) if devices else LATE

    def _status(self, other: Report) -> PartStatus:
        return PartStatus(
            name=self._second.name,
            up=other.fault is None,
            fault=other.fault,
            duration_seconds=other.seconds,
            age_seconds=None if self._answered_at is None else time.monotonic() - self._answered_at,
        )


def _answer(asked: asyncio.Task[Report]) -> Report:
    error = asked.exception()
    if error is None:
        return asked.result()
    return Report(fault=Fault(reason="source_error", detail=repr(error)))


def _merged(report: Report, other: Report) -> Report:
    others = {device.gpu.uuid: device for device in other.devices}
    return replace(
        report,
        devices=tuple(_filled(device, others.get(device.gpu.uuid)) for device in report.devices),
        allocations=other.allocations,
    )


def _filled(device: Device, other: Device | None) -> Device:
    if device.fault is not None or other is None:
        return device
    others = {_name(instance.mig): instance for instance in other.instances}
    return replace(
        device,
        readings=_with_profiling(device.readings, other.readings),
        instances=tuple(_filled_instance(instance, others) for instance in device.instances),
    )


def _filled_instance(instance: Instance, others: dict[tuple[int, str], Instance]) -> Instance:
    """All compute instances of a GPU instance share its set of counters."""
    other = others.get(_name(instance.mig)) if instance.mig.profile else None
    if other is None:
        return instance
    readings = _with_profiling(instance.readings, other.readings)
    return replace(instance, readings=readings)


def _name(mig: MigInstance) -> tuple[int, str]:
    """Name the GPU instance by number and profile (`3g.71gb` of `1c.3g.71gb`): the driver reuses numbers."""
    return mig.gpu_instance_id, _COMPUTE_SLICES.sub("", mig.profile)


def _with_profiling(own: tuple[Reading, ...], others: Iterable[Reading]) -> tuple[Reading, ...]:
    known = {(reading.metric, reading.labels) for reading in own}
    missing = (reading for reading in others if (reading.metric, reading.labels) not in known)
    return (*own, *(reading for reading in missing if reading.metric in PROFILED))
