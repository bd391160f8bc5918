"""What the agent logs about cards and parts."""

import logging

import pytest

from podgpu.agent.counters import MOST_CARDS
from podgpu.agent.loop import Agent
from podgpu.model import Device, Fault, Gpu, Report
from tests.tree import SETTINGS


class Inventor:
    """A source that lists new cards in each cycle, all of them broken."""

    name = "dcgm"
    demo = False

    def __init__(self) -> None:
        self.cycle = 0

    async def read(self) -> Report:
        self.cycle += 1
        gpus = (Gpu(uuid=f"GPU-{self.cycle}-{number}", index=number) for number in range(100))
        return Report(devices=tuple(Device(gpu=gpu, fault=Fault(reason="lost")) for gpu in gpus))

    async def release(self, seconds: float) -> bool:
        return True

    async def close(self) -> None: ...


async def test_nothing_is_remembered_of_cards_that_were_made_up_long_ago() -> None:
    agent = Agent(Inventor(), node="n", interval=5.0, settings=SETTINGS)
    for _ in range(30):
        await agent.cycle()
    await agent.close()
    assert len(agent._logged) <= 2 * MOST_CARDS


class Flickering(Inventor):
    async def read(self) -> Report:
        self.cycle += 1
        fault = Fault(reason="lost") if 2 <= self.cycle <= 4 else None
        return Report(devices=(Device(gpu=Gpu(uuid="GPU-1", index=0), fault=fault),))


async def test_a_card_has_a_line_when_it_goes_and_one_when_it_is_back(
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.INFO, "podgpu")
    agent = Agent(Flickering(), node="n", interval=5.0, settings=SETTINGS)
    for _ in range(7):
        await agent.cycle()
    await agent.close()
    assert [record.getMessage() for record in caplog.records] == ["down", "back"]
