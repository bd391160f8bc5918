"""Which moment of a recording is due now. Pausing and another speed go on from where it is."""

import time
from bisect import bisect_right
from collections.abc import Callable

from podgpu.sources.replay.recording import Recording

SPEEDS = (0.1, 0.25, 0.5, 1.0, 2.0, 5.0, 10.0, 30.0, 60.0, 100.0, 300.0, 1000.0)


class Player:
    def __init__(
        self,
        recording: Recording,
        *,
        speed: float = 1.0,
        is_loop: bool = False,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.recording = recording
        self.speed = speed
        self.is_paused = False
        self._is_loop = is_loop
        self._clock = clock
        self._anchor = clock()
        self._passed = 0.0  # of the recording, at the anchor

    @property
    def number(self) -> int:
        """Which frame is due."""
        times = self.recording.times
        return max(bisect_right(times, times[0] + self._position) - 1, 0)

    @property
    def is_over(self) -> bool:
        return not self._is_loop and self.number == len(self.recording.times) - 1

    @property
    def seconds_to_next(self) -> float:
        """How long until another frame is due; for ever if it is paused or over."""
        times, number = self.recording.times, self.number
        if self.is_paused or self.is_over:
            return float("inf")
        due = times[number + 1] - times[0] if number + 1 < len(times) else self._length
        return max((due - self._position) / self.speed, 0.0)

    def document(self, number: int) -> bytes:
        return self.recording.document(number)

    def pause(self) -> None:
        """Stop, or go on."""
        self._settle()
        self.is_paused = not self.is_paused

    def go_faster(self, steps: int) -> None:
        """Take the next higher or lower speed."""
        self._settle()
        nearest = min(range(len(SPEEDS)), key=lambda one: abs(SPEEDS[one] - self.speed))
        self.speed = SPEEDS[min(max(nearest + steps, 0), len(SPEEDS) - 1)]

    @property
    def _length(self) -> float:
        """The last frame stays as long as the one before it."""
        times = self.recording.times
        return times[-1] - times[0] + (times[-1] - times[-2] if len(times) > 1 else 1.0)

    @property
    def _position(self) -> float:
        since = 0.0 if self.is_paused else (self._clock() - self._anchor) * self.speed
        passed = self._passed + since
        return passed % max(self._length, 1e-3) if self._is_loop else min(passed, self._length)

    def _settle(self) -> None:
        self._passed = self._position
        self._anchor = self._clock()
