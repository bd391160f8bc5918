"""The last hour in memory, moment by moment. Each card or node has a log of its own, which keeps what changed."""

import asyncio
from bisect import bisect_right
from collections.abc import Awaitable, Callable, Iterable, Iterator
from typing import Generic

import msgspec

from podgpu.history.delta_log import DeltaLog
from podgpu.history.parted_state import PartedState
from podgpu.history.partitions import Part, Partitioning, State, encoded
from podgpu.history.timeline import Object, Series, chart, timeline
from podgpu.model import Moment

HOUR = 3600.0
LONGEST_STEP = 480.0
CHANGED = 0.45  # of a state, for each moment: most changes are a tenth of it, but some are kept as a whole
EARLY = 0.9  # of a step: a state may come a little early
PRESENT_STEPS = 3  # for so long, the newest moment counts as now
PARTS_AT_ONCE = 4  # encoded or forgotten before other work has its turn
CHARTS_AT_ONCE = 2
_HEAD = ""  # the log of what belongs to no part


class InMemoryHistory(Generic[State, Part]):
    """Keeps an hour, or less if that would take more than `most_bytes`: the oldest moments go first.

    A state is kept if it is `step` seconds newer than the last one. Whenever there is no room, the step is doubled, up
    to `longest_step`. With many parts, the first state decides how long it must be for an hour to have room. Every
    `whole_every` changes, a part is kept as a whole.
    """

    shown_seconds = HOUR  # how long a timeline is, unless other times are asked for

    def __init__(
        self,
        partitioning: Partitioning[State, Part],
        *,
        step: float,
        whole_every: int,
        most_bytes: int,
        longest_step: float = LONGEST_STEP,
    ) -> None:
        self.step = step
        self._longest_step = longest_step
        self._partitioning = partitioning
        self._whole_every = whole_every
        self._most_bytes = most_bytes
        self._turns = asyncio.Semaphore(CHARTS_AT_ONCE)
        self._clear()

    def _clear(self) -> None:
        self._logs: dict[str, DeltaLog] = {}
        self._times: list[float] = []
        self._moments: list[bytes] = []
        self._moment_bytes = 0

    async def follow(self, newest: State, changed: Callable[[State], Awaitable[State]]) -> None:
        """Keep what comes after `newest`, until cancelled."""
        while True:
            newest = await changed(newest)
            await self.keep(newest)
            # A state that comes earlier would not be kept, so it is not even asked for.
            await asyncio.sleep(EARLY * self.step - newest.taken_at + self._times[-1])

    @property
    def span(self) -> tuple[float, float] | None:
        """From when to when there are moments."""
        return (self._times[0], self._times[-1]) if self._times else None

    @property
    def size(self) -> int:
        """Bytes that are kept."""
        return sum(log.size for log in self._logs.values()) + self._moment_bytes

    async def keep(self, state: State) -> None:
        at = state.taken_at
        if self._times and at < self._times[-1]:
            self._clear()  # the clock was set back, and nothing is in order any more
        if self._times and at - self._times[-1] < EARLY * self.step:
            return
        head, parts = self._partitioning.split(state)
        for number, (name, part) in enumerate(parts.items(), 1):
            self._log(name).put(at, encoded(part))
            if number % PARTS_AT_ONCE == 0:
                await asyncio.sleep(0)
        for name in self._logs.keys() - parts.keys() - {_HEAD}:
            self._logs[name].put(at, None)
        self._log(_HEAD).put(at, encoded((tuple(parts), head)))
        # From here on it can be read.
        self._times.append(at)
        moment = msgspec.msgpack.encode(self._partitioning.moment(state))
        self._moments.append(moment)
        self._moment_bytes += len(moment)
        if len(self._times) == 1 and self._partitioning.has_many:
            self._lengthen_step()
        await self._forget(at - HOUR)

    def _lengthen_step(self) -> None:
        hour = self.size * CHANGED * HOUR
        while self.step < self._longest_step and self.size + hour / self.step > self._most_bytes:
            self.step *= 2

    def _log(self, name: str) -> DeltaLog:
        if name not in self._logs:
            self._logs[name] = DeltaLog(self._whole_every, is_one_of_many=self._partitioning.has_many)
        return self._logs[name]

    async def _forget(self, before: float) -> None:
        number = bisect_right(self._times, before)
        # With many parts, moments may be minutes apart: the last one before the hour says how it began.
        await self._drop(max(0, number - 1) if self._partitioning.has_many else number)
        if self.size <= self._most_bytes:
            return
        if self.step < self._longest_step:
            self.step *= 2
        while self.size > self._most_bytes and len(self._times) > 1:
            await self._drop(max(1, len(self._times) // 10))

    async def _drop(self, number: int) -> None:
        """Forget the oldest moments."""
        if not number:
            return
        self._moment_bytes -= sum(map(len, self._moments[:number]))
        del self._times[:number], self._moments[:number]
        for turn, log in enumerate(self._logs.values(), 1):
            log.forget(self._times[0])
            if turn % PARTS_AT_ONCE == 0:
                await asyncio.sleep(0)
        self._logs = {name: log for name, log in self._logs.items() if not log.is_empty}

    def found(self, moment: float) -> float | None:
        """Return when the state was taken that was the newest then; None if it is not kept."""
        number = bisect_right(self._times, moment) - 1
        if number < 0 or moment > self._times[-1] + PRESENT_STEPS * self.step:
            return None
        return self._times[number]

    def at(self, moment: float) -> PartedState[State, Part] | None:
        """Return the state that was the newest then, to be read in a thread: a thousand nodes take a while."""
        taken_at = self.found(moment)
        if taken_at is None:
            return None
        logs = {name: log.copy() for name, log in self._logs.items()}
        return PartedState(taken_at, lambda: self._read(logs, taken_at), self._partitioning.join)

    def _read(self, logs: dict[str, DeltaLog], at: float) -> tuple[State, Iterator[Part]]:
        names, head = self._partitioning.decode_head(logs.pop(_HEAD).at(at) or b"")
        # Each log goes when it has been read.
        texts = (logs.pop(name).at(at) for name in names)
        return head, (self._partitioning.decode_part(text) for text in texts if text is not None)

    async def timeline(self, start: float, end: float, step: float) -> Object:
        moments = (msgspec.msgpack.decode(moment, type=Moment) for moment in self._moments)
        return timeline(moments, start, end, step)

    async def series(self, uuid: str) -> Series | None:
        """Return the main numbers of a card or a MIG instance, each with its times; None if nothing has this UUID."""
        async with self._turns:
            logs = [log.copy() for name, log in self._logs.items() if name != _HEAD]
            return await asyncio.to_thread(self._series, logs, uuid)

    def _series(self, logs: Iterable[DeltaLog], uuid: str) -> Series | None:
        word, found = msgspec.json.encode(uuid), None
        for log in logs:
            # Pods mention the UUIDs of their devices too: only the log that has the card has numbers.
            if log.mentions(word) and (found := self._chart(log, uuid)):
                return found
        return found

    def _chart(self, log: DeltaLog, uuid: str) -> Series:
        parts = ((at, self._partitioning.decode_part(text)) for at, text in log.texts() if text is not None)
        return chart(((at, self._partitioning.cards(part)) for at, part in parts), uuid)
