"""Runs a few cycles of the agent, for a command that needs the node's current state."""

import asyncio
import time
from functools import partial

from podgpu.assembly.agent import open_agent, open_attribution
from podgpu.config import Config
from podgpu.model import Snapshot
from podgpu.supervise import end

# A driver takes seconds to answer first if no process keeps it loaded.
PATIENCE_SECONDS = 10.0
_MAY_PASS = frozenset({"starting", "hung", "sampler_stuck"})


async def read_node(config: Config, *, cycles: int, pause: float) -> Snapshot:
    """Read until every part has answered, and then `cycles - 1` more times, `pause` seconds apart."""
    attribution = open_attribution(config)
    agent = open_agent(config, attribution)
    watching = agent.supervisor.supervise(agent.name, partial(attribution.run, agent.supervisor))
    until = time.monotonic() + PATIENCE_SECONDS
    try:
        await agent.cycle()
        while _may_pass(agent.snapshot) and time.monotonic() < until:
            await asyncio.sleep(0.1)
            await agent.cycle()
        for _ in range(cycles - 1):
            await asyncio.sleep(pause)
            await agent.cycle()
        return agent.snapshot
    finally:
        await end(watching)
        await agent.close()


def _may_pass(snapshot: Snapshot) -> bool:
    return any(part.fault and part.fault.reason in _MAY_PASS for part in snapshot.parts)
