from podgpu.agent.loop import Agent
from podgpu.assembly.attribution import open_attribution
from podgpu.assembly.source import open_source
from podgpu.config import Config


def open_agent(config: Config) -> Agent:
    return Agent(
        open_source(config),
        node=config.node_name,
        interval=config.interval,
        attribution=open_attribution(config),
    )
