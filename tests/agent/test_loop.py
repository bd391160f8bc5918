"""What is counted as an error: every fault of source, card and part, once a cycle, and no release."""

import pytest

from podgpu.agent.loop import Agent
from podgpu.model import Device, Fault, Gpu, PartStatus, Report
from tests.tree import SETTINGS


class Source:
    """Says what it is told to."""

    name = "nvml"
    demo = False

    def __init__(self, report: Report) -> None:
        self.report = report

    async def read(self) -> Report:
        return self.report

    async def release(self, seconds: float) -> bool:
        return seconds > 0

    async def close(self) -> None: ...


def card(reason: str) -> Device:
    return Device(gpu=Gpu(uuid="GPU-1", index=0), fault=Fault(reason=reason) if reason else None)


def part(reason: str) -> PartStatus:
    return PartStatus(name="dcgm", up=not reason, fault=Fault(reason=reason) if reason else None)


REPORTS = {
    "nothing": (Report(devices=(card(""),), parts=(part(""),)), {}),
    "a source": (Report(fault=Fault(reason="sampler_stuck")), {("nvml", "sampler_stuck"): 2}),
    "a card": (Report(devices=(card("lost"),)), {("nvml", "lost"): 2}),
    "a part": (Report(parts=(part("page_late"),)), {("dcgm", "page_late"): 2}),
    "what a source counted": (Report(errors={"refused": 3}), {("nvml", "refused"): 6}),
    "what a part counted": (Report(part_errors={"dcgm": {"name": 1}}), {("dcgm", "name"): 2}),
    "a released source": (Report(fault=Fault(reason="released")), {}),
    "a released part": (Report(parts=(part("released"),)), {}),
}


@pytest.mark.parametrize("what", REPORTS)
async def test_a_fault_counts_in_each_cycle_and_a_release_in_none(what: str) -> None:
    report, counts = REPORTS[what]
    agent = Agent(Source(report), node="n", interval=60.0, settings=SETTINGS)
    await agent.cycle()
    await agent.cycle()
    found = {(one.source, one.reason): one.count for one in agent.snapshot.errors}
    await agent.close()
    assert found == counts
