"""What is counted as an error: every fault of source, card and part, once a cycle, and no release."""

import asyncio
from collections import Counter

import pytest
from msgspec.structs import replace

from podgpu.agent.attribution import Attribution
from podgpu.agent.loop import Agent
from podgpu.kube.kubelet.podresources import PodResourceLists
from podgpu.model import Allocation, Device, Fault, Gpu, PartStatus, Reading, Report
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
    found = {(error.source, error.reason): error.count for error in agent.snapshot.errors}
    await agent.close()
    assert found == counts


class SlowKubelet:
    """Answers once it may."""

    name = "podresources"

    def __init__(self) -> None:
        self.errors: Counter[str] = Counter()
        self.may_answer = asyncio.Event()

    async def read(self) -> PodResourceLists:
        await self.may_answer.wait()
        held = Allocation(namespace="ml", pod="train", container="main", resource="nvidia.com/gpu", device_id="GPU-1")
        return PodResourceLists(devices=(held,))

    def status(self) -> PartStatus:
        return PartStatus(name=self.name, up=True, age_seconds=0.0)


async def test_the_first_page_has_the_cards_before_the_kubelet_has_answered() -> None:
    kubelet = SlowKubelet()
    attribution = Attribution(interval=600.0, allocations=kubelet)
    report = Report(devices=(Device(gpu=Gpu(uuid="GPU-1", index=0), readings=(Reading("power_watts", 70.0),)),))
    agent = Agent(Source(report), node="n", interval=600.0, settings=SETTINGS, attribution=attribution)
    before = agent.snapshot
    cycle = asyncio.create_task(agent.cycle())
    async with asyncio.timeout(60):
        first = await agent.changed(before)
        starting = {part.name: part.fault.reason for part in first.parts if part.fault}
        was_ready = agent.ready
        kubelet.may_answer.set()
        await cycle
    second = agent.snapshot
    await agent.close()
    assert starting == {"attribution": "starting"}
    assert [(card.readings[0].value, card.tenants, card.rest) for card in first.cards] == [(70.0, (), ())]
    assert [tenant.container.pod for tenant in second.cards[0].tenants] == ["train"]
    assert (was_ready, agent.ready) == (False, True)
    assert not [part for part in second.parts if part.fault]


class BriefSource(Source):
    """Its first report is brief."""

    def __init__(self, report: Report) -> None:
        super().__init__(report)
        self.reads = 0

    async def read(self) -> Report:
        self.reads += 1
        return replace(self.report, brief=self.reads == 1)


async def test_a_reading_follows_a_brief_one_long_before_the_interval_ends() -> None:
    source = BriefSource(Report(devices=(card(""),)))
    agent = Agent(source, node="n", interval=600.0, settings=SETTINGS)
    running = asyncio.create_task(agent.run())
    async with asyncio.timeout(60):
        first = await agent.changed(agent.snapshot)
        await agent.changed(first)
    running.cancel()
    await asyncio.gather(running, return_exceptions=True)
    await agent.close()
    assert source.reads == 2
