"""Damages documents: numbers at and beyond every bound, wrong types, odd texts, missing and repeated parts."""

import json
from collections.abc import Iterator
from copy import deepcopy
from random import Random
from typing import Any

from podgpu.model import document

_EDGES = (
    document.LARGEST_FLOAT,
    document.LARGEST_INT,
    document.LARGEST_BYTES,
    document.LARGEST_RATIO,
    document.LARGEST_WATTS,
    document.LARGEST_ID,
    document.MOST_CARDS,
    document.LAST_MOMENT,
    document.LONGEST_INTERVAL,
    document.LONGEST_SECONDS,
    2**31,
    2**53,
    2**64,
)
_WHOLE = [edge + step for edge in map(int, _EDGES) for step in (-1, 0, 1)]
NUMBERS: tuple[Any, ...] = (
    *(0, -0.0, -1, 1, 0.1, 5e-324, 1e308, -1e308, 1.7976931348623157e308, 10**400, -(10**400)),
    *_WHOLE,
    *(-number for number in _WHOLE),
    *map(float, _EDGES),
    *(float(edge) * 1.0001 for edge in _EDGES),
    *(-float(edge) for edge in _EDGES),
)
# Written into the text as they are: JSON has none of them.
TOKENS = (
    "NaN",
    "Infinity",
    "-Infinity",
    "1e400",
    "-1e400",
    "00",
    "+1",
    "0x10",
    "1" * 5000,
    "\\",
    '"\\ud800"',
)
TEXTS = (
    "",
    " ",
    "\n",
    "\x00",
    "\x1b[2J\x1b[31m",
    "\u202egpj",
    "=1+1",
    "²",
    "9" * 30,
    "-1",
    "NaN",
    "x" * 5000,
    "a/b/c",
    "\U0001d54f",
    "12Gi",
    "1e99",
    "MIG-x",
    "total",
)
OTHERS: tuple[Any, ...] = (None, True, False, [], {}, [[]], {"": None}, [None], {"a": {"b": []}})
_MARK = "\ue000"


def damaged(document: bytes, random: Random) -> bytes:
    """Return the JSON document with some of it changed."""
    if random.random() < 0.1:
        return noise(document, random)
    root = json.loads(document)
    for _ in range(random.choice((1, 1, 1, 2, 4))):
        places = list(_places(root))
        numbers = [place for place in places if _is_number(place[0][place[1]])]
        if numbers and random.random() < 0.6:
            _renumber(numbers, random)
        elif places:
            _change(*random.choice(places), random)
    return _written(root)


def noise(data: bytes, random: Random) -> bytes:
    """Change some bytes, cut some off, or write some twice."""
    changed = bytearray(data)
    for _ in range(random.choice((1, 2, 8))):
        at = random.randrange(len(changed) + 1)
        match random.randrange(4):
            case 0:
                changed[at : at + 1] = bytes([random.randrange(256)])
            case 1:
                changed[at:at] = random.choice((b"\xff", b"\x00", b"\xed\xa0\x80", b"[" * 2000, b"{", b'"'))
            case 2:
                del changed[at : at + random.choice((1, 10, 1000))]
            case _:
                changed[at:at] = changed[at : at + 100]
    return bytes(changed)


def _places(value: Any) -> Iterator[tuple[Any, Any]]:
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, child in items:
        yield value, key
        yield from _places(child)


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _renumber(places: list[tuple[Any, Any]], random: Random) -> None:
    """Give one number another value of its own type, or all numbers of its name."""
    holder, key = random.choice(places)
    is_whole = isinstance(holder[key], int)
    value = random.choice([number for number in NUMBERS if isinstance(number, int) is is_whole])
    for other, name in places if random.random() < 0.3 else [(holder, key)]:
        if name == key and isinstance(other[name], int) is is_whole:
            other[name] = value


def _change(holder: Any, key: Any, random: Random) -> None:
    old, chance = holder[key], random.random()
    if isinstance(old, str) and chance < 0.5:
        holder[key] = random.choice((*TEXTS, *map(str, NUMBERS[:20]), "inf", "-Inf", "NaN"))
    elif isinstance(old, list) and old and chance < 0.4:
        holder[key] = deepcopy(old) + deepcopy(old) if random.random() < 0.7 else []
    elif chance < 0.8:
        pool = random.choice((NUMBERS, TEXTS, OTHERS, [f"{_MARK}{token}{_MARK}" for token in TOKENS]))
        holder[key] = deepcopy(random.choice(pool))
    else:
        del holder[key]


def _written(root: Any) -> bytes:
    text = json.dumps(root, ensure_ascii=False)
    for token in TOKENS:
        marked = json.dumps(f"{_MARK}{token}{_MARK}", ensure_ascii=False)
        text = text.replace(marked, token)
    return text.encode(errors="surrogatepass")
