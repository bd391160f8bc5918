"""What processes that serve have in common: less memory, more connections, and a stop within five seconds."""

import asyncio
import gc
import os
import resource
import signal
import sys
import threading
from asyncio import sslproto
from collections.abc import Callable, Coroutine
from contextlib import ExitStack
from types import FrameType
from typing import Any

from podgpu import log
from podgpu.supervise import BriefTasks, brief

# For the server to stop, and for what reads the GPUs or the nodes to close; together less than the last resort.
SERVER_SECONDS, READER_SECONDS = 2.4, 2.2
LAST_RESORT_SECONDS = 4.8
# Between two collections. Each client leaves about ten objects in a cycle, by the transport of Python 3.11.
GC_OBJECTS = 20_000
FEWER_GC_OBJECTS = 5_000  # the same where a collection must be short: it takes a millisecond for a thousand or two
SWITCH_SECONDS = 0.0005
TLS_BYTES = 16 << 10  # a record of TLS has no more

Closing = Coroutine[Any, Any, None]
Release = Callable[[], Coroutine[Any, Any, bool]]


def collect_seldom(objects: int = GC_OBJECTS) -> None:
    """Let Python collect reference cycles rarely: a snapshot is a large tree without any.

    Modules stay for the life of the process, so they are excluded.
    """
    gc.freeze()
    gc.set_threshold(objects, 20, 50)
    gc.enable()


def shrink_tls_buffers() -> None:
    """Let asyncio read 16 KiB of TLS at a time: its own 256 KiB stay with every connection, also with idle ones."""
    sslproto.SSLProtocol.max_size = TLS_BYTES


def save_memory(objects: int = GC_OBJECTS) -> None:
    collect_seldom(objects)
    shrink_tls_buffers()


def answer_promptly() -> None:
    """Let a thread that computes give way to the event loop within half a millisecond.

    By default the loop waits ten times as long whenever it comes back from a call to the kernel, so while a moment of
    the past is read, a probe would wait for as many calls as there are clients.
    """
    sys.setswitchinterval(SWITCH_SECONDS)


def allow_connections() -> None:
    """Raise the limit of open files as far as it goes: there is a connection for each node."""
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))


async def until_stopped(signals: "Signals", loop: asyncio.Task[None]) -> int:
    """Wait for a signal, or for an error, which alone ends the loop. Return the exit code."""
    stopped = brief(signals.stopped.wait())
    await asyncio.wait({stopped, loop}, return_when=asyncio.FIRST_COMPLETED)
    stopped.cancel()
    if loop.done() and (error := loop.exception()):
        log.error("the loop failed; please report this", error=error)
        return 1
    log.info("stopping", signal=signals.name)
    return signals.exit_code


async def within(seconds: float, work: Closing, part: str) -> None:
    try:
        await asyncio.wait_for(work, seconds)
    except Exception as error:  # still stop the other parts
        log.warning("did not stop cleanly", part=part, error=error)


async def close_all(server: Callable[[], Closing], reader: Callable[[], Closing], part: str) -> None:
    """Stop the server, and then the part that it shows."""
    await within(SERVER_SECONDS, server(), "server")
    await within(READER_SECONDS, reader(), part)


class Signals:
    """Signal handlers. They use `signal.signal`, which works even while the event loop is blocked."""

    def __init__(self, at_exit: ExitStack, release: Release | None = None) -> None:
        """`release` is what SIGUSR1 asks for."""
        self.stopped = asyncio.Event()
        self.exit_code = 0
        self.name = ""
        self._events = asyncio.get_running_loop()
        self._last_resort = threading.Timer(LAST_RESORT_SECONDS, os._exit, (1,))
        self._last_resort.daemon = True
        at_exit.callback(self._last_resort.cancel)
        handlers: dict[int, Callable[[int, FrameType | None], object]] = {
            signal.SIGTERM: self._stop,
            signal.SIGINT: self._stop,
        }
        if release is not None:
            tasks = BriefTasks()
            handlers[signal.SIGUSR1] = lambda *_: self._events.call_soon_threadsafe(lambda: tasks.begin(release()))
        for number, handler in handlers.items():
            at_exit.callback(signal.signal, number, signal.signal(number, handler))

    def _stop(self, number: int, _: FrameType | None) -> None:
        if self.name:  # the second signal: exit at once
            os._exit(128 + number)
        self.name = signal.Signals(number).name
        self.exit_code = 128 + number if number == signal.SIGINT else 0
        self._last_resort.start()
        self._events.call_soon_threadsafe(self.stopped.set)
