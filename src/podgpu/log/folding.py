"""Writes the first event of a kind at once, and counts its repeats within a window in one more line."""

from collections.abc import Iterator
from dataclasses import dataclass

from podgpu.log.event import Event


@dataclass(slots=True)
class Window:
    ends: float
    latest: Event
    repeats: int = 0

    def summary(self) -> Iterator[Event]:
        """Yield the count, once, and only if there were repeats."""
        if self.repeats:
            yield self.latest.repeated(self.repeats)
        self.repeats = 0


class Folding:
    """Remembers at most `most` kinds and drops the oldest."""

    def __init__(self, seconds: float = 60.0, most: int = 256) -> None:
        self._seconds = seconds
        self._most = most
        self._windows: dict[tuple[object, ...], Window] = {}  # ordered by their end

    def take(self, event: Event, now: float) -> list[Event]:
        """Return the events to write now that this one happened."""
        written = self.expired(now)
        window = self._windows.get(event.kind)
        if window:
            window.latest = event
            window.repeats += 1
            return written
        written += self._counts_before(event)
        if len(self._windows) >= self._most:
            written += self._close_oldest()
        self._windows[event.kind] = Window(now + self._seconds, event)
        return [*written, event]

    def expired(self, now: float) -> list[Event]:
        written: list[Event] = []
        while self._windows and next(iter(self._windows.values())).ends <= now:
            written += self._close_oldest()
        return written

    def rest(self) -> list[Event]:
        return self.expired(float("inf"))

    def due(self) -> float | None:
        """Return when to write the next count if nothing happens before."""
        return next((window.ends for window in self._windows.values() if window.repeats), None)

    def _counts_before(self, event: Event) -> list[Event]:
        """Write pending counts of the same part before its new event, so that its lines are in order."""
        same = (window for window in self._windows.values() if window.latest.logger == event.logger)
        return [summary for window in same for summary in window.summary()]

    def _close_oldest(self) -> list[Event]:
        return list(self._windows.pop(next(iter(self._windows))).summary())
