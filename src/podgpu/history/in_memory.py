"""The last hour in memory, moment by moment. Each card or node has a log of its own, which keeps what changed."""

import asyncio
from bisect import bisect_left, bisect_right
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from typing import Generic

import msgspec

from podgpu.errors import UserError
from podgpu.history.charts import Object, gpu_hour, pod_hour
from podgpu.history.delta_log import DeltaLog
from podgpu.history.parted_state import PartedState
from podgpu.history.partitions import Part, Partitioning, State, encoded
from podgpu.history.timeline import marks_of, timeline
from podgpu.insight.moments import pod_id
from podgpu.model import Card, Moment, XidMark

HOUR = 3600.0
LONGEST_STEP = 480.0
CHANGED = 0.45  # of a state, for each moment: most changes are a tenth of it, but some are kept as a whole
EARLY = 0.9  # of a step: a state may come a little early
PRESENT_STEPS = 3  # for so long, the newest moment counts as now
PARTS_AT_ONCE = 4  # encoded or forgotten before other work has its turn
CHARTS_AT_ONCE = 2
MOST_POINTS = 360  # of a pod's charts: more could not be drawn
MOST_PLACES = 64  # cards or nodes of a pod's charts
PLACE_BYTES = 300  # that a place of a pod takes, besides its name
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
        # By pod: the parts that it was in, and when it was last there. To read them all for one pod would take seconds.
        self._places: dict[str, dict[str, float]] = {}

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
        places = sum(len(pod) + PLACE_BYTES * len(parts) for pod, parts in self._places.items())
        return sum(log.size for log in self._logs.values()) + self._moment_bytes + places

    async def keep(self, state: State) -> None:
        at = state.taken_at
        if self._times and at < self._times[-1]:
            self._clear()  # the clock was set back, and nothing is in order any more
        if self._times and at - self._times[-1] < EARLY * self.step:
            return
        head, parts = self._partitioning.split(state)
        for number, (name, part) in enumerate(parts.items(), 1):
            self._log(name).put(at, encoded(part))
            for card in self._partitioning.cards(part):
                for tenant in card.tenants:
                    self._places.setdefault(pod_id(tenant.container), {})[name] = at
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
        first = self._times[0]
        kept = ((pod, {name: at for name, at in parts.items() if at >= first}) for pod, parts in self._places.items())
        self._places = {pod: parts for pod, parts in kept if parts}

    def found(self, moment: float) -> float | None:
        """Return when the state was taken that was the newest then; None if it is not kept."""
        number = bisect_right(self._times, moment) - 1
        if number < 0 or moment > self._times[-1] + PRESENT_STEPS * self.step:
            return None
        return self._times[number]

    @property
    def parts(self) -> int:
        """How many parts a moment has."""
        return len(self._logs)

    def times(self, start: float, end: float) -> Sequence[float]:
        """Return the times of the moments in between."""
        return self._times[bisect_left(self._times, start) : bisect_right(self._times, end)]

    def at_each(self, times: Iterable[float]) -> Sequence[PartedState[State, Part]]:
        """Return the states of these moments, to be read one after the other."""
        logs = {name: log.copy() for name, log in self._logs.items()}

        def state(at: float) -> PartedState[State, Part]:
            return PartedState(at, lambda: self._read(logs, at), self._partitioning.join)

        return [state(at) for at in times]

    def at(self, moment: float) -> PartedState[State, Part] | None:
        """Return the state that was the newest then, to be read in a thread: a thousand nodes take a while."""
        taken_at = self.found(moment)
        if taken_at is None:
            return None
        [state] = self.at_each((taken_at,))
        return state

    def _read(self, logs: Mapping[str, DeltaLog], at: float) -> tuple[State, Iterator[Part]]:
        names, head = self._partitioning.decode_head(logs[_HEAD].at(at) or b"")
        texts = (logs[name].at(at) for name in names)
        return head, (self._partitioning.decode_part(text) for text in texts if text is not None)

    async def timeline(self, start: float, end: float, step: float) -> Object:
        return timeline(_decoded(self._moments), start, end, step)

    async def gpu_hour(self, uuid: str) -> Object | None:
        """Return the numbers of a card or a MIG instance over the hour; None if nothing has this UUID."""
        async with self._turns:
            logs = [log.copy() for name, log in self._logs.items() if name != _HEAD]
            return await asyncio.to_thread(self._gpu_hour, logs, self._moments[:], uuid)

    def _gpu_hour(self, logs: Iterable[DeltaLog], moments: Iterable[bytes], uuid: str) -> Object | None:
        word, marks = msgspec.json.encode(uuid), _marks(moments)
        for log in logs:
            # Pods mention the UUIDs of their devices too: only the log that has the card has numbers.
            if log.mentions(word) and (found := gpu_hour(self._cards(log.texts()), uuid, marks)):
                return found
        return None

    async def pod_hour(self, pod: str) -> Object | None:
        """Return the numbers of a pod over the hour; None if it was on no card. Raises UserError if on too many."""
        places = self._places.get(pod)
        if places is None:
            return None
        if len(places) > MOST_PLACES:
            raise UserError(f"{pod} was in {len(places)} places; charts are of at most {MOST_PLACES}")
        async with self._turns:
            logs = [self._logs[name].copy() for name in places if name in self._logs]
            times = self._times[:: -max(1, -(-len(self._times) // MOST_POINTS))][::-1]  # the newest is one of them
            return await asyncio.to_thread(self._pod_hour, logs, times, self._moments[:], pod)

    def _pod_hour(
        self, logs: Iterable[DeltaLog], times: Sequence[float], moments: Iterable[bytes], pod: str
    ) -> Object | None:
        """Read the logs side by side, so that what the pod had on several cards can be added up."""
        read = [self._cards(zip(times, log.at_each(times), strict=True)) for log in logs]
        together = ((found[0][0], [card for _, cards in found for card in cards]) for found in zip(*read, strict=True))
        return pod_hour(together, pod, _marks(moments))

    def _cards(self, texts: Iterable[tuple[float, bytes | None]]) -> Iterator[tuple[float, Iterable[Card]]]:
        """Decode what has changed."""
        before, cards = None, tuple[Card, ...]()
        for at, text in texts:
            if text is not before:
                before, cards = text, () if text is None else tuple(self._cards_of(text))
            yield at, cards

    def _cards_of(self, text: bytes) -> Iterable[Card]:
        return self._partitioning.cards(self._partitioning.decode_part(text))


def _marks(moments: Iterable[bytes]) -> set[XidMark]:
    return marks_of(_decoded(moments))


def _decoded(moments: Iterable[bytes]) -> Iterator[Moment]:
    return (msgspec.msgpack.decode(moment, type=Moment) for moment in moments)
