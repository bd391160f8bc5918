"""The first event of a kind is written at once; its repeats within the window become one count."""

from collections.abc import Iterator
from dataclasses import dataclass

from podgpu.log.event import Event


@dataclass(slots=True)
class Window:
    ends: float
    latest: Event
    repeats: int = 0

    def summary(self) -> Iterator[Event]:
        """Give the count once, and only if there is something to count."""
        if self.repeats:
            yield self.latest.repeated(self.repeats)
        self.repeats = 0


class Folding:
    """At most `most` kinds are remembered; the oldest gives way."""

    def __init__(self, seconds: float = 60.0, most: int = 256) -> None:
        self._seconds = seconds
        self._most = most
        self._windows: dict[tuple[object, ...], Window] = {}  # in the order in which they end

    def take(self, event: Event, now: float) -> list[Event]:
        """Return what is to be written now that this happened."""
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
        """Tell when the next count is to be written, if nothing happens before."""
        return next((window.ends for window in self._windows.values() if window.repeats), None)

    def _counts_before(self, event: Event) -> list[Event]:
        """End the old story of the part that has news, so that its lines read in order."""
        same = (window for window in self._windows.values() if window.latest.logger == event.logger)
        return [summary for window in same for summary in window.summary()]

    def _close_oldest(self) -> list[Event]:
        return list(self._windows.pop(next(iter(self._windows))).summary())
