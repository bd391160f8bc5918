"""The NVML source as the agent sees it: supervises the sampler."""

import signal
from collections.abc import Callable, Mapping

import msgspec

from podgpu import log
from podgpu.model import Fault, Report
from podgpu.sources.child_process import ChildProcess
from podgpu.sources.nvml import NAME, ReadRequest

LONGEST_READ = 2.0  # seconds until the sampler answers with what it has
SHORTEST_READ = 0.5
GRACE = 1.0  # more seconds until the sampler itself counts as stuck
LONGEST_PAUSE = 30.0  # seconds between two attempts to start a sampler that keeps dying
LONGEST_EXIT_PAUSE = 4.0  # the same for a sampler that keeps exiting by itself, to load a new driver


class NvmlSource(ChildProcess[Report]):
    name = NAME
    demo = False

    def __init__(
        self, *, interval: float, library: str | None, watched: Callable[[], Mapping[str, bool]] | None = None
    ) -> None:
        """For cards that `watched` names, the report has the busy time of each of the driver's windows.

        Windows are split for cards whose value there is True.
        """
        super().__init__("podgpu.sources.nvml.child", *([library] if library else []), answer=Report)
        self._budget = min(LONGEST_READ, max(SHORTEST_READ, 0.8 * interval))
        self._watched = watched
        self._unreported_exits = 0
        self._exit_fault: Fault | None = None  # of the last report: why the sampler exits, if it does
        self._fault = Fault(reason="starting")

    async def begin(self) -> None:
        """Start the sampler and ask for the first report, a brief one: it must be there soon."""
        async with self._turn:
            await self._begin(lambda: msgspec.msgpack.encode(ReadRequest(self._budget, brief=True)))

    async def read(self) -> Report:
        if self._released_seconds:  # answer at once, even while the sampler is still stopping
            return self._released()
        async with self._turn:
            report = await self._attempt()
            # A sampler that died while reading is replaced at once, so that a crash costs no cycle.
            if report is None and self._may_start:
                report = await self._attempt()
        if self._released_seconds:
            return self._released()
        exits, self._unreported_exits = self._unreported_exits, 0
        if report and exits:
            report = msgspec.structs.replace(report, errors={**report.errors, "sampler_exited": exits})
        return report or Report(fault=self._fault)

    def _released(self) -> Report:
        left = self._released_seconds
        return Report(fault=Fault(reason="released", detail=f"GPUs released for another {left:.0f} s"))

    async def _attempt(self) -> Report | None:
        """Return a report, or None if there is no sampler, it died, or the GPUs were released meanwhile."""
        if self._has_exited:
            await self._record_exit()
        try:
            report = await self._ask(self._request, self._budget + GRACE)
        except (EOFError, ConnectionError, msgspec.MsgspecError):
            await self._record_exit()
            return None
        if report:
            self._exit_fault = report.fault
            if report.fault is None:
                self._failed_starts = 0
            return report
        if self._released_seconds or not self._is_stuck:
            return None
        if self._is_suspended:
            self._kill()
            await self._record_exit()
            return None
        self._kill_if_silent()
        return Report(fault=Fault(reason="sampler_stuck", seconds=self._silent_seconds))

    def _request(self) -> bytes:
        cards = self._watched() if self._watched else {}
        sampled = tuple(card for card, is_split in cards.items() if is_split)
        return msgspec.msgpack.encode(ReadRequest(self._budget, windows=tuple(cards), sampled=sampled))

    async def _record_exit(self) -> None:
        """Record how the sampler ended and when the next may start. The first replacement may start at once."""
        if not await self._stop():
            return
        code, failed_starts = self._exit_code, self._failed_starts
        if code == 0 and self._exit_fault:
            self._fault, longest = self._exit_fault, LONGEST_EXIT_PAUSE
        else:
            self._fault, longest = Fault(reason="sampler_exited", detail=_ending(code)), LONGEST_PAUSE
            self._unreported_exits += 1
            log.warning("the sampler ended", how=_ending(code))
        self._pause(min(longest, 2.0 ** (failed_starts - 2)) if failed_starts > 1 else 0.0)


def _ending(code: int) -> str:
    if code >= 0:
        return f"exit code {code}"
    return next((number.name for number in signal.Signals if number == -code), f"signal {-code}")
