"""A source with a child process, as the agent sees it. The child may hang, crash or be stopped; the agent goes on.

While a stuck child lives, no second one is started. A process stuck in the driver cannot be killed, and a second would
get stuck too.
"""

import asyncio
import math
import os
import sys
import time
from asyncio import FIRST_COMPLETED, Future, Task
from asyncio.subprocess import PIPE, Process
from collections.abc import Callable
from contextlib import suppress
from typing import Any, Generic, TypeVar

import msgspec

from podgpu.sources.child import LENGTH_BYTES, frame
from podgpu.supervise import brief

STOP_SECONDS = 1.0  # until the next degree of force
EXIT_SECONDS = 1.0  # until a killed process that is still there counts as stuck in the driver
KILL_AFTER = 30.0  # seconds without an answer
LARGEST_ANSWER = 64 * 1024 * 1024  # bytes

# What a child loads is most of its memory. Where typing_extensions is installed, msgspec loads it, though typing would
# do. A bare child does without `site`, and finds podgpu in the folder where the agent found it.
_START = "import sys; sys.modules['typing_extensions'] = None; __import__(sys.argv.pop(1), fromlist=['main']).main()"
_START_BARE = f"import sys; sys.path.append(sys.argv.pop(1)); {_START}"
_FOLDER = __file__.removesuffix("/podgpu/sources/child_process.py")

T = TypeVar("T")


class ChildProcess(Generic[T]):
    """Starts, asks and stops a process that runs a module's `main` and answers in MessagePack.

    Hold `_turn` to ask or stop it.

    `_failed_starts` counts the processes that were started since it was last set to 0. After a stop, `_exit_code` is
    that of the last process.
    """

    def __init__(self, module: str, *arguments: str, answer: type[T], is_bare: bool = False) -> None:
        """A bare module imports podgpu and the standard library alone."""
        self._turn = asyncio.Lock()
        self._failed_starts = 0
        self._exit_code = 0
        start = ("-S", "-c", _START_BARE, _FOLDER) if is_bare else ("-c", _START)
        self._command = (*start, module, *arguments)
        self._decode = msgspec.msgpack.Decoder(answer).decode
        self._process: Process | None = None
        self._is_stopping = False  # it was stopped but is still there
        self._answer: Task[T] | None = None
        self._interrupt: Future[None] | None = None  # once done, the answer is not awaited any longer
        self._asked_at = 0.0
        self._start_after = 0.0
        self._released_until = 0.0

    @property
    def pid(self) -> int | None:
        return self._process.pid if self._process else None

    @property
    def _has_exited(self) -> bool:
        """Whether it ended by itself, and was not stopped yet."""
        return bool(self._process and self._process.returncode is not None and not self._is_stopping)

    @property
    def _is_stuck(self) -> bool:
        """Whether it owes an answer, or was stopped but is still there."""
        return self._is_stopping or self._answer is not None

    @property
    def _is_suspended(self) -> bool:
        """Whether a signal has stopped it. It holds no lock of the driver, so it can be replaced at once."""
        try:
            with open(f"/proc/{self.pid or 0}/stat", "rb") as file:  # noqa: PTH123 - pathlib takes memory
                return file.read(512).rpartition(b")")[2].split()[0] in (b"T", b"t")
        except (OSError, IndexError):
            return False

    @property
    def _silent_seconds(self) -> float:
        return time.monotonic() - self._asked_at

    @property
    def _released_seconds(self) -> float:
        """For how much longer it may not be started because of a release."""
        return max(0.0, self._released_until - time.monotonic())

    @property
    def _may_start(self) -> bool:
        return not self._released_seconds and time.monotonic() >= self._start_after

    def _pause(self, seconds: float) -> None:
        """Start no new process for so long."""
        self._start_after = time.monotonic() + seconds

    async def _ask(self, request: Callable[[], bytes], seconds: float) -> T | None:
        """Start it if necessary and send a request, unless it still owes an answer. Return the answer.

        None if there is no answer in time, it may not be started now, or it is released meanwhile. Raises OSError,
        EOFError or MsgspecError if it is gone, or its answer makes no sense.
        """
        if not await self._begin(request) or self._answer is None:
            return None
        self._interrupt = asyncio.get_running_loop().create_future()
        awaited: set[Future[Any]] = {self._answer, self._interrupt}
        await asyncio.wait(awaited, timeout=seconds, return_when=FIRST_COMPLETED)
        if self._interrupt.done() or not self._answer.done():
            return None
        answer, self._answer = self._answer, None
        return answer.result()

    async def _begin(self, request: Callable[[], bytes]) -> bool:
        """Start it if necessary, and send the request, unless an answer is due anyway. Return whether one is due."""
        if self._is_stopping and self._process and self._process.returncode is not None:
            self._forget()
        if self._process is None and self._may_start:
            await self._start()
        if self._process is None or self._is_stopping or self._released_seconds:
            return False
        if self._answer is None:
            self._send(request())
            self._asked_at = time.monotonic()
            self._answer = brief(self._receive(self._process))
            # Retrieve the exception, even if the answer is not awaited any longer: asyncio would log it.
            self._answer.add_done_callback(lambda answer: answer.cancelled() or answer.exception())
        return True

    def _send(self, message: bytes) -> None:
        if self._process and self._process.stdin and self._process.returncode is None:
            self._process.stdin.write(frame(message))

    def _kill(self) -> None:
        if self._process:
            with suppress(ProcessLookupError):
                self._process.kill()

    def _kill_if_silent(self) -> None:
        if self._silent_seconds > KILL_AFTER:
            self._kill()

    async def _stop(self) -> bool:
        """Close its stdin, then use growing force. Return False if it is still there: it holds the driver."""
        process = self._process
        if process is None:
            return True
        self._is_stopping = not await _ended(process)
        # Not cancelled earlier: a child that is still writing its answer would not see the end of its stdin.
        self._forget_answer()
        if not self._is_stopping:
            self._forget()
        return not self._is_stopping

    async def release(self, seconds: float) -> bool:
        """Stop it, and start no new one for a while. Return True once nothing of the driver is held.

        Its exit closes every descriptor; `nvmlShutdown` would leave some open.
        """
        self._released_until = time.monotonic() + seconds
        if self._interrupt and not self._interrupt.done():
            self._interrupt.set_result(None)
        async with self._turn:
            return await self._stop()

    async def close(self) -> None:
        await self.release(math.inf)

    async def _start(self) -> None:
        self._failed_starts += 1
        self._process = await asyncio.create_subprocess_exec(
            sys.executable,
            "-P",  # do not import modules from the agent's working directory
            *self._command,
            stdin=PIPE,
            stdout=PIPE,
            env={**os.environ, "MALLOC_ARENA_MAX": "2"},
        )

    async def _receive(self, process: Process) -> T:
        assert process.stdout  # noqa: S101 - started with pipes
        size = int.from_bytes(await process.stdout.readexactly(LENGTH_BYTES), "little")
        if size > LARGEST_ANSWER:
            msg = f"a message of {size} bytes"
            raise EOFError(msg)
        return self._decode(await process.stdout.readexactly(size))

    def _forget(self) -> None:
        if self._process:
            self._exit_code = self._process.returncode or 0
        self._process, self._is_stopping = None, False
        self._forget_answer()

    def _forget_answer(self) -> None:
        if self._answer:
            self._answer.cancel()
        self._answer = None


async def _ended(process: Process) -> bool:
    assert process.stdin  # noqa: S101 - started with pipes
    with suppress(ConnectionError, RuntimeError):
        process.stdin.close()
    for force, seconds in (
        (process.terminate, STOP_SECONDS),
        (process.kill, STOP_SECONDS),
        (None, EXIT_SECONDS),
    ):
        try:
            await asyncio.wait_for(process.wait(), seconds)
        except TimeoutError:
            with suppress(ProcessLookupError):
                if force:
                    force()
        else:
            return True
    return False
