"""Plays recorded moments: says which of them is due now."""

import time
from bisect import bisect_right
from collections.abc import Callable, Sequence
from math import inf

SPEEDS = (0.1, 0.25, 0.5, 1.0, 2.0, 5.0, 10.0, 30.0, 60.0, 100.0, 300.0, 1000.0)


class Player:
    """A pause or another speed continues from the current moment."""

    def __init__(
        self,
        times: Sequence[float],
        document: Callable[[int], bytes],
        *,
        speed: float = 1.0,
        is_loop: bool = False,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """`times` are when the moments were, in order. `document` returns one as the document of a cluster.

        It may raise UserError.
        """
        self.times = times
        self.document = document
        self.speed = speed
        self.is_paused = False
        self._is_loop = is_loop
        self._clock = clock
        self._anchor = clock()
        self._passed = 0.0  # of the recording, at the anchor

    @property
    def number(self) -> int:
        """Which moment is due."""
        return max(bisect_right(self.times, self.times[0] + self._position) - 1, 0)

    @property
    def is_over(self) -> bool:
        return not self._is_loop and self.number == len(self.times) - 1

    @property
    def seconds_to_next(self) -> float:
        """How long until the next moment is due; infinite if it is paused or over."""
        if self.is_paused or self.is_over:
            return inf
        following = self.number + 1
        due = self.times[following] - self.times[0] if following < len(self.times) else self._length
        return max((due - self._position) / self.speed, 0.0)

    def pause(self) -> None:
        """Pause, or resume."""
        self._rebase()
        self.is_paused = not self.is_paused

    def go_faster(self, steps: int) -> None:
        """Go that many steps up in `SPEEDS`, or down."""
        self._rebase()
        nearest = min(range(len(SPEEDS)), key=lambda place: abs(SPEEDS[place] - self.speed))
        self.speed = SPEEDS[min(max(nearest + steps, 0), len(SPEEDS) - 1)]

    def step(self, by: int) -> None:
        """Pause, and go that many moments forward, or back."""
        number = min(max(self.number + by, 0), len(self.times) - 1)
        self.is_paused = True
        self._passed = self.times[number] - self.times[0]
        self._anchor = self._clock()

    def jump(self, seconds: float) -> None:
        """Pause, and go to the moment that was the newest so many seconds later, or earlier."""
        number = bisect_right(self.times, self.times[self.number] + seconds) - 1
        self.step(number - self.number)

    @property
    def _length(self) -> float:
        """The last moment stays as long as the one before it."""
        times = self.times
        return times[-1] - times[0] + (times[-1] - times[-2] if len(times) > 1 else 1.0)

    @property
    def _position(self) -> float:
        since = 0.0 if self.is_paused else (self._clock() - self._anchor) * self.speed
        passed = self._passed + since
        return passed % max(self._length, 1e-3) if self._is_loop else min(passed, self._length)

    def _rebase(self) -> None:
        self._passed = self._position
        self._anchor = self._clock()
