"""Numbers of documents at and beyond their bounds."""

import json
from collections.abc import Iterator
from typing import Any

import pytest

from podgpu.errors import UserError
from podgpu.model import document
from podgpu.model.document import decode
from podgpu.views.json import encode
from tests.views.quirks import SNAPSHOT

DOCUMENT = encode(SNAPSHOT)


def numbers(value: Any, name: str = "") -> Iterator[tuple[Any, Any, str]]:
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, child in items:
        inside = key if isinstance(key, str) else name
        if isinstance(child, int | float) and not isinstance(child, bool):
            yield value, key, f"{key} of sums" if name == "sums" else inside  # bounded like any number
        yield from numbers(child, inside)


def places() -> list[str]:
    """One place for each name of a number, as its number in the walk."""
    seen: dict[str, int] = {}
    for place, (_, _, name) in enumerate(numbers(json.loads(DOCUMENT))):
        seen.setdefault(name, place)
    return [f"{name}:{place}" for name, place in seen.items() if name != "schema"]


def changed(place: str, value: Any) -> bytes:
    document = json.loads(DOCUMENT)
    holder, key, _ = list(numbers(document))[int(place.rpartition(":")[2])]
    holder[key] = value(holder[key]) if callable(value) else value
    return json.dumps(document).encode()


@pytest.mark.parametrize("place", places())
def test_every_number_has_bounds(place: str) -> None:
    name = place.partition(":")[0]
    found = json.loads(DOCUMENT)
    holder, key, _ = list(numbers(found))[int(place.rpartition(":")[2])]
    kind = type(holder[key])
    least, largest = document.bounds(kind, name)
    for good in (least, largest):
        decode(changed(place, kind(good)))
    beyond = 2 if kind is int else 1.001
    for bad in (10**400, -(10**400), 1e308, -1e308, largest * beyond, "1", True, [1]):
        with pytest.raises(UserError, match="This is not a podgpu snapshot"):
            decode(changed(place, bad))


@pytest.mark.parametrize("token", [b"NaN", b"Infinity", b"-Infinity", b"1e400", b"1" * 5000])
def test_what_json_cannot_write_is_refused(token: bytes) -> None:
    document = DOCUMENT.replace(b'"taken_at":', b'"taken_at":' + token + b',"x":', 1)
    with pytest.raises(UserError, match="This is not a podgpu snapshot"):
        decode(document)


@pytest.mark.parametrize(
    "data",
    [
        DOCUMENT.replace(b'"node":"', b'"node":"\xff'),
        b"\xff\xfe" + DOCUMENT,
        DOCUMENT[:-1] + b',"more":' + b"[" * 100_000 + b"]" * 100_000 + b"}",
    ],
    ids=["text", "mark", "depth"],
)
def test_what_is_not_utf8_or_too_deep_is_no_snapshot(data: bytes) -> None:
    with pytest.raises(UserError, match="This is not a podgpu snapshot"):
        decode(data)


def test_what_adds_up_to_more_than_one_card_may_have_can_still_be_read() -> None:
    found = json.loads(DOCUMENT)
    found["insight"]["sums"]["power_watts"] = 3 * document.LARGEST_WATTS
    read = decode(json.dumps(found).encode())
    assert read.insight is not None and read.insight.sums.power_watts == 3 * document.LARGEST_WATTS
