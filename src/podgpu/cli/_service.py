"""Runs the agent as a process: starts the parts, waits for a signal, stops within five seconds."""

import asyncio
import os
import signal
import threading
from collections.abc import Callable, Coroutine, Sequence
from contextlib import ExitStack
from types import FrameType
from typing import Any

from podgpu import __version__, log
from podgpu.agent.loop import Agent
from podgpu.assembly import collector, machine
from podgpu.assembly.agent import open_agent
from podgpu.assembly.attribution import by_processes_alone
from podgpu.assembly.guard import open_guard
from podgpu.assembly.menu import open_menu
from podgpu.assembly.push import open_push
from podgpu.config import Config
from podgpu.option.address import Address
from podgpu.serve.routes import RELEASE_SECONDS
from podgpu.serve.server import Server
from podgpu.views.dialects.dcgm import Options, unavailable

# Together less than the five seconds within which the process always ends.
SERVER_STOP_SECONDS = 2.4
AGENT_CLOSE_SECONDS = 2.2
LAST_RESORT_SECONDS = 4.8

Greeting = Callable[[Sequence[Address], str], None]


def serve(config: Config, greet: Greeting = lambda *_: None) -> int:
    """Run until SIGTERM or SIGINT. `greet` gets the addresses and their scheme once all are open."""
    collector.relax()
    with ExitStack() as at_exit:
        return asyncio.run(_serve(config, greet, at_exit))


async def _serve(config: Config, greet: Greeting, at_exit: ExitStack) -> int:
    agent = open_agent(config)
    if push := open_push(config, agent):
        agent.attach(push)
    server = Server(
        agent,
        series_limit=config.series_limit,
        max_requests=config.web_max_requests,
        max_connections=config.web_max_connections,
        menu=open_menu(config),
        guard=open_guard(config),
    )
    signals = _Signals(agent, at_exit)
    # Serve before the first reading: with a slow driver the agent would look dead.
    await server.start(config.web_listen_address, config.web_probe_address)
    loop = asyncio.create_task(agent.run())
    try:
        _announce(config, server.addresses)
        greet(server.addresses, server.scheme)
        return await _until_stopped(signals, loop)
    finally:
        await _stop(server, agent, loop)


async def _until_stopped(signals: "_Signals", loop: asyncio.Task[None]) -> int:
    stopped = asyncio.create_task(signals.stopped.wait())
    await asyncio.wait({stopped, loop}, return_when=asyncio.FIRST_COMPLETED)
    stopped.cancel()
    if loop.done() and (error := loop.exception()):
        log.error("the agent's loop failed; please report this", error=error)
        return 1
    log.info("stopping", signal=signals.name)
    return signals.exit_code


def _announce(config: Config, addresses: Sequence[Address]) -> None:
    places = ",".join(map(str, addresses))
    node = machine.node_name(config)
    log.info("listening", version=__version__, node=node, source=config.source, addresses=places)
    if by_processes_alone(config):
        log.info("no kubelet here: GPUs are booked by their processes alone", path=str(config.path_kubelet))
    counters = config.of(Options).collectors
    if counters and (missing := unavailable(counters)):
        fields = ",".join(missing)
        log.warning("the dcgm pages lack fields of the counters file", path=counters.path, fields=fields)


async def _stop(server: Server, agent: Agent, loop: asyncio.Task[None]) -> None:
    loop.cancel()
    await _within(SERVER_STOP_SECONDS, server.stop(), "server")
    await _within(AGENT_CLOSE_SECONDS, agent.close(), "source")


async def _within(seconds: float, work: Coroutine[Any, Any, None], part: str) -> None:
    try:
        await asyncio.wait_for(work, seconds)
    except Exception as error:  # still stop the other parts
        log.warning("did not stop cleanly", part=part, error=error)


class _Signals:
    """Signal handlers. They use `signal.signal`, which works even while the event loop is blocked."""

    def __init__(self, agent: Agent, at_exit: ExitStack) -> None:
        self.stopped = asyncio.Event()
        self.exit_code = 0
        self.name = ""
        self._agent = agent
        self._events = asyncio.get_running_loop()
        self._tasks: set[asyncio.Task[bool]] = set()
        self._last_resort = threading.Timer(LAST_RESORT_SECONDS, os._exit, (1,))
        self._last_resort.daemon = True
        at_exit.callback(self._last_resort.cancel)
        for number, handler in (
            (signal.SIGTERM, self._stop),
            (signal.SIGINT, self._stop),
            (signal.SIGUSR1, self._release),
        ):
            at_exit.callback(signal.signal, number, signal.signal(number, handler))

    def _stop(self, number: int, _: FrameType | None) -> None:
        if self.name:  # the second signal: exit at once
            os._exit(128 + number)
        self.name = signal.Signals(number).name
        self.exit_code = 128 + number if number == signal.SIGINT else 0
        self._last_resort.start()
        self._events.call_soon_threadsafe(self.stopped.set)

    def _release(self, _: int, __: FrameType | None) -> None:
        self._events.call_soon_threadsafe(self._begin_release)

    def _begin_release(self) -> None:
        task = asyncio.create_task(self._agent.release(RELEASE_SECONDS))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
