"""The log of context switches as the agent sees it: supervises the child process that reads it."""

import asyncio
from collections import Counter
from collections.abc import Mapping

import msgspec

from podgpu.log import warning
from podgpu.model import Fault, PartStatus, SpotLog, SwitchLog
from podgpu.sources.child_process import ChildProcess
from podgpu.sources.switches import NAME
from podgpu.sources.switches.slices import CardRecords, SliceBuilder, spot_log

PATIENCE = 1.0  # seconds to wait for an answer; one that comes later counts for the next cycle
LONGEST_PAUSE = 300.0  # seconds between two attempts to start a child that keeps dying
NOT_ERRORS = frozenset({"hidden_record", "ended_record"})  # counted, but nothing is wrong


class SwitchWatcher(ChildProcess[list[CardRecords]]):
    name = NAME

    def __init__(self) -> None:
        super().__init__("podgpu.sources.switches.child", answer=list[CardRecords], is_bare=True)
        self.errors: Counter[str] = Counter()
        self._fault: Fault | None = None
        self._builders: dict[str, SliceBuilder] = {}

    async def read(self, cards: Mapping[str, int]) -> dict[str, SwitchLog]:
        """Return the logs of these cards since the last time. Those of other cards are closed."""
        answer = await self._asked("watch", cards)
        return {} if answer is None else await self._logs(answer)

    async def check(self, cards: Mapping[str, int]) -> dict[str, list[SpotLog]]:
        """Read these cards at random moments from now on, and return what was read since the last time."""
        answer = await self._asked("check", cards)
        return {} if answer is None else await self._spot_logs(answer)

    async def _asked(self, order: str, cards: Mapping[str, int]) -> list[CardRecords] | None:
        if self._released_seconds:
            return None
        async with self._turn:
            if not cards:
                await self._stop()
                self._fault = None
                return None
            # A child that is stuck must not hold up every cycle.
            patience = max(0.0, PATIENCE - self._silent_seconds) if self._is_stuck else PATIENCE
            try:
                answer = await self._ask(lambda: _request(order, cards), patience)
            except (OSError, EOFError, msgspec.MsgspecError) as error:
                await self._record_exit(error)
                return None
        if answer is not None:
            self._failed_starts = 0
        elif self._is_stuck and not self._released_seconds:
            self._fault = Fault(reason="reader_stuck", seconds=self._silent_seconds)
            self.errors["reader_stuck"] += 1
            self._kill_if_silent()
        return answer

    def status(self) -> PartStatus:
        fault = Fault(reason="released") if self._released_seconds else self._fault
        is_up = fault is None or fault.reason in ("hidden_processes", "released")
        return PartStatus(name=self.name, up=is_up, fault=fault)

    async def _record_exit(self, error: Exception) -> None:
        """Record that the child died. The pause until the next start grows each time."""
        self.errors["reader_exited"] += 1
        self._fault = Fault(reason="reader_exited", detail=type(error).__name__)
        warning("the reader of context switches ended", how=repr(error))
        await self._stop()
        self._pause(min(LONGEST_PAUSE, 2.0**self._failed_starts))

    async def _logs(self, answer: list[CardRecords]) -> dict[str, SwitchLog]:
        logs: dict[str, SwitchLog] = {}
        counts: Counter[str] = Counter()
        before, self._builders = self._builders, {}
        for card in answer:
            if card.reason:
                continue
            builder = before.get(card.uuid)
            if builder is None or builder.began_ns != card.began_ns:  # it was opened anew
                builder = SliceBuilder(card.began_ns)
            self._builders[card.uuid] = builder
            if log := builder.log(card):
                logs[card.uuid] = log
            counts.update(builder.counts)
            builder.counts.clear()
            await asyncio.sleep(0)  # thousands of records take long: others get their turn
        self._judge(counts, next((card for card in answer if card.reason), None))
        return logs

    async def _spot_logs(self, answer: list[CardRecords]) -> dict[str, list[SpotLog]]:
        found: dict[str, list[SpotLog]] = {}
        counts: Counter[str] = Counter()
        for card in answer:
            if not card.reason:
                log, odd = spot_log(card)
                found.setdefault(card.uuid, []).append(log)
                counts.update(odd)
                await asyncio.sleep(0)
        if answer:  # else nothing was due, and nothing is known anew
            self._judge(counts, next((card for card in answer if card.reason), None))
        return found

    def _judge(self, counts: Counter[str], refused: CardRecords | None) -> None:
        self.errors.update({reason: count for reason, count in counts.items() if count and reason not in NOT_ERRORS})
        if refused:
            self._fault = Fault(reason=refused.reason, call=refused.call, detail=refused.detail)
        elif counts["hidden_record"]:
            self._fault = Fault(reason="hidden_processes", detail="processes of other users are booked as unknown")
        else:
            self._fault = None


def _request(order: str, cards: Mapping[str, int]) -> bytes:
    return "\n".join((order, *(f"{minor} {uuid}" for uuid, minor in cards.items()))).encode()
