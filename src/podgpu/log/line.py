"""Turns an event into one line, whatever its values hold."""

import json
import math
import re
import select
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime

from podgpu.log.event import TEXT_LIMIT, Event, Scalar

# A write of at most this size is never split, and never waits once poll() reports a pipe as ready.
LINE_BYTES = select.PIPE_BUF
_NEEDS_QUOTES = re.compile(r'[ ="\\]')
_WORDS: dict[Scalar, str] = {None: "null", True: "true", False: "false"}


def logfmt(event: Event) -> str:
    return " ".join(f"{name}={_quoted(_word(value))}" for name, value in _pairs(event))


def as_json(event: Event) -> str:
    """Write pure ASCII, so that no character of any value can end the line."""
    return json.dumps({name: value if _is_json(value) else str(value) for name, value in _pairs(event)})


FORMS: dict[str, Callable[[Event], str]] = {"logfmt": logfmt, "json": as_json}


def line(event: Event, form: Callable[[Event], str]) -> bytes:
    """Shorten long values until the line fits one write. If that is not enough, leave out the fields."""
    for limit in (TEXT_LIMIT, 200, 40):
        fields = tuple((name, _cut(value, limit)) for name, value in event.fields)
        message = str(_cut(event.message, max(limit, 200)))
        encoded = _encoded(form(replace(event, message=message, fields=fields)))
        if len(encoded) <= LINE_BYTES:
            return encoded
    return _encoded(form(replace(event, message=str(_cut(event.message, 200)), fields=())))


def _encoded(text: str) -> bytes:
    return text.encode("utf-8", "backslashreplace") + b"\n"


def _pairs(event: Event) -> tuple[tuple[str, Scalar], ...]:
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
