"""Turns a log record into one line of logfmt or JSON, whatever its values hold.

Only plain values are kept: other objects could change, be large, or fail to print.
"""

import json
import logging
import math
import re
import select
from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import PurePath
from types import TracebackType

Scalar = str | int | float | bool | None

LEVELS = {"debug": logging.DEBUG, "info": logging.INFO, "warn": logging.WARNING, "error": logging.ERROR}
TEXT_LIMIT = 1000
# A write of at most this size is never split, and never waits once poll() reports a pipe as ready.
LINE_BYTES = select.PIPE_BUF
_RESERVED = frozenset({"time", "level", "msg", "repeated"})
_LARGEST = 1 << 63
_NEEDS_QUOTES = re.compile(r'[ ="\\]')
_WORDS: dict[Scalar, str] = {None: "null", True: "true", False: "false"}


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
        fields |= {"error": record.exc_info[1], "at": _frames(record.exc_info[2])}
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


def _frames(trace: TracebackType | None) -> str:
    """Return a traceback in one line, innermost frame first."""
    places = []
    while trace:
        places.append(f"{PurePath(trace.tb_frame.f_code.co_filename).name}:{trace.tb_lineno}")
        trace = trace.tb_next
    return " < ".join(reversed(places[-8:]))


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
        return _WORDS[value]
    return repr(round(value, 6)) if isinstance(value, float) else str(value)


def _quoted(text: str) -> str:
    if text and text.isprintable() and not _NEEDS_QUOTES.search(text):
        return text
    return '"' + "".join(_escaped(character) for character in text) + '"'


def _escaped(character: str) -> str:
    if character in '"\\':
        return "\\" + character
    return character if character.isprintable() else character.encode("unicode_escape").decode()
