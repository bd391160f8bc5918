"""Two sources as one: the first for everything, the second for the profiling that the first cannot give.

Cards before Hopper tell NVML no profiling counters; DCGM has its own way to them.
"""

import asyncio
from collections.abc import Iterable

import msgspec

from podgpu.catalog import profiling
from podgpu.model import Device, Fault, Instance, PartStatus, Reading, Report
from podgpu.sources import Source

PATIENCE = 0.5  # seconds the second may take longer than the first; later it counts for the next cycle
PROFILED = frozenset(row.name for row in profiling.ROWS)


class Merged:
    demo = False

    def __init__(self, first: Source, second: Source) -> None:
        self.name = first.name
        self._first = first
        self._second = second
        self._asking: asyncio.Task[Report] | None = None

    async def read(self) -> Report:
        """Whatever becomes of the second, the first stands. Its state is that of a part."""
        asking = self._asking = self._asking or asyncio.create_task(self._second.read())
        report = await self._first.read()
        done, _ = await asyncio.wait({asking}, timeout=PATIENCE)
        if done:
            self._asking = None
        other = _answer(asking) if done else Report(fault=Fault(reason="page_late", detail="no page in time"))
        status = PartStatus(
            name=self._second.name,
            up=other.fault is None,
            fault=other.fault,
            duration_seconds=other.seconds,
            age_seconds=0.0 if other.fault is None else None,
        )
        return _merged(report, other, status)

    async def release(self, seconds: float) -> bool:
        released = [await source.release(seconds) for source in (self._first, self._second)]
        return all(released)

    async def close(self) -> None:
        if self._asking:
            self._asking.cancel()
        await self._first.close()
        await self._second.close()


def _answer(asked: asyncio.Task[Report]) -> Report:
    error = asked.exception()
    if error is None:
        return asked.result()
    return Report(fault=Fault(reason="source_error", detail=repr(error)))


def _merged(report: Report, other: Report, status: PartStatus) -> Report:
    others = {device.gpu.uuid: device for device in other.devices}
    return msgspec.structs.replace(
        report,
        devices=tuple(_filled(device, others.get(device.gpu.uuid)) for device in report.devices),
        allocations=other.allocations,
        parts=(status,),
    )


def _filled(device: Device, other: Device | None) -> Device:
    if device.fault is not None or other is None:
        return device
    instances = {one.mig.gpu_instance_id: one for one in other.instances}
    return msgspec.structs.replace(
        device,
        readings=_with_profiling(device.readings, other.readings),
        instances=tuple(_filled_instance(one, instances) for one in device.instances),
    )


def _filled_instance(instance: Instance, others: dict[int, Instance]) -> Instance:
    """A GPU instance has one set of counters, which all its compute instances share."""
    other = others.get(instance.mig.gpu_instance_id)
    if other is None:
        return instance
    readings = _with_profiling(instance.readings, other.readings)
    return msgspec.structs.replace(instance, readings=readings)


def _with_profiling(own: tuple[Reading, ...], others: Iterable[Reading]) -> tuple[Reading, ...]:
    known = {(one.metric, one.labels) for one in own}
    more = (one for one in others if one.metric in PROFILED and (one.metric, one.labels) not in known)
    return (*own, *more)
