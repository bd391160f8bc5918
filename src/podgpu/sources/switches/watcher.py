"""The log of context switches as the agent sees it: supervises the child process that reads it."""

from collections import Counter
from collections.abc import Iterable, Mapping
from contextlib import suppress

import msgspec

from podgpu import log
from podgpu.model import Fault, PartStatus, SwitchLog
from podgpu.sources.child_process import ChildProcess
from podgpu.sources.switches import NAME, CloseRequest, WatchAnswer, WatchRequest

PATIENCE = 1.0  # seconds to wait for an answer; one that comes later counts for the next cycle
LONGEST_PAUSE = 300.0  # seconds between two attempts to start a child that keeps dying
NOT_ERRORS = frozenset({"hidden_record", "ended_record"})  # counted, but nothing is wrong


class SwitchWatcher(ChildProcess[WatchAnswer]):
    name = NAME

    def __init__(self) -> None:
        super().__init__("podgpu.sources.switches.child", answer=WatchAnswer)
        self.errors: Counter[str] = Counter()
        self._fault: Fault | None = None

    async def read(self, cards: Mapping[str, int]) -> dict[str, SwitchLog]:
        """Return the logs of these cards since the last time. Those of other cards are closed."""
        if self._released_seconds:
            return {}
        async with self._turn:
            if not cards:
                await self._stop()
                self._fault = None
                return {}
            # A child that is stuck must not hold up every cycle.
            patience = max(0.0, PATIENCE - self._silent_seconds) if self._is_stuck else PATIENCE
            try:
                answer = await self._ask(lambda: WatchRequest(dict(cards)), patience)
            except (OSError, EOFError, msgspec.MsgspecError) as error:
                await self._record_exit(error)
                return {}
        if answer is None:
            if self._is_stuck and not self._released_seconds:
                self._fault = Fault(reason="reader_stuck", seconds=self._silent_seconds)
                self.errors["reader_stuck"] += 1
                self._kill_if_silent()
            return {}
        self._failed_starts = 0
        return self._logs(answer)

    def shut(self, cards: Iterable[str]) -> None:
        """Close the logs of these cards. The child stays, with nothing open."""
        with suppress(ConnectionError, RuntimeError):
            self._send(CloseRequest(list(cards)))

    def status(self) -> PartStatus:
        fault = Fault(reason="released") if self._released_seconds else self._fault
        is_up = fault is None or fault.reason in ("hidden_processes", "released")
        return PartStatus(name=self.name, up=is_up, fault=fault)

    async def _record_exit(self, error: Exception) -> None:
        """Record that the child died. The pause until the next start grows each time."""
        self.errors["reader_exited"] += 1
        self._fault = Fault(reason="reader_exited", detail=type(error).__name__)
        log.warning("the reader of context switches ended", how=repr(error))
        await self._stop()
        self._pause(min(LONGEST_PAUSE, 2.0**self._failed_starts))

    def _logs(self, answer: WatchAnswer) -> dict[str, SwitchLog]:
        counts: Counter[str] = Counter()
        for card in answer.cards.values():
            counts.update(card.counts)
        self.errors.update({reason: count for reason, count in counts.items() if reason not in NOT_ERRORS})
        refused = next((card for card in answer.cards.values() if card.reason), None)
        if refused:
            self._fault = Fault(reason=refused.reason, call=refused.call, detail=refused.detail)
        elif counts["hidden_record"]:
            self._fault = Fault(
                reason="hidden_processes", detail="processes of other users are booked as unknown"
            )
        else:
            self._fault = None
        return {uuid: card.log for uuid, card in answer.cards.items() if card.log}
