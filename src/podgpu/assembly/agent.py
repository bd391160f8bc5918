from podgpu.agent.attribution import Attribution
from podgpu.agent.loop import Agent
from podgpu.agent.playback import Playback
from podgpu.assembly import machine
from podgpu.assembly.attribution import open_attribution
from podgpu.assembly.replay import open_playback
from podgpu.assembly.source import open_source
from podgpu.assembly.terms import open_terms
from podgpu.config import Config
from podgpu.kube.workloads import SPREAD_SECONDS


def open_agent(config: Config, attribution: Attribution | None = None) -> Agent | Playback:
    """Open the agent. A caller that runs the attribution itself passes it in. A recording is played instead."""
    if playback := open_playback(config):
        return playback
    attribution = attribution or open_attribution(config, spread=SPREAD_SECONDS)
    source = open_source(config, attribution.watched)
    return Agent(
        source,
        node=machine.node_name(config),
        interval=config.interval,
        terms=open_terms(config),
        attribution=attribution,
        address="" if source.demo else machine.address(),
    )
