"""The parts of the agent: starts them, waits for a signal, stops within five seconds."""

import asyncio
import signal
from collections.abc import Sequence
from contextlib import ExitStack
from functools import partial

from podgpu import __version__, log
from podgpu.agent.loop import Agent
from podgpu.agent.playback import Playback
from podgpu.assembly import machine
from podgpu.assembly.agent import misses_kubelet, open_agent, open_push
from podgpu.assembly.server import open_guard, open_node_history, open_pages, open_recorded_history
from podgpu.assembly.source import EarlySource
from podgpu.cli._agent_process import Greeting
from podgpu.cli._process import Signals, answer_promptly, close_all, save_memory, until_stopped
from podgpu.config import Config
from podgpu.option.value import Address
from podgpu.serve.routes import RELEASE_SECONDS
from podgpu.serve.server import NodeServer
from podgpu.supervise import Work, brief
from podgpu.views.dialects._dcgm.counters import DcgmPageOptions, unavailable


async def run_agent(config: Config, early: EarlySource | None, greet: Greeting, at_exit: ExitStack) -> int:
    """Run until SIGTERM or SIGINT. `greet` gets the addresses and their scheme once all are open."""
    save_memory()
    answer_promptly()
    agent = open_agent(config, early=early)
    if isinstance(agent, Agent) and (push := open_push(config, agent)):
        agent.attach(push)
    history = open_node_history(config)
    past = open_recorded_history(agent) if isinstance(agent, Playback) else history
    server = NodeServer(
        agent,
        series_limit=config.series_limit,
        max_requests=config.web_max_requests,
        max_connections=config.web_max_connections,
        max_streams=config.web_max_streams,
        registry=open_pages(config),
        guard=open_guard(config),
        history=past,
        lanes=agent.lanes if isinstance(agent, Agent) else None,
        supervisor=agent.supervisor,
    )
    signals = Signals(at_exit, release=partial(agent.release, RELEASE_SECONDS))
    if isinstance(agent, Playback):
        asyncio.get_running_loop().add_signal_handler(signal.SIGUSR2, agent.pause)
    # Serve before the first reading: with a slow driver the agent would look dead.
    await server.start(config.web_listen_address, config.web_probe_address)
    works: list[tuple[str, Work]] = [(agent.name, agent.run)]
    if history and not isinstance(agent, Playback):
        works.append(("history", partial(history.follow, agent.snapshot, agent.changed)))
    loop = brief(agent.supervisor.run(works))
    try:
        _announce(config, server.addresses)
        greet(server.addresses, server.scheme)
        return await until_stopped(signals, loop)
    finally:
        loop.cancel()
        await close_all(server.stop, agent.close, "source")


def _announce(config: Config, addresses: Sequence[Address]) -> None:
    places = ",".join(map(str, addresses))
    node = machine.node_name(config)
    log.info("listening", version=__version__, node=node, source=config.source, addresses=places)
    if misses_kubelet(config):
        # A pod may run beside a kubelet whose folder is not mounted into it.
        message = "no kubelet here: GPUs are booked by their processes alone"
        if machine.is_in_pod():
            message = "the kubelet's folder is not mounted: it is not known which GPU is allocated to which container"
        log.info(message, path=str(config.path_kubelet))
    counters = config.of(DcgmPageOptions).collectors
    if counters and (missing := unavailable(counters)):
        fields = ",".join(missing)
        log.warning("the dcgm pages lack fields of the counters file", path=counters.path, fields=fields)
