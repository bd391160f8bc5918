"""A card that answers after its report: its reading is shown in the next one, unless it is too old by then."""

import asyncio
from types import SimpleNamespace

import pytest

from podgpu.model import Report
from podgpu.sources.nvml import ReadRequest, child, reader
from podgpu.sources.nvml.child import GpuSlot, Sampler
from tests.fakenvml.fake_node import FakeFault, FakeNode, h200
from tests.fakenvml.stage import Stage
from tests.patience import PATIENCE, until

HANG = FakeFault("hang", "nvmlDeviceGetTemperature", 1)


class Clock:
    """The clock of the sampler, which stands still."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.now = 1000.0
        for module in (child, reader):
            monkeypatch.setattr(module, "time", SimpleNamespace(monotonic=lambda: self.now))


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    return Clock(monkeypatch)


def play(stage: Stage, *faults: FakeFault) -> None:
    stage.node.faults = list(faults)
    stage.rewrite()


def hung(stage: Stage) -> Sampler:
    """Return a sampler whose second card hangs since its first report with it."""
    stage.load(FakeNode([h200(0), h200(1)]))
    sampler = Sampler(None)
    assert reasons(sampler.report(ReadRequest(PATIENCE))) == ["", ""]
    play(stage, HANG)
    assert reasons(sampler.report(ReadRequest(2.0))) == ["", "hung"]
    return sampler


def slot(sampler: Sampler, index: int) -> GpuSlot:
    return sampler._slots[h200(index).uuid]


def reasons(report: Report) -> list[str]:
    return [device.fault.reason if device.fault else "" for device in report.devices]


async def test_a_reading_that_comes_too_late_is_shown_a_report_later(stage: Stage, clock: Clock) -> None:
    sampler = hung(stage)
    play(stage)
    await until(lambda: not sampler._results.empty())
    play(stage, HANG)
    assert reasons(sampler.report(ReadRequest(2.0))) == ["", ""]
    assert reasons(sampler.report(ReadRequest(2.0))) == ["", "hung"]
    play(stage)


@pytest.mark.parametrize("ends", ["between two reports", "during a report"])
async def test_values_from_before_a_hang_are_not_shown_after_it(stage: Stage, clock: Clock, ends: str) -> None:
    sampler = hung(stage)
    asked_at = clock.now = clock.now + 1000.0
    if ends == "between two reports":
        play(stage)
        await until(lambda: not sampler._results.empty())
        report = sampler.report(ReadRequest(PATIENCE))
    else:
        other = FakeFault("hang", "nvmlDeviceGetPowerUsage", 0)
        play(stage, other, HANG)
        reading = asyncio.create_task(asyncio.to_thread(sampler.report, ReadRequest(PATIENCE)))
        await until(lambda: slot(sampler, 0).worker.tracker.call == other.call)
        play(stage, other)
        await until(lambda: not slot(sampler, 1).worker.busy)
        play(stage)
        report = await reading
    assert all(device.at >= asked_at for device in report.devices if not device.fault)
    assert report.devices[0].fault is None
