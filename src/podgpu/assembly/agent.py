from podgpu.agent.attribution import Attribution
from podgpu.agent.loop import Agent
from podgpu.assembly import machine
from podgpu.assembly.attribution import open_attribution
from podgpu.assembly.source import open_source
from podgpu.config import Config


def open_agent(config: Config, attribution: Attribution | None = None) -> Agent:
    """Open the agent. A caller that runs the attribution itself passes it in."""
    return Agent(
        open_source(config),
        node=machine.node_name(config),
        interval=config.interval,
        attribution=attribution or open_attribution(config),
    )
