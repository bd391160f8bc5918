"""Growing pauses after failures."""

import random


class Backoff:
    """Pauses double from `first` seconds to `longest`. Each is spread, so that nodes do not return in step."""

    def __init__(self, first: float, longest: float) -> None:
        self._first = first
        self._longest = longest
        self._failures = 0

    def pause(self, longest: float | None = None) -> float:
        """Return how long to wait after one more failure, with another end than usual if one is given."""
        doubled = self._first * 2.0 ** min(self._failures, 16)
        self._failures += 1
        return spread(min(doubled, longest or self._longest))

    def reset(self) -> None:
        self._failures = 0


def spread(pause: float) -> float:
    return pause * random.uniform(0.5, 1.0)  # noqa: S311 - it spreads load, it guards nothing
