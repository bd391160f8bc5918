from podgpu.agent.attendance import MOST_CARDS
from podgpu.agent.loop import Agent
from podgpu.assembly.attribution import MANY_CARDS, of_all_nodes, open_attribution
from podgpu.assembly.source import open_source
from podgpu.config import Config


def open_agent(config: Config) -> Agent:
    return Agent(
        open_source(config),
        node=config.node_name,
        interval=config.interval,
        attribution=open_attribution(config),
        most_cards=MANY_CARDS if of_all_nodes(config) else MOST_CARDS,
    )
