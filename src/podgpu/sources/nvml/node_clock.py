"""The node's wall clock, by which the driver stamps what it measures."""

import time

LARGEST_DRIFT = 100_000  # microseconds that a clock may lag behind between two readings without being set


class NodeClock:
    def __init__(self) -> None:
        self._ahead = _ahead()

    def was_set_back(self) -> bool:
        """Whether it was set back since the last call."""
        before, self._ahead = self._ahead, _ahead()
        return before - self._ahead > LARGEST_DRIFT


def now() -> int:
    """Return microseconds since 1970."""
    return time.time_ns() // 1000


def _ahead() -> int:
    """By how many microseconds the wall clock is ahead of the monotonic clock."""
    return now() - time.monotonic_ns() // 1000
