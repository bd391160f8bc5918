"""The NVML source as the agent sees it: a supervised child process that may hang, crash or be sent away.

There is never a second child while a stuck one lives: a process in the driver's hands cannot be killed, and a
second one would only get stuck beside it.
"""

import asyncio
import os
import signal
import sys
import time
from asyncio.subprocess import PIPE, Process

import msgspec

from podgpu.model import Fault, Report
from podgpu.sources.nvml import wire

LONGEST_READ = 2.0  # seconds the sampler may take for a cycle before it answers with what it has
SHORTEST_READ = 0.5
GRACE = 1.0  # seconds beyond that until the sampler itself counts as stuck
KILL_AFTER = 30.0  # seconds of silence
STOP_SECONDS = 3.0
LONGEST_PAUSE = 30.0  # seconds between two attempts to start a sampler that keeps dying

decode_report = msgspec.msgpack.Decoder(Report).decode


class Sampler:
    name = "nvml"
    demo = False

    def __init__(self, *, interval: float, library: str | None) -> None:
        self._budget = min(LONGEST_READ, max(SHORTEST_READ, 0.8 * interval))
        self._library = library
        self._process: Process | None = None
        self._answer: asyncio.Task[Report] | None = None
        self._asked_at = 0.0
        self._bad_lives = 0
        self._start_after = 0.0
        self._released_until = 0.0
        self._fault = Fault(reason="starting")

    async def read(self) -> Report:
        left = self._released_until - time.monotonic()
        if left > 0:
            return Report(fault=Fault(reason="released", detail=f"GPUs released for another {left:.0f} s"))
        report = await self._attempt()
        # A sampler that died in the middle is replaced at once, so that a crash costs no cycle.
        if report is None and time.monotonic() >= self._start_after:
            report = await self._attempt()
        return report or Report(fault=self._fault)

    async def release(self, seconds: float) -> bool:
        """Send the sampler away; its exit closes every descriptor, which `nvmlShutdown` alone does not."""
        self._released_until = time.monotonic() + seconds
        return await self._stop()

    async def close(self) -> None:
        await self._stop()

    @property
    def pid(self) -> int | None:
        return self._process.pid if self._process else None

    async def _attempt(self) -> Report | None:
        """Return one report, or None when there is no sampler or it died."""
        if self._doomed:
            return self._stuck()
        if self._process is None:
            if time.monotonic() < self._start_after:
                return None
            await self._start()
        if self._answer is None:
            self._ask()
        assert self._answer  # noqa: S101 - set by _ask
        done, _ = await asyncio.wait({self._answer}, timeout=self._budget + GRACE)
        return await self._taken() if done else self._stuck()

    @property
    def _doomed(self) -> bool:
        """Whether a sampler that was sent away still lives, in the driver's hands."""
        process = self._process
        if process is None or process.stdin is None or not process.stdin.is_closing():
            return False
        if process.returncode is not None:
            self._process = None
        return self._process is not None

    async def _start(self) -> None:
        arguments = [self._library] if self._library else []
        self._process = await asyncio.create_subprocess_exec(
            sys.executable,
            "-m",
            "podgpu.sources.nvml.child",
            *arguments,
            stdin=PIPE,
            stdout=PIPE,
            env={**os.environ, "MALLOC_ARENA_MAX": "2"},
        )

    def _ask(self) -> None:
        assert self._process and self._process.stdin  # noqa: S101 - started with pipes
        self._process.stdin.write(wire.frame(wire.Read(self._budget)))
        self._asked_at = time.monotonic()
        self._answer = asyncio.create_task(self._receive(self._process))

    @staticmethod
    async def _receive(process: Process) -> Report:
        assert process.stdout  # noqa: S101 - started with pipes
        size = int.from_bytes(await process.stdout.readexactly(wire.LENGTH_BYTES), "little")
        if size > wire.LARGEST_FRAME:
            raise asyncio.IncompleteReadError(b"", size)
        return decode_report(await process.stdout.readexactly(size))

    async def _taken(self) -> Report | None:
        assert self._answer  # noqa: S101 - the caller waited for it
        answer, self._answer = self._answer, None
        try:
            report = answer.result()
        except (asyncio.IncompleteReadError, ConnectionError, msgspec.MsgspecError):
            await self._bury()
            return None
        if report.fault is None:
            self._bad_lives = 0
        return report

    def _stuck(self) -> Report:
        silent = time.monotonic() - self._asked_at
        if silent > KILL_AFTER and self._process:
            self._process.kill()
        return Report(fault=Fault(reason="sampler_stuck", seconds=silent))

    async def _bury(self) -> None:
        """Take note of how the sampler ended and when the next one may start: the first one at once."""
        process, self._process = self._process, None
        if process is None:
            return
        code = await process.wait()
        ended = signal.Signals(-code).name if code < 0 else f"exit code {code}"
        self._fault = Fault(reason="sampler_exited", detail=ended)
        pause = min(LONGEST_PAUSE, 2.0 ** (self._bad_lives - 1)) if self._bad_lives else 0.0
        self._start_after = time.monotonic() + pause
        self._bad_lives += 1

    async def _stop(self) -> bool:
        process, self._process = self._process, None
        answer, self._answer = self._answer, None
        if answer:
            answer.cancel()
        if process is None:
            return True
        self._say_stop(process)
        for kill in (process.terminate, process.kill, lambda: None):
            try:
                await asyncio.wait_for(process.wait(), STOP_SECONDS / 3)
            except TimeoutError:
                if process.returncode is None:
                    kill()
            else:
                return True
        self._process = process  # still there: it holds the driver, and no other may be started
        return False

    @staticmethod
    def _say_stop(process: Process) -> None:
        assert process.stdin  # noqa: S101 - started with pipes
        try:
            process.stdin.write(wire.frame(wire.Stop()))
            process.stdin.close()
        except (ConnectionError, RuntimeError):
            return
