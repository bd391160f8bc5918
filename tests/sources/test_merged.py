"""NVML with DCGM's profiling: what comes from which source."""

import asyncio
import time

import msgspec
import pytest

from podgpu.agent.loop import Agent
from podgpu.model import SEES_ALL, Device, Fault, Gpu, Instance, MigInstance, Reading, Report
from podgpu.sources.dcgm.reading import read
from podgpu.sources.merged import FRESH_CYCLES, PATIENCE, Merged
from podgpu.sources.protocols import SlowSource
from tests.patience import until
from tests.sources.dcgm.exporter import recorded
from tests.tree import SETTINGS

UUID = "GPU-34319582-d595-d1c7-d1d2-179bcfa61660"


class ScriptedSource:
    """A source that returns the report it was given, as if read just now, once it may."""

    demo = False

    def __init__(self, name: str, report: Report) -> None:
        self.name = name
        self.report = report
        self.may_answer = asyncio.Event()
        self.may_answer.set()
        self.reads = 0
        self.answers = 0
        self.closed = False
        self.breaks = False

    async def read(self) -> Report:
        self.reads += 1
        await self.may_answer.wait()
        self.answers += 1
        if self.breaks:
            raise ZeroDivisionError
        devices = (msgspec.structs.replace(device, at=time.monotonic()) for device in self.report.devices)
        return msgspec.structs.replace(self.report, devices=tuple(devices))

    async def release(self, seconds: float) -> bool:
        return seconds > 0

    async def close(self) -> None:
        self.closed = True


def nvml(*readings: Reading, instances: tuple[Instance, ...] = (), fault: Fault | None = None) -> ScriptedSource:
    device = Device(gpu=Gpu(uuid=UUID, index=0), readings=readings, instances=instances, fault=fault)
    return ScriptedSource("nvml", Report(devices=(device,), driver_version="580"))


def dcgm() -> ScriptedSource:
    cards = read(recorded("mig_a100_docs_gpu_plus_instances")).cards
    return ScriptedSource("dcgm", Report(devices=tuple(card.device for card in cards)))


def values(readings: tuple[Reading, ...]) -> dict[str, float]:
    assert len({(reading.metric, reading.labels) for reading in readings}) == len(readings)
    return {reading.metric: reading.value for reading in readings}


async def test_profiling_comes_from_the_second_where_the_first_has_none() -> None:
    first = nvml(Reading("power_watts", 100.0), Reading("tensor_active_ratio", 0.5))
    report = await Merged(first, dcgm()).read()
    found = values(report.devices[0].readings)
    assert found == {
        "power_watts": 100.0,
        "tensor_active_ratio": 0.5,
        "graphics_engine_active_ratio": 0.99563,
        "dram_active_ratio": 0.690789,
        "pcie_transmit_bytes_per_second": 33011804.0,
        "pcie_receive_bytes_per_second": 97863601.0,
    }
    assert report.devices[0].ability == SEES_ALL
    assert report.driver_version == "580"
    assert [(part.name, part.up) for part in report.parts] == [("dcgm", True)]


def instance(number: int, profile: str) -> Instance:
    mig = MigInstance(uuid=f"MIG-{number}", gpu_instance_id=number, compute_instance_id=0, profile=profile)
    return Instance(mig=mig)


@pytest.mark.parametrize("profile", ["1g.5gb", "1c.1g.5gb"])
async def test_instances_are_joined_by_their_number_and_profile(profile: str) -> None:
    instances = (instance(13, profile), instance(14, profile))
    report = await Merged(nvml(instances=instances), dcgm()).read()
    joined, alone = report.devices[0].instances
    assert joined.mig.uuid == "MIG-13"
    assert values(joined.readings)["graphics_engine_active_ratio"] == 0.995687
    assert alone.readings == ()


@pytest.mark.parametrize("profile", ["3g.20gb", "1g.5gb+me", ""])
async def test_an_earlier_instance_with_the_same_number_is_not_mistaken_for_it(profile: str) -> None:
    report = await Merged(nvml(instances=(instance(13, profile),)), dcgm()).read()
    assert report.devices[0].instances[0].readings == ()


async def test_a_card_that_does_not_answer_stays_that_way() -> None:
    report = await Merged(nvml(fault=Fault(reason="lost")), dcgm()).read()
    assert report.devices[0].readings == ()


async def test_a_second_source_that_fails_is_a_part_that_is_down() -> None:
    first, second = nvml(Reading("power_watts", 100.0)), dcgm()
    second.report = Report(fault=Fault(reason="page_unreachable"))
    report = await Merged(first, second).read()
    assert values(report.devices[0].readings) == {"power_watts": 100.0}
    assert report.fault is None
    [part] = report.parts
    assert (part.up, part.fault) == (False, Fault(reason="page_unreachable"))


async def test_a_second_source_that_raises_is_a_part_that_is_down() -> None:
    first, second = nvml(), dcgm()
    second.breaks = True
    [part] = (await Merged(first, second).read()).parts
    assert part.fault is not None
    assert part.fault.reason == "source_error"


async def test_a_slow_second_source_delays_nothing_and_counts_for_the_next_cycle() -> None:
    second = dcgm()
    second.may_answer.clear()
    merged = Merged(nvml(), second)
    early = await merged.read()
    assert (early.devices[0].readings, early.parts[0].up, early.parts[0].age_seconds) == ((), False, None)
    second.may_answer.set()
    await until(lambda: second.answers == 1)
    late = await merged.read()
    assert "dram_active_ratio" in values(late.devices[0].readings)
    await merged.close()


async def test_a_source_that_is_always_slow_does_not_flap() -> None:
    """Each cycle asks again and shows the answer of the cycle before, with its age."""
    second = dcgm()
    second.may_answer.clear()
    merged = Merged(nvml(), second)
    await merged.read()
    for cycle in range(2, 4):
        second.may_answer.set()
        await until(lambda answers=cycle - 1: second.answers == answers)  # type: ignore[misc]
        second.may_answer.clear()
        report = await merged.read()
        assert "dram_active_ratio" in values(report.devices[0].readings)
        [part] = report.parts
        assert part.up
        assert part.age_seconds is not None
        assert part.age_seconds > 0.7 * PATIENCE
        assert second.reads == cycle
    await merged.close()


async def test_an_answer_is_not_served_for_ever() -> None:
    second = dcgm()
    merged = Merged(nvml(), second)
    assert (await merged.read()).parts[0].up
    second.may_answer.clear()
    ups = [(await merged.read()).parts[0] for _ in range(FRESH_CYCLES + 1)]
    assert [part.up for part in ups] == [True] * FRESH_CYCLES + [False]
    ages = [part.age_seconds or 0.0 for part in ups]
    assert PATIENCE <= ages[0] < ages[1] < ages[2]
    assert ups[-1].fault == Fault(reason="page_late", detail="no page in time")
    await merged.close()


async def test_a_failure_is_not_hidden_by_the_previous_answer() -> None:
    second = dcgm()
    merged = Merged(nvml(), second)
    await merged.read()
    second.report = Report(fault=Fault(reason="page_refused"))
    report = await merged.read()
    assert report.devices[0].readings == ()
    assert report.parts[0].fault == Fault(reason="page_refused")


async def test_errors_of_the_second_are_counted_under_its_name_and_once() -> None:
    first, second = nvml(), dcgm()
    first.report = msgspec.structs.replace(first.report, errors={"implausible_value": 1})
    second.report = msgspec.structs.replace(second.report, errors={"contradiction": 3})
    agent = Agent(Merged(first, second), node="n", interval=5.0, settings=SETTINGS)
    await agent.cycle()
    second.may_answer.clear()
    await agent.cycle()
    assert {(error.source, error.reason): error.count for error in agent.snapshot.errors} == {
        ("nvml", "implausible_value"): 2,
        ("dcgm", "contradiction"): 3,
    }
    await agent.close()


async def test_both_are_released_and_closed() -> None:
    first, second = nvml(), dcgm()
    second.may_answer.clear()
    merged = Merged(first, second)
    await merged.read()
    assert await merged.release(5)
    assert not await merged.release(0)
    await merged.close()
    assert first.closed
    assert second.closed


async def test_a_first_source_that_is_slow_begins_early() -> None:
    class Slow(ScriptedSource):
        begun = 0

        async def begin(self) -> None:
            self.begun += 1

    slow = Slow("nvml", Report())
    for first in (slow, nvml()):
        merged: object = Merged(first, dcgm())
        assert isinstance(merged, SlowSource)
        await merged.begin()
    assert slow.begun == 1
    assert slow.reads == 0
