"""Writes each event as one line of logfmt or JSON to stderr, whatever its values hold. Nothing here raises or waits.

log.warning("the GPU does not answer", gpu=3, seconds=2.5)

Only plain values are kept: other objects could change, be large, or fail to print. The first event of a kind is written
at once; one more line counts its repeats within a minute. If a pipe is full, lines are dropped and counted.
"""

import contextlib
import json
import logging
import math
import os
import re
import select
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import PurePath
from types import TracebackType

Scalar = str | int | float | bool | None

LEVELS = {"debug": logging.DEBUG, "info": logging.INFO, "warn": logging.WARNING, "error": logging.ERROR}
TEXT_LIMIT = 1000
FRAMES = 8  # of a traceback
# A write of at most this size is never split, and never waits once poll() reports a pipe as ready.
LINE_BYTES = select.PIPE_BUF
_RESERVED = frozenset({"time", "level", "msg", "repeated"})
_LARGEST = 1 << 63
_NEEDS_QUOTES = re.compile(r'[ ="\\]')


@dataclass(frozen=True, slots=True)
class LogEvent:
    at: float
    level: str
    logger: str
    message: str
    fields: tuple[tuple[str, Scalar], ...] = ()

    @property
    def kind(self) -> tuple[object, ...]:
        """Events of the same kind count as repeats. Floats are measurements, so they make no difference."""
        steady = tuple((name, value) for name, value in self.fields if not isinstance(value, float))
        return self.level, self.logger, self.message, steady


def event_of(record: logging.LogRecord) -> LogEvent:
    given = getattr(record, "fields", None)
    fields = dict(given) if isinstance(given, dict) else {}
    if record.exc_info and record.exc_info[1]:
        fields |= {"error": record.exc_info[1], "at": raised_at(record.exc_info[2], FRAMES)}
    level = next((name for name, number in LEVELS.items() if record.levelno <= number), "error")
    scalars = tuple((_name(name), _scalar(value)) for name, value in fields.items())
    return LogEvent(record.created, level, record.name, _message(record)[:TEXT_LIMIT], scalars)


def _message(record: logging.LogRecord) -> str:
    try:
        return record.getMessage()
    except Exception:  # keep the message even if its format is wrong
        return str(record.msg)


def _name(name: object) -> str:
    plain = re.sub(r"[^A-Za-z0-9_.-]", "_", str(name))[:64]
    return f"{plain}_" if plain in _RESERVED else plain


def _scalar(value: object) -> Scalar:
    if value is None or isinstance(value, bool | float):
        return value
    if isinstance(value, int) and abs(value) < _LARGEST:
        return int(value)
    try:
        text = f"{type(value).__name__}: {value}" if isinstance(value, BaseException) else str(value)
    except Exception:  # keep the line even if a value fails to print
        text = f"<{type(value).__name__}>"
    return text[:TEXT_LIMIT]


def raised_at(trace: TracebackType | None, most: int = 1) -> str:
    """Return file and line of the innermost frames in one line, the innermost first."""
    places = []
    while trace:
        places.append(f"{PurePath(trace.tb_frame.f_code.co_filename).name}:{trace.tb_lineno}")
        trace = trace.tb_next
    return " < ".join(reversed(places[-most:]))


def logfmt(event: LogEvent) -> str:
    return " ".join(f"{name}={_quoted(_word(value))}" for name, value in _pairs(event))


def as_json(event: LogEvent) -> str:
    """Write pure ASCII, so that no character of any value can end the line."""
    return json.dumps({name: value if _is_json(value) else str(value) for name, value in _pairs(event)})


FORMATS: dict[str, Callable[[LogEvent], str]] = {"logfmt": logfmt, "json": as_json}


def line(event: LogEvent, write: Callable[[LogEvent], str]) -> bytes:
    """Shorten long values until the line fits one write. If that is not enough, leave out the fields."""
    for limit in (TEXT_LIMIT, 200, 40, 0):
        fields = tuple((name, _cut(value, limit)) for name, value in event.fields) if limit else ()
        message = str(_cut(event.message, max(limit, 200)))
        text = write(replace(event, message=message, fields=fields))
        encoded = text.encode("utf-8", "backslashreplace") + b"\n"
        if len(encoded) <= LINE_BYTES:
            break
    return encoded


def _pairs(event: LogEvent) -> tuple[tuple[str, Scalar], ...]:
    stamp = datetime.fromtimestamp(event.at, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
    return (("time", stamp), ("level", event.level), ("msg", event.message), *event.fields)


def _is_json(value: Scalar) -> bool:
    return not isinstance(value, float) or math.isfinite(value)


def _cut(value: Scalar, limit: int) -> Scalar:
    return f"{value[:limit]}…" if isinstance(value, str) and len(value) > limit else value


def _word(value: Scalar) -> str:
    if value is None or isinstance(value, bool):
        return json.dumps(value)
    return repr(round(value, 6)) if isinstance(value, float) else str(value)


def _quoted(text: str) -> str:
    if text and text.isprintable() and not _NEEDS_QUOTES.search(text):
        return text
    return '"' + "".join(_escaped(character) for character in text) + '"'


def _escaped(character: str) -> str:
    if character in '"\\':
        return "\\" + character
    return character if character.isprintable() else character.encode("unicode_escape").decode()


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
    def __init__(self, descriptor: int, write: Callable[[LogEvent], str], repeats: RepeatFilter | None = None) -> None:
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


_LOGGER = logging.getLogger("podgpu")


def debug(message: str, /, **fields: object) -> None:
    _LOGGER.debug("%s", message, extra={"fields": fields})


def info(message: str, /, **fields: object) -> None:
    _LOGGER.info("%s", message, extra={"fields": fields})


def warning(message: str, /, **fields: object) -> None:
    _LOGGER.warning("%s", message, extra={"fields": fields})


def error(message: str, /, **fields: object) -> None:
    """Write an error. Exceptions among the fields are shown with their type and message."""
    _LOGGER.error("%s", message, extra={"fields": fields})


def configure(level: str, log_format: str, descriptor: int = 2) -> None:
    """Send all log records, from podgpu and from libraries, to the descriptor."""
    root = logging.getLogger()
    for handler in [known for known in root.handlers if isinstance(known, LineHandler)]:
        root.removeHandler(handler)
        handler.close()
    root.addHandler(LineHandler(descriptor, FORMATS[log_format]))
    root.setLevel(LEVELS[level])
