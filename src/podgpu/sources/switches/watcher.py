"""The log as the agent sees it: a child process that may hang, crash or be refused, while everything else goes on.

While a stuck child lives no second one is started: a card has one reader of ours, or none.
"""

import asyncio
import math
import time
from asyncio.subprocess import Process
from collections import Counter
from collections.abc import Iterable, Mapping
from contextlib import suppress

import msgspec

from podgpu import log
from podgpu.model import Fault, PartStatus, SwitchLog
from podgpu.sources import parent
from podgpu.sources.switches import NAME, messages
from podgpu.supervise import brief

PATIENCE = 1.0  # seconds to wait for an answer; one that comes later counts for the next cycle
KILL_AFTER = 30.0
LONGEST_PAUSE = 300.0  # seconds between two attempts to start a child that keeps dying
NOT_ERRORS = frozenset({"hidden_record", "ended_record"})  # counted, but nothing is wrong


class SwitchWatcher:
    name = NAME

    def __init__(self) -> None:
        self.errors: Counter[str] = Counter()
        self._turn = asyncio.Lock()
        self._process: Process | None = None
        self._answer: asyncio.Task[messages.WatchAnswer] | None = None
        self._asked_at = 0.0
        self._lives = 0  # in vain, since the last answer
        self._start_after = 0.0
        self._released_until = 0.0
        self._fault: Fault | None = None

    async def read(self, cards: Mapping[str, int]) -> dict[str, SwitchLog]:
        """Return the logs of these cards since the last time. Those of other cards are closed."""
        if time.monotonic() < self._released_until:
            return {}
        async with self._turn:
            if not cards:
                await self._dismiss()
                self._fault = None
                return {}
            try:
                answer = await self._asked(cards)
            except (OSError, EOFError, msgspec.MsgspecError) as error:
                await self._mourn(error)
                return {}
        return self._taken(answer) if answer else {}

    def shut(self, cards: Iterable[str]) -> None:
        """Close the logs of these cards. The child stays, with nothing open."""
        if self._process and self._process.returncode is None:
            with suppress(ConnectionError, RuntimeError):
                parent.send(self._process, messages.CloseRequest(list(cards)))

    def status(self) -> PartStatus:
        fault = self._fault
        if time.monotonic() < self._released_until:
            fault = Fault(reason="released")
        is_up = fault is None or fault.reason in ("hidden_processes", "released")
        return PartStatus(name=self.name, up=is_up, fault=fault)

    async def release(self, seconds: float) -> bool:
        """Let go of the driver for a while. Return True once nothing is held."""
        self._released_until = time.monotonic() + seconds
        async with self._turn:
            return await self._dismiss()

    async def close(self) -> None:
        await self.release(math.inf)

    @property
    def pid(self) -> int | None:
        return self._process.pid if self._process else None

    async def _asked(self, cards: Mapping[str, int]) -> messages.WatchAnswer | None:
        if self._process is None:
            if time.monotonic() < self._start_after:
                return None
            await self._start()
        assert self._process  # noqa: S101 - started above
        if self._answer is None:
            parent.send(self._process, messages.WatchRequest(dict(cards)))
            self._asked_at = time.monotonic()
            self._answer = brief(_receive(self._process))
        # One that is stuck must not hold up every cycle.
        patience = max(0.0, self._asked_at + PATIENCE - time.monotonic())
        done, _ = await asyncio.wait({self._answer}, timeout=patience)
        if not done:
            self._stuck()
            return None
        answer, self._answer = self._answer, None
        found = answer.result()
        self._lives = 0
        return found

    async def _start(self) -> None:
        self._lives += 1
        self._process = await parent.start("podgpu.sources.switches.child")

    def _stuck(self) -> None:
        silent = time.monotonic() - self._asked_at
        self._fault = Fault(reason="reader_stuck", seconds=silent)
        self.errors["reader_stuck"] += 1
        if silent > KILL_AFTER and self._process:
            parent.kill(self._process)

    async def _mourn(self, error: Exception) -> None:
        """The child died. The next one may start after a while, a longer one each time."""
        self.errors["reader_exited"] += 1
        self._fault = Fault(reason="reader_exited", detail=type(error).__name__)
        log.warning("the reader of context switches ended", how=repr(error))
        await self._dismiss()
        self._start_after = time.monotonic() + min(LONGEST_PAUSE, 2.0**self._lives)

    def _taken(self, answer: messages.WatchAnswer) -> dict[str, SwitchLog]:
        counts: Counter[str] = Counter()
        for one in answer.cards.values():
            counts.update(one.counts)
        self.errors.update({reason: count for reason, count in counts.items() if reason not in NOT_ERRORS})
        refused = next((one for one in answer.cards.values() if one.reason), None)
        if refused:
            self._fault = Fault(reason=refused.reason, call=refused.call, detail=refused.detail)
        elif counts["hidden_record"]:
            self._fault = Fault(
                reason="hidden_processes", detail="processes of other users are booked as unknown"
            )
        else:
            self._fault = None
        return {uuid: one.log for uuid, one in answer.cards.items() if one.log}

    async def _dismiss(self) -> bool:
        """Stop the child. One that stays holds the driver, and no other may start."""
        if self._process and not await parent.stop(self._process):
            return False
        self._process = None
        if self._answer:
            self._answer.cancel()
        self._answer = None
        return True


async def _receive(process: Process) -> messages.WatchAnswer:
    return messages.decode_answer(await parent.answer(process))
