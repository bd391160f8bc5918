"""A state of the past, read part by part: a thousand nodes at once would take more memory than all the rest."""

import time
from collections.abc import Callable, Iterator
from typing import Generic

from podgpu.history.partitions import Part, State

PAUSE_SECONDS = 0.001  # after each part: whoever answers probes in the same process comes first


class AbandonedError(Exception):
    """Nobody needs it any more."""


class PartedState(Generic[State, Part]):
    """What was the newest state at a time. It can be read once, in any thread, and abandoned from any other."""

    def __init__(
        self,
        taken_at: float,
        read: Callable[[], tuple[State, Iterator[Part]]],
        join: Callable[[State, Iterator[Part]], State],
    ) -> None:
        """`read` returns the state without its parts, and the parts."""
        self.taken_at = taken_at
        self._read = read
        self._join = join
        self._is_abandoned = False

    def parts(self) -> tuple[State, Iterator[Part]]:
        """Return the state without its parts, and the parts, each of which is decoded when it is asked for."""
        head, parts = self._read()
        return head, self._wanted(parts)

    def whole(self) -> State:
        return self._join(*self.parts())

    def abandon(self) -> None:
        """End a reading with AbandonedError."""
        self._is_abandoned = True

    def _wanted(self, parts: Iterator[Part]) -> Iterator[Part]:
        for part in parts:
            if self._is_abandoned:
                raise AbandonedError
            yield part
            time.sleep(PAUSE_SECONDS)
