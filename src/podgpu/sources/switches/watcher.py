"""The log of context switches as the agent sees it: supervises the child process that reads it."""

import math
from collections import Counter
from collections.abc import Iterable, Mapping
from contextlib import suppress

import msgspec

from podgpu import log
from podgpu.model import Fault, PartStatus, SwitchLog
from podgpu.sources.child_process import ChildProcess
from podgpu.sources.switches import NAME
from podgpu.sources.switches.messages import CloseRequest, WatchAnswer, WatchRequest

PATIENCE = 1.0  # seconds to wait for an answer; one that comes later counts for the next cycle
LONGEST_PAUSE = 300.0  # seconds between two attempts to start a child that keeps dying
NOT_ERRORS = frozenset({"hidden_record", "ended_record"})  # counted, but nothing is wrong


class SwitchWatcher:
    name = NAME

    def __init__(self) -> None:
        self.errors: Counter[str] = Counter()
        self._child = ChildProcess(
            "podgpu.sources.switches.child", decode=msgspec.msgpack.Decoder(WatchAnswer).decode
        )
        self._fault: Fault | None = None

    async def read(self, cards: Mapping[str, int]) -> dict[str, SwitchLog]:
        """Return the logs of these cards since the last time. Those of other cards are closed."""
        child = self._child
        if child.released_seconds:
            return {}
        async with child.turn:
            if not cards:
                await child.stop()
                self._fault = None
                return {}
            # A child that is stuck must not hold up every cycle.
            patience = max(0.0, PATIENCE - child.silent_seconds) if child.is_stuck else PATIENCE
            try:
                answer = await child.ask(lambda: WatchRequest(dict(cards)), patience)
            except (OSError, EOFError, msgspec.MsgspecError) as error:
                await self._record_exit(error)
                return {}
        if answer is None:
            if child.is_stuck and not child.released_seconds:
                self._fault = Fault(reason="reader_stuck", seconds=child.silent_seconds)
                self.errors["reader_stuck"] += 1
                child.kill_if_silent()
            return {}
        child.failed_starts = 0
        return self._logs(answer)

    def shut(self, cards: Iterable[str]) -> None:
        """Close the logs of these cards. The child stays, with nothing open."""
        with suppress(ConnectionError, RuntimeError):
            self._child.send(CloseRequest(list(cards)))

    def status(self) -> PartStatus:
        fault = Fault(reason="released") if self._child.released_seconds else self._fault
        is_up = fault is None or fault.reason in ("hidden_processes", "released")
        return PartStatus(name=self.name, up=is_up, fault=fault)

    async def release(self, seconds: float) -> bool:
        return await self._child.release(seconds)

    async def close(self) -> None:
        await self.release(math.inf)

    @property
    def pid(self) -> int | None:
        return self._child.pid

    async def _record_exit(self, error: Exception) -> None:
        """Record that the child died. The pause until the next start grows each time."""
        self.errors["reader_exited"] += 1
        self._fault = Fault(reason="reader_exited", detail=type(error).__name__)
        log.warning("the reader of context switches ended", how=repr(error))
        await self._child.stop()
        self._child.pause(min(LONGEST_PAUSE, 2.0**self._child.failed_starts))

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
