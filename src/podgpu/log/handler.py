"""Writes lines to a descriptor. If a pipe is full, lines are dropped and counted; nothing waits.

The first event of a kind is written at once. One more line counts its repeats within a minute.
"""

import contextlib
import logging
import os
import select
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace

from podgpu.log.line import LogEvent, event_of, line


@dataclass(slots=True)
class _Repeats:
    ends: float
    latest: LogEvent
    count: int = 0

    def summary(self) -> Iterator[LogEvent]:
        """Yield the count, once, and only if there were repeats."""
        if self.count:
            yield replace(self.latest, fields=(*self.latest.fields, ("repeated", self.count)))
        self.count = 0


class RepeatFilter:
    """Remembers at most `most` kinds of events and drops the oldest."""

    def __init__(self, seconds: float = 60.0, most: int = 256) -> None:
        self._seconds = seconds
        self._most = most
        self._repeats: dict[tuple[object, ...], _Repeats] = {}  # ordered by their end

    def take(self, event: LogEvent, now: float) -> list[LogEvent]:
        """Return the events to write now that this one happened."""
        written = self.expired(now)
        repeats = self._repeats.get(event.kind)
        if repeats:
            repeats.latest = event
            repeats.count += 1
            return written
        # Counts of the same part come before its new event, so that its lines are in order.
        same = [found for found in self._repeats.values() if found.latest.logger == event.logger]
        written += [summary for found in same for summary in found.summary()]
        if len(self._repeats) >= self._most:
            written += self._forget_oldest()
        self._repeats[event.kind] = _Repeats(now + self._seconds, event)
        return [*written, event]

    def expired(self, now: float) -> list[LogEvent]:
        written: list[LogEvent] = []
        while self._repeats and next(iter(self._repeats.values())).ends <= now:
            written += self._forget_oldest()
        return written

    def due(self) -> float | None:
        """Return when to write the next count if nothing happens before."""
        return next((repeats.ends for repeats in self._repeats.values() if repeats.count), None)

    def _forget_oldest(self) -> Iterator[LogEvent]:
        return self._repeats.pop(next(iter(self._repeats))).summary()


class LineHandler(logging.Handler):
    def __init__(
        self, descriptor: int, write: Callable[[LogEvent], str], repeats: RepeatFilter | None = None
    ) -> None:
        super().__init__()
        self._descriptor = descriptor
        self._format = write
        self._repeats = repeats or RepeatFilter()
        self._timer: threading.Timer | None = None
        self._dropped = 0

    def emit(self, record: logging.LogRecord) -> None:
        # A problem with a log line must not stop the work that logged it.
        with contextlib.suppress(Exception):
            self._write(self._repeats.take(event_of(record), time.monotonic()))
            self._start_timer()

    def close(self) -> None:
        with self._locked():
            if self._timer:
                self._timer.cancel()
            self._write(self._repeats.expired(float("inf")))
        super().close()

    def _start_timer(self) -> None:
        """Let the count be written even if nothing is logged again."""
        due = self._repeats.due()
        if due is None or self._timer:
            return
        self._timer = threading.Timer(max(0.0, due - time.monotonic()), self._expire)
        self._timer.daemon = True
        self._timer.start()

    def _expire(self) -> None:
        with self._locked():
            self._timer = None
            self._write(self._repeats.expired(time.monotonic()))
            self._start_timer()

    @contextlib.contextmanager
    def _locked(self) -> Iterator[None]:
        self.acquire()
        try:
            with contextlib.suppress(Exception):
                yield
        finally:
            self.release()

    def _write(self, events: Iterable[LogEvent]) -> None:
        for event in events:
            if not self._is_ready():
                self._dropped += 1
                continue
            dropped = (("dropped", self._dropped),) if self._dropped else ()
            self._dropped = 0
            with contextlib.suppress(OSError):  # the reader is gone
                os.write(self._descriptor, line(replace(event, fields=event.fields + dropped), self._format))

    def _is_ready(self) -> bool:
        poll = select.poll()
        poll.register(self._descriptor, select.POLLOUT)
        return bool(poll.poll(0))
