"""An event to log, with plain values only: other objects could change, be large, or fail to print."""

import logging
import re
from dataclasses import dataclass, replace
from pathlib import PurePath
from types import TracebackType

Scalar = str | int | float | bool | None

LEVELS = {"debug": logging.DEBUG, "info": logging.INFO, "warn": logging.WARNING, "error": logging.ERROR}
TEXT_LIMIT = 1000
_RESERVED = frozenset({"time", "level", "msg", "repeated"})
_LARGEST = 1 << 63


@dataclass(frozen=True, slots=True)
class Event:
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

    def repeated(self, times: int) -> "Event":
        return replace(self, fields=(*self.fields, ("repeated", times)))


def event(record: logging.LogRecord) -> Event:
    given = getattr(record, "fields", None)
    fields = dict(given) if isinstance(given, dict) else {}
    if record.exc_info and record.exc_info[1]:
        fields |= {"error": record.exc_info[1], "at": _frames(record.exc_info[2])}
    level = next((name for name, number in LEVELS.items() if record.levelno <= number), "error")
    scalars = tuple((_name(name), _scalar(value)) for name, value in fields.items())
    return Event(record.created, level, record.name, _message(record)[:TEXT_LIMIT], scalars)


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
