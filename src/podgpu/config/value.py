"""The kinds of value an option takes. Each turns text into a value or says what to write instead."""

import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from podgpu.config.spelling import did_you_mean
from podgpu.errors import UserError

_DURATION = re.compile(r"([0-9]{1,18}(?:\.[0-9]{1,18})?)(ms|s|m|h)?")
_WHOLE = re.compile(r"[0-9]{1,18}")
_SECONDS = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0}


def duration(shortest: str, longest: str) -> Callable[[str], float]:
    """Seconds; the bounds are written as a user would write them."""

    def parse(text: str) -> float:
        seconds = _seconds(text)
        if not _seconds(shortest) <= seconds <= _seconds(longest):
            raise UserError(f"{text} is out of range; choose {shortest} to {longest}")
        return seconds

    return parse


def _seconds(text: str) -> float:
    found = _DURATION.fullmatch(text)
    if not found:
        raise UserError(f"{text!r} is not a duration; write seconds or a unit, such as 5s, 500ms or 1m")
    return float(found[1]) * _SECONDS[found[2] or "s"]


def whole(least: int, most: int) -> Callable[[str], int]:
    def parse(text: str) -> int:
        if not _WHOLE.fullmatch(text) or not least <= int(text) <= most:
            raise UserError(f"{text!r} does not fit; write a whole number from {least} to {most}")
        return int(text)

    return parse


@dataclass(frozen=True, slots=True)
class OneOf:
    choices: tuple[str, ...]

    def __call__(self, text: str) -> str:
        if text not in self.choices:
            all_of_them = f"choose {', '.join(self.choices[:-1])} or {self.choices[-1]}"
            raise UserError(f"{text!r} is not known; {did_you_mean(text, self.choices, all_of_them)}")
        return text


def api_server(text: str) -> str:
    if text in ("auto", "off") or text.startswith(("http://", "https://")):
        return text
    raise UserError(f"{text!r} is no API server; write auto, off or a URL such as https://10.0.0.1:443")


def existing_file(text: str) -> Path:
    path = Path(text)
    if not path.is_file():
        raise UserError(f"there is no file {text!r}; give the path of one that exists")
    return path.absolute()  # the system's loader would look for a bare name elsewhere


def existing_folder(text: str) -> Path:
    path = Path(text)
    if not path.is_dir():
        raise UserError(f"there is no folder {text!r}; give the path of one that exists")
    return path
