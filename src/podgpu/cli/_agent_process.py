"""Runs the agent as a process. It loads little itself: the sampler starts while the rest of the agent loads."""

import asyncio
import gc
from collections.abc import Callable, Sequence
from contextlib import ExitStack

from podgpu.assembly.source import EarlySource, source_entry
from podgpu.config import Config
from podgpu.option.value import Address

Greeting = Callable[[Sequence[Address], str], None]


def serve(config: Config, greet: Greeting = lambda *_: None) -> int:
    """Run until SIGTERM or SIGINT. `greet` gets the addresses and their scheme once all are open."""
    with ExitStack() as at_exit:
        return asyncio.run(_serve(config, greet, at_exit))


async def _serve(config: Config, greet: Greeting, at_exit: ExitStack) -> int:
    early = None if source_entry(config).play else EarlySource(config)
    if early:
        await early.begin()
    try:
        gc.disable()  # until all is loaded
        from podgpu.cli._agent_parts import run_agent

        return await run_agent(config, early, greet, at_exit)
    except BaseException:  # an agent that runs closes its source itself
        if early:
            from podgpu.cli._process import READER_SECONDS, within

            await within(READER_SECONDS, early.source.close(), "source")
        raise
