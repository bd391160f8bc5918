"""The last hour, moment by moment. Each part of it, a card or a node, is a log of its own."""

import asyncio
from bisect import bisect_right
from collections.abc import Awaitable, Callable, Iterable, Mapping
from typing import Generic, Protocol, TypeVar

import msgspec

from podgpu.history.delta_log import DeltaLog
from podgpu.history.partitions import written
from podgpu.history.timeline import Object, Series, chart, timeline
from podgpu.model import Card, Cluster, Moment, Snapshot

HOUR = 3600.0
LONGEST_STEP = 480.0
CHANGED = 0.45  # of a state, until the next moment: most changes are a tenth, but some are kept as a whole
EARLY = 0.9  # of a step: nothing comes quite in time
PRESENT_STEPS = 3  # for so long, the newest moment is the present
PARTS_AT_ONCE = 16  # then others get their turn
_HEAD = ""  # what is of no part

State = TypeVar("State", bound=Snapshot | Cluster)
Part = TypeVar("Part")


class Partitioning(Protocol[State, Part]):
    """How a state is divided into parts that change by themselves, and made of them again."""

    @property
    def has_many(self) -> bool:
        """Whether there may be hundreds of parts."""

    def divide(self, state: State) -> tuple[State, Mapping[str, Part]]:
        """Return the state without its parts, and the parts by name."""

    def join(self, head: State, parts: Iterable[Part]) -> State: ...
    @property
    def read_head(self) -> Callable[[bytes], tuple[tuple[str, ...], State]]:
        """Reads the names of the parts, and the state without them."""

    @property
    def read_part(self) -> Callable[[bytes], Part]: ...
    @property
    def moment(self) -> Callable[[State], Moment]: ...
    def cards(self, part: Part) -> Iterable[Card]:
        """Return the cards of a part, as far as they were read."""


class InMemoryHistory(Generic[State, Part]):
    """Keeps an hour, or less if that would take more than `most_bytes`: then the oldest goes first.

    A state is kept if it is `step` seconds younger than the one before it. The step is doubled each time that there is
    no room, up to the `longest_step`; of many parts, right at first if an hour of them would have none. Every
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
            # What comes before the next step is not even asked for: it would be made for nothing.
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
        head, parts = self._partitioning.divide(state)
        for number, (name, part) in enumerate(parts.items(), 1):
            self._log(name).put(at, written(part))
            if number % PARTS_AT_ONCE == 0:
                await asyncio.sleep(0)
        for name in self._logs.keys() - parts.keys() - {_HEAD}:
            self._logs[name].put(at, None)
        self._log(_HEAD).put(at, written((tuple(parts), head)))
        # Only now it can be asked for.
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
        # Of many parts, moments may be minutes apart: the hour begins in the newest one of before then.
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
        """Return what was the newest then; None if nothing is kept of it."""
        number = bisect_right(self._times, moment) - 1
        if number < 0 or moment > self._times[-1] + PRESENT_STEPS * self.step:
            return None
        found = self._times[number]
        logs = {name: log.copy() for name, log in self._logs.items()}
        # Of a thousand nodes this takes a while, and no request waits for it.
        return await asyncio.to_thread(self._read, logs, found)

    def _read(self, logs: Mapping[str, DeltaLog], at: float) -> State | None:
        text = logs[_HEAD].at(at)
        if text is None:
            return None
        names, head = self._partitioning.read_head(text)
        texts = (logs[name].at(at) for name in names)
        return self._partitioning.join(head, [self._partitioning.read_part(text) for text in texts if text is not None])

    async def timeline(self, start: float, end: float, step: float) -> Object:
        moments = (msgspec.msgpack.decode(moment, type=Moment) for moment in self._moments)
        return timeline(moments, start, end, step)

    async def series(self, uuid: str) -> Series | None:
        """Return the main numbers of a card or a MIG instance, each with its times; None if there is no such."""
        word = msgspec.json.encode(uuid)
        parts = (log for name, log in self._logs.items() if name != _HEAD)
        log = next((log for log in parts if log.mentions(word)), None)
        return await asyncio.to_thread(self._series, log.copy(), uuid) if log else None

    def _series(self, log: DeltaLog, uuid: str) -> Series:
        parts = ((at, self._partitioning.read_part(text)) for at, text in log.texts() if text is not None)
        return chart(((at, self._partitioning.cards(part)) for at, part in parts), uuid)
