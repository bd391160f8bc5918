"""The NVML source as the agent sees it: supervises a child process that may hang, crash or be stopped.

While a stuck child lives, no second one is started. A process stuck in the driver cannot be killed, and a second would
get stuck too.
"""

import asyncio
import math
import signal
import time
from asyncio import FIRST_COMPLETED
from asyncio.subprocess import Process
from collections.abc import Callable, Mapping
from typing import Any

import msgspec

from podgpu import log
from podgpu.model import Fault, Report
from podgpu.sources import parent
from podgpu.sources.nvml import NAME, ReadRequest
from podgpu.supervise import brief

LONGEST_READ = 2.0  # seconds until the sampler answers with what it has
SHORTEST_READ = 0.5
GRACE = 1.0  # more seconds until the sampler itself counts as stuck
KILL_AFTER = 30.0  # seconds without an answer
LONGEST_PAUSE = 30.0  # seconds between two attempts to start a sampler that keeps dying
LONGEST_FAREWELL = 4.0  # the same for a sampler that keeps exiting by itself, to load a new driver

decode_report = msgspec.msgpack.Decoder(Report).decode


class NvmlSource:
    name = NAME
    demo = False

    def __init__(
        self, *, interval: float, library: str | None, watched: Callable[[], Mapping[str, bool]] | None = None
    ) -> None:
        """Of cards that `watched` names, the report has the busy time of each of the driver's windows.

        They are finer for those of which it says so.
        """
        self._budget = min(LONGEST_READ, max(SHORTEST_READ, 0.8 * interval))
        self._library = library
        self._watched = watched
        self._turn = asyncio.Lock()  # to read, start or stop the sampler
        self._process: Process | None = None
        self._is_dismissed = False  # it was stopped but is still there
        self._answer: asyncio.Task[Report] | None = None
        self._hurry: asyncio.Future[None] | None = None  # once done, nobody waits for the answer
        self._asked_at = 0.0
        self._vain_lives = 0  # samplers started since the last good report
        self._deaths = 0  # not yet reported
        self._last_words: Fault | None = None
        self._start_after = 0.0
        self._released_until = 0.0
        self._fault = Fault(reason="starting")

    async def read(self) -> Report:
        if self._is_released():  # answer at once, even while the sampler is still stopping
            return self._released()
        async with self._turn:
            report = await self._attempt()
            # A sampler that died while reading is replaced at once, so that a crash costs no cycle.
            if report is None and time.monotonic() >= self._start_after:
                report = await self._attempt()
        if self._is_released():
            return self._released()
        deaths, self._deaths = self._deaths, 0
        if report and deaths:
            report = msgspec.structs.replace(report, errors={**report.errors, "sampler_exited": deaths})
        return report or Report(fault=self._fault)

    async def release(self, seconds: float) -> bool:
        """Stop the sampler. Its exit closes every descriptor; `nvmlShutdown` would leave some open."""
        self._released_until = time.monotonic() + seconds
        if self._hurry and not self._hurry.done():
            self._hurry.set_result(None)
        async with self._turn:
            is_gone = await self._dismissed()
            # Not cancelled earlier: a sampler that is still writing its answer would not read the request to stop.
            if self._answer:
                self._answer.cancel()
            self._answer = None
            return is_gone

    async def close(self) -> None:
        await self.release(math.inf)

    @property
    def pid(self) -> int | None:
        return self._process.pid if self._process else None

    def _is_released(self) -> bool:
        return time.monotonic() < self._released_until

    def _released(self) -> Report:
        left = self._released_until - time.monotonic()
        return Report(fault=Fault(reason="released", detail=f"GPUs released for another {left:.0f} s"))

    async def _attempt(self) -> Report | None:
        """Return a report, or None if there is no sampler, it died, or the GPUs were released meanwhile."""
        if self._process and self._process.returncode is not None:
            await self._bury()
        if self._is_dismissed:
            return self._stuck()
        if self._process is None:
            if self._is_released() or time.monotonic() < self._start_after:
                return None
            await self._start()
        if self._is_released():
            return None
        if self._answer is None:
            self._ask()
        assert self._answer  # noqa: S101 - set by _ask
        self._hurry = asyncio.get_running_loop().create_future()
        awaited: set[asyncio.Future[Any]] = {self._answer, self._hurry}
        await asyncio.wait(awaited, timeout=self._budget + GRACE, return_when=FIRST_COMPLETED)
        if self._hurry.done():
            return None
        if self._answer.done():
            return await self._taken()
        if not _is_stopped(self._process):
            return self._stuck()
        await self._let_go()
        return None

    async def _let_go(self) -> None:
        """End a sampler that somebody stopped, so that the next attempt starts another."""
        if self._process and self._answer:
            self._process.kill()
            self._answer.cancel()
            self._answer = None
            await self._bury()

    async def _start(self) -> None:
        self._vain_lives += 1
        arguments = [self._library] if self._library else []
        self._process = await parent.start("podgpu.sources.nvml.child", *arguments)

    def _ask(self) -> None:
        assert self._process  # noqa: S101 - the caller started it
        cards = self._watched() if self._watched else {}
        fine = tuple(card for card, is_fine in cards.items() if is_fine)
        parent.send(self._process, ReadRequest(self._budget, windows=tuple(cards), sampled=fine))
        self._asked_at = time.monotonic()
        self._answer = brief(self._receive(self._process))
        # Retrieve the exception, even if nobody awaits the answer any more: asyncio would log it.
        self._answer.add_done_callback(lambda answer: answer.cancelled() or answer.exception())

    @staticmethod
    async def _receive(process: Process) -> Report:
        return decode_report(await parent.answer(process))

    async def _taken(self) -> Report | None:
        assert self._answer  # noqa: S101 - the caller waited for it
        answer, self._answer = self._answer, None
        try:
            report = answer.result()
        except (EOFError, ConnectionError, msgspec.MsgspecError):
            await self._bury()
            return None
        self._last_words = report.fault
        if report.fault is None:
            self._vain_lives = 0
        return report

    def _stuck(self) -> Report:
        silent = time.monotonic() - self._asked_at
        if silent > KILL_AFTER and self._process:
            parent.kill(self._process)
        return Report(fault=Fault(reason="sampler_stuck", seconds=silent))

    async def _bury(self) -> None:
        """Record how the sampler ended and when the next may start. The first replacement may start at once."""
        process, was_dismissed = self._process, self._is_dismissed
        if process is None or not await self._dismissed() or was_dismissed:
            return
        code, last_words = process.returncode or 0, self._last_words
        if code == 0 and last_words:
            self._fault, longest = last_words, LONGEST_FAREWELL
        else:
            self._fault, longest = Fault(reason="sampler_exited", detail=_ending(code)), LONGEST_PAUSE
            self._deaths += 1
            log.warning("the sampler ended", how=_ending(code))
        pause = min(longest, 2.0 ** (self._vain_lives - 2)) if self._vain_lives > 1 else 0.0
        self._start_after = time.monotonic() + pause

    async def _dismissed(self) -> bool:
        """Stop the sampler. If it stays, it holds the driver, and no other may start."""
        if self._process is None:
            return True
        is_gone = await parent.stop(self._process)
        if is_gone:
            self._process = None
        self._is_dismissed = not is_gone
        return is_gone


def _is_stopped(process: Process | None) -> bool:
    """Whether somebody stopped it with a signal. It holds no lock of the driver, so it can be replaced at once."""
    try:
        with open(f"/proc/{process.pid if process else 0}/stat", "rb") as file:  # noqa: PTH123 - pathlib takes memory
            return file.read(512).rpartition(b")")[2].split()[0] in (b"T", b"t")
    except (OSError, IndexError):
        return False


def _ending(code: int) -> str:
    if code >= 0:
        return f"exit code {code}"
    return next((one.name for one in signal.Signals if one == -code), f"signal {-code}")
