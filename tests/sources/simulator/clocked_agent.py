"""An agent over the simulator, by a clock of the test: minutes pass in no time."""

from collections.abc import AsyncIterator

from podgpu.agent.loop import Agent
from podgpu.assembly.agent import open_attribution
from podgpu.config import Config
from podgpu.sources.simulator.source import Simulator
from tests.tree import SETTINGS


class Clock:
    now = 0.0

    def __call__(self) -> float:
        return self.now


async def cycles(interval: float, seconds: float) -> AsyncIterator[Agent]:
    """Yield the agent after each of its cycles. No reading comes quite in time."""
    clock = Clock()
    attribution = open_attribution(Config(source="simulator", interval=interval))
    agent = Agent(
        Simulator(seed=1, clock=clock),
        node="demo",
        interval=interval,
        settings=SETTINGS,
        attribution=attribution,
    )
    while clock.now < seconds:
        await agent.cycle()
        yield agent
        clock.now += interval * (1.02 if clock.now % 2 < 1 else 0.99)
    await agent.close()
