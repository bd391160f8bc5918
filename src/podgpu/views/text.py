"""Names from the hardware and from users, made safe to print."""

import re

MAX_BYTES = 256

# A newline is left for the caller: each format has its own way to write one.
# Turning the direction of writing would let one name pass for another.
_UNPRINTABLE = re.compile(
    "[\x00-\x09\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069\ud800-\udfff]"
)
_REPLACEMENT = "\ufffd"


def clean(value: str | bytes) -> str:
    """Make it MAX_BYTES of UTF-8 at most. U+FFFD stands for lone surrogates, controls and turns of the direction."""
    if isinstance(value, bytes):
        value = value.decode("utf-8", "replace")
    if value.isascii() and value.isprintable() and len(value) <= MAX_BYTES:
        return value
    # Slicing first keeps the work bounded: no character is shorter than a byte.
    safe = _UNPRINTABLE.sub(_REPLACEMENT, value[:MAX_BYTES])
    return safe.encode()[:MAX_BYTES].decode("utf-8", "ignore")


def line(value: str | bytes) -> str:
    """Like `clean`, on one line."""
    return clean(value).replace("\n", " ")


def shortened(name: str, width: int) -> str:
    """Cut in the middle: a pod's name differs from its neighbours' at the end."""
    if len(name) <= width:
        return name
    tail = (width - 1) * 2 // 3
    return f"{name[: width - 1 - tail]}…{name[-tail:]}"
