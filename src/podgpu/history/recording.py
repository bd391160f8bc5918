"""The history that a recording is: every frame is a moment."""

import asyncio
from bisect import bisect_right
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from itertools import pairwise

from podgpu.errors import UserError
from podgpu.history.parted_state import PartedState
from podgpu.history.partitions import CardOrPods
from podgpu.history.timeline import Object, Series, chart, timeline
from podgpu.insight.moments import moment_of
from podgpu.model import Moment, Snapshot

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

    def at(self, moment: float) -> PartedState[Snapshot, CardOrPods] | None:
        number = bisect_right(self._times, moment) - 1
        if number < 0:
            return None
        return PartedState(self._times[number], lambda: (self._read(number), iter(())), lambda frame, _: frame)

    async def timeline(self, start: float, end: float, step: float) -> Object:
        if self._moments is None:
            self._moments = await asyncio.to_thread(lambda: [moment_of(frame) for frame in self._some()])
        return timeline(self._moments, start, end, step)

    async def series(self, uuid: str) -> Series | None:
        frames = ((frame.taken_at, frame.cards) for frame in self._some())
        return await asyncio.to_thread(chart, frames, uuid) or None

    def _some(self) -> Iterator[Snapshot]:
        """Read frames from beginning to end: of a long recording, one in so many."""
        stride = -(-len(self._times) // MOST_READ)
        for number in range(0, len(self._times), stride):
            with suppress(UserError):  # the node is not in this frame, or the file is damaged
                yield self._read(number)
