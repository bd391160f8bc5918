"""Writes lines to a descriptor. If a pipe is full, lines are dropped and counted; nothing waits."""

import contextlib
import logging
import os
import select
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace

from podgpu.log.event import Event, event
from podgpu.log.folding import Folding
from podgpu.log.line import line


class LineHandler(logging.Handler):
    def __init__(self, descriptor: int, form: Callable[[Event], str], folding: Folding | None = None) -> None:
        super().__init__()
        self._descriptor = descriptor
        self._form = form
        self._folding = folding or Folding()
        self._timer: threading.Timer | None = None
        self._dropped = 0

    def emit(self, record: logging.LogRecord) -> None:
        # A problem with a log line must not stop the work that logged it.
        with contextlib.suppress(Exception):
            self._write(self._folding.take(event(record), time.monotonic()))
            self._wait()

    def close(self) -> None:
        with self._locked():
            if self._timer:
                self._timer.cancel()
            self._write(self._folding.rest())
        super().close()

    def _wait(self) -> None:
        """Start a timer, so that the count is written even if nothing is logged again."""
        due = self._folding.due()
        if due is None or self._timer:
            return
        self._timer = threading.Timer(max(0.0, due - time.monotonic()), self._expire)
        self._timer.daemon = True
        self._timer.start()

    def _expire(self) -> None:
        with self._locked():
            self._timer = None
            self._write(self._folding.expired(time.monotonic()))
            self._wait()

    @contextlib.contextmanager
    def _locked(self) -> Iterator[None]:
        self.acquire()
        try:
            with contextlib.suppress(Exception):
                yield
        finally:
            self.release()

    def _write(self, events: Iterable[Event]) -> None:
        for each in events:
            if not self._ready():
                self._dropped += 1
                continue
            missing = (("dropped", self._dropped),) if self._dropped else ()
            self._dropped = 0
            with contextlib.suppress(OSError):  # the reader is gone
                os.write(self._descriptor, line(replace(each, fields=each.fields + missing), self._form))

    def _ready(self) -> bool:
        poll = select.poll()
        poll.register(self._descriptor, select.POLLOUT)
        return bool(poll.poll(0))
