"""The last hour in memory, moment by moment. Each card or node has a log of its own, which keeps what changed."""

import asyncio
from bisect import bisect_right
from collections.abc import Awaitable, Callable, Mapping
from typing import Generic

import msgspec

from podgpu.history.delta_log import DeltaLog
from podgpu.history.partitions import Part, Partitioning, State, encoded
from podgpu.history.timeline import Object, Series, chart, timeline
from podgpu.model import Moment

HOUR = 3600.0
LONGEST_STEP = 480.0
CHANGED = 0.45  # of a state, for each moment: most changes are a tenth of it, but some are kept as a whole
EARLY = 0.9  # of a step: a state may come a little early
PRESENT_STEPS = 3  # for so long, the newest moment counts as now
PARTS_AT_ONCE = 16  # encoded before other work has its turn
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
        self._forget(at - HOUR)

    def _lengthen_step(self) -> None:
        hour = self.size * CHANGED * HOUR
        while self.step < self._longest_step and self.size + hour / self.step > self._most_bytes:
            self.step *= 2

    def _log(self, name: str) -> DeltaLog:
        if name not in self._logs:
            self._logs[name] = DeltaLog(self._whole_every, is_one_of_many=self._partitioning.has_many)
        return self._logs[name]

    def _forget(self, before: float) -> None:
        number = bisect_right(self._times, before)
        # With many parts, moments may be minutes apart: the last one before the hour says how it began.
        self._drop(max(0, number - 1) if self._partitioning.has_many else number)
        if self.size <= self._most_bytes:
            return
        if self.step < self._longest_step:
            self.step *= 2
        while self.size > self._most_bytes and len(self._times) > 1:
            self._drop(max(1, len(self._times) // 10))

    def _drop(self, number: int) -> None:
        """Forget the oldest moments."""
        if not number:
            return
        self._moment_bytes -= sum(map(len, self._moments[:number]))
        del self._times[:number], self._moments[:number]
        for log in self._logs.values():
            log.forget(self._times[0])
        self._logs = {name: log for name, log in self._logs.items() if not log.is_empty}

    async def at(self, moment: float) -> State | None:
        """Return the state that was the newest then; None if it is not kept."""
        number = bisect_right(self._times, moment) - 1
        if number < 0 or moment > self._times[-1] + PRESENT_STEPS * self.step:
            return None
        logs = {name: log.copy() for name, log in self._logs.items()}
        # In a thread: a thousand nodes take a while.
        return await asyncio.to_thread(self._read, logs, self._times[number])

    def _read(self, logs: Mapping[str, DeltaLog], at: float) -> State | None:
        text = logs[_HEAD].at(at)
        if text is None:
            return None
        names, head = self._partitioning.decode_head(text)
        texts = (logs[name].at(at) for name in names)
        return self._partitioning.join(
            head, [self._partitioning.decode_part(text) for text in texts if text is not None]
        )

    async def timeline(self, start: float, end: float, step: float) -> Object:
        moments = (msgspec.msgpack.decode(moment, type=Moment) for moment in self._moments)
        return timeline(moments, start, end, step)

    async def series(self, uuid: str) -> Series | None:
        """Return the main numbers of a card or a MIG instance, each with its times; None if nothing has this UUID."""
        word = msgspec.json.encode(uuid)
        found: Series | None = None
        for name, log in list(self._logs.items()):
            # Pods mention the UUIDs of their devices too: only the log that has the card has numbers.
            if not found and name != _HEAD and log.mentions(word):
                found = await asyncio.to_thread(self._series, log.copy(), uuid)
        return found

    def _series(self, log: DeltaLog, uuid: str) -> Series:
        parts = ((at, self._partitioning.decode_part(text)) for at, text in log.texts() if text is not None)
        return chart(((at, self._partitioning.cards(part)) for at, part in parts), uuid)
