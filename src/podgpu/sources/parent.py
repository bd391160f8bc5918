"""How the agent starts, hears and stops the child process of a source."""

import asyncio
import os
import sys
from asyncio.subprocess import PIPE, Process
from contextlib import suppress

from msgspec import Struct

from podgpu.sources import pipe

STOP_SECONDS = 3.0


async def start(module: str, *arguments: str) -> Process:
    return await asyncio.create_subprocess_exec(
        sys.executable,
        "-P",  # do not import modules from the agent's working directory
        "-m",
        module,
        *arguments,
        stdin=PIPE,
        stdout=PIPE,
        env={**os.environ, "MALLOC_ARENA_MAX": "2"},
    )


def send(process: Process, message: Struct) -> None:
    assert process.stdin  # noqa: S101 - started with pipes
    process.stdin.write(pipe.frame(message))


async def answer(process: Process) -> bytes:
    """Wait for its next message. Raises EOFError if there will be none."""
    assert process.stdout  # noqa: S101 - started with pipes
    return await pipe.next_answer(process.stdout)


def kill(process: Process) -> None:
    with suppress(ProcessLookupError):
        process.kill()


async def stop(process: Process) -> bool:
    """Close its stdin, then use growing force. Return False if it is still there: it holds the driver."""
    assert process.stdin  # noqa: S101 - started with pipes
    with suppress(ConnectionError, RuntimeError):
        process.stdin.close()
    for force in (process.terminate, process.kill, lambda: None):
        try:
            await asyncio.wait_for(process.wait(), STOP_SECONDS / 3)
        except TimeoutError:
            with suppress(ProcessLookupError):
                force()
        else:
            return True
    return False
