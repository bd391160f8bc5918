"""Text in ASCII characters alone, for terminals and locales that have no others."""

import codecs
import unicodedata

from podgpu.views.text import width_of

PLAIN = "podgpu.plain"  # the name of this way to write what ASCII has no character for
# Each is as wide as what it stands for, so that columns stay in line.
_STANDS_FOR = {
    **dict.fromkeys("▏▎▍▌▋▊▉", "|"),
    **dict(zip("▁▂▃▄▅▆▇█", "_,-=+o*#", strict=True)),
    "▒": ":",
    "·": ".",
    "✗": "x",
    "▲": "^",
    "▼": "v",
    "↑": "^",
    "↓": "v",
    "←": "<",
    "→": ">",
    "–": "-",
    "—": "-",
    "…": "*",
    "°": " ",
    "≥": ">=",  # one wider: without the second sign it would be false
}


def plain(text: str) -> str:
    """Return a piece of a screen's line, as wide as it was wherever there is a space to give."""
    return text.replace(" ≥", "≥").replace(" … ", " - ").encode("ascii", PLAIN).decode()


def _replaced(error: UnicodeError) -> tuple[str, int]:
    if not isinstance(error, UnicodeEncodeError):
        raise error
    return "".join(map(_plain, error.object[error.start : error.end])), error.end


def _plain(character: str) -> str:
    if character in _STANDS_FOR:
        return _STANDS_FOR[character]
    width = width_of(character)
    letter = "".join(part for part in unicodedata.normalize("NFKD", character) if part.isascii())
    return letter if len(letter) == width else "?" * width


codecs.register_error(PLAIN, _replaced)
