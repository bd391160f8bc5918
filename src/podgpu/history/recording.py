"""The history that a recording is: every frame is a moment."""

import asyncio
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from itertools import pairwise

from podgpu.errors import UserError
from podgpu.history.charts import Object, gpu_hour, pod_hour
from podgpu.history.parted_state import PartedState
from podgpu.history.partitions import CardOrPods
from podgpu.history.timeline import marks_of, timeline
from podgpu.insight.moments import moment_of
from podgpu.model import Card, Moment, Snapshot

MOST_READ = 240  # frames, for a timeline or a chart: each takes milliseconds


class RecordingHistory:
    """`times` are those of the frames, in order; `read` returns a frame, or raises UserError if it has no such node."""

    def __init__(self, times: Sequence[float], read: Callable[[int], Snapshot]) -> None:
        self._times = times
        self._read = read
        self._moments: list[Moment] | None = None
        gaps = sorted(after - before for before, after in pairwise(times) if after > before)
        self.step = gaps[len(gaps) // 2] if gaps else 5.0

    @property
    def span(self) -> tuple[float, float]:
        return self._times[0], self._times[-1]

    @property
    def shown_seconds(self) -> float:
        return max(60.0, self._times[-1] - self._times[0])

    def found(self, moment: float) -> float | None:
        """Return the time of the frame that was the newest then."""
        number = bisect_right(self._times, moment) - 1
        return self._times[number] if number >= 0 else None

    @property
    def parts(self) -> int:
        return 1

    def times(self, start: float, end: float) -> Sequence[float]:
        """Return the times of the frames in between."""
        return self._times[bisect_left(self._times, start) : bisect_right(self._times, end)]

    def at_each(self, times: Iterable[float]) -> Sequence[PartedState[Snapshot, CardOrPods]]:
        return [state for at in times if (state := self.at(at))]

    def at(self, moment: float) -> PartedState[Snapshot, CardOrPods] | None:
        number = bisect_right(self._times, moment) - 1
        if number < 0:
            return None
        return PartedState(self._times[number], lambda: (self._read(number), iter(())), lambda frame, _: frame)

    async def timeline(self, start: float, end: float, step: float) -> Object:
        return timeline(await asyncio.to_thread(self._noted), start, end, step)

    async def gpu_hour(self, uuid: str) -> Object | None:
        """Return the numbers of a card or a MIG instance over the recording; None if nothing in it has this UUID."""
        return await asyncio.to_thread(lambda: gpu_hour(self._cards(), uuid, marks_of(self._noted())))

    async def pod_hour(self, pod: str) -> Object | None:
        """Return the numbers of a pod over the recording; None if it is not in it."""
        return await asyncio.to_thread(lambda: pod_hour(self._cards(), pod, marks_of(self._noted())))

    def _noted(self) -> list[Moment]:
        if self._moments is None:
            self._moments = [moment_of(frame) for frame in self._some()]
        return self._moments

    def _cards(self) -> Iterator[tuple[float, Iterable[Card]]]:
        return ((frame.taken_at, frame.cards) for frame in self._some())

    def _some(self) -> Iterator[Snapshot]:
        """Read frames from beginning to end: of a long recording, one in so many."""
        stride = -(-len(self._times) // MOST_READ)
        for number in range(0, len(self._times), stride):
            with suppress(UserError):  # the node is not in this frame, or the file is damaged
                yield self._read(number)
