"""The kinds of value an option takes. Each turns text into a value or says what to write instead."""

import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

from podgpu.config.spelling import did_you_mean
from podgpu.errors import UserError

_DURATION = re.compile(r"([0-9]{1,18}(?:\.[0-9]{1,18})?)(ms|s|m|h)?")
_SIZE = re.compile(r"([0-9]{1,18})(KiB|MiB|GiB)?")
_WHOLE = re.compile(r"[0-9]{1,18}")
_RATIO = re.compile(r"[0-9]{1,4}(?:\.[0-9]{1,9})?")
_RATIO_FILE = (
    "the file must hold one number for the node, or one for each GPU, of 1 to 9999, such as 2 or 2.5"
)
_RATIO_FILE_LIMIT = 1 << 16
_BYTES = {"": 1, "KiB": 1 << 10, "MiB": 1 << 20, "GiB": 1 << 30}
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


def page_address(text: str) -> str:
    """A URL; without a path it is that of a page of metrics."""
    refusal = UserError(f"{text!r} is no address of a page; write it like http://127.0.0.1:9400/metrics")
    try:
        address = urlsplit(text)
        _ = address.port  # read, and so judged, only when asked for
    except ValueError:
        raise refusal from None
    if address.scheme not in ("http", "https") or not address.hostname:
        raise refusal
    return text if address.path.strip("/") else address._replace(path="/metrics").geturl()


def size(least: str, most: str) -> Callable[[str], int]:
    """Bytes; the bounds are written as a user would write them."""

    def parse(text: str) -> int:
        found = _bytes(text)
        if not _bytes(least) <= found <= _bytes(most):
            raise UserError(f"{text} is out of range; choose {least} to {most}")
        return found

    return parse


def _bytes(text: str) -> int:
    found = _SIZE.fullmatch(text)
    if not found:
        raise UserError(f"{text!r} is not a size; write bytes or a unit, such as 512KiB or 16MiB")
    return int(found[1]) * _BYTES[found[2] or ""]


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


def ratio_file(text: str) -> tuple[float, ...]:
    """Read the numbers of a file, such as `2`, or `2 4 4 1`."""
    path = Path(text)
    try:
        with path.open("rb") as file:
            data = file.read(_RATIO_FILE_LIMIT + 1)
    except OSError as error:
        raise UserError(f"cannot read {text!r}: {error.strerror}; {_RATIO_FILE}") from None
    if len(data) > _RATIO_FILE_LIMIT:
        raise UserError(f"{text!r} is larger than 64 KiB; {_RATIO_FILE}")
    lines = data.decode(errors="replace").split("\n")
    ratios = tuple(
        _ratio(word, f"{text!r}, line {number}")
        for number, line in enumerate(lines, 1)
        for word in line.replace(",", " ").split()
    )
    if not ratios:
        raise UserError(f"{text!r} holds no number; {_RATIO_FILE}")
    return ratios


def _ratio(word: str, place: str) -> float:
    ratio = float(word) if _RATIO.fullmatch(word) else 0.0
    if ratio < 1:
        raise UserError(f"{place}: {word[:40]!r} does not fit; {_RATIO_FILE}")
    return ratio
