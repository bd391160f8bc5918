"""What numbers of a document from outside may be. No real card, clock or counter comes near the bounds.

What is beyond them would break sums, dates and tables of those who show it, or be believed for years.
"""

import types
import typing
from collections.abc import Callable
from typing import Annotated, Any, get_args, get_origin

import msgspec
from msgspec import Meta, Struct

# Floats reach far: counters of bytes grow for years. They may still be added up by the million.
LARGEST_FLOAT = 1e24
LARGEST_INT = 2**63 - 1
LARGEST_BYTES = 2**60
LARGEST_RATIO = 1000.0
LARGEST_WATTS = 1e9
LARGEST_ID = 2**32 - 1
MOST_CARDS = 4096  # of a node, by their numbers
LAST_MOMENT = 253_402_300_799.0  # the end of the year 9999, the last that a date can have
LONGEST_INTERVAL = 3600.0
LONGEST_SECONDS = 1e11

_MOMENT = (0.0, LAST_MOMENT)
_BY_NAME: dict[str, tuple[float, float]] = {
    "index": (-1, MOST_CARDS - 1),
    "minor": (0, LARGEST_ID),
    "pid": (-1, LARGEST_ID),
    "gpu_instance_id": (-1, LARGEST_ID),
    "compute_instance_id": (-1, LARGEST_ID),
    "interval_seconds": (0.0, LONGEST_INTERVAL),
    "since": _MOMENT,
    "held_since": _MOMENT,
    "share": (0.0, LARGEST_RATIO),
}
_BY_ENDING: dict[str, tuple[float, float]] = {
    "_at": _MOMENT,
    "_bytes": (-LARGEST_BYTES, LARGEST_BYTES),
    "_ratio": (-LARGEST_RATIO, LARGEST_RATIO),
    "_watts": (-LARGEST_WATTS, LARGEST_WATTS),
    "seconds": (-LONGEST_SECONDS, LONGEST_SECONDS),
}


def bounds(kind: type, name: str) -> tuple[float, float]:
    """Return the least and the largest value of a field of that type and name."""
    if name in _BY_NAME:
        return _BY_NAME[name]
    found = next((limits for ending, limits in _BY_ENDING.items() if name.endswith(ending)), None)
    if found is not None:
        return found
    largest = LARGEST_INT if kind is int else LARGEST_FLOAT
    return -largest, largest


def is_sound(value: float) -> bool:
    """Whether it is a number that a reading may be."""
    return abs(value) <= LARGEST_FLOAT  # false also for what is no number


def is_moment(at: float) -> bool:
    """Whether it is a time that a clock may show, in seconds since 1970."""
    return 0.0 <= at <= LAST_MOMENT


class Numbers:
    """Makes types that hold nothing but the numbers of a document, each with its bounds: to decode is to check."""

    def __init__(self, stands_for: dict[type[Struct], type[Struct]] | None = None) -> None:
        """`stands_for` names structs that a document writes in another way than the model has them."""
        self._stands_for = stands_for or {}
        self._made: dict[type[Struct], type[Struct] | None] = {}

    def checker(self, model: type[Struct]) -> Callable[[bytes | msgspec.Raw], object]:
        """Return a function that raises msgspec.ValidationError where a number is out of bounds."""
        return msgspec.json.Decoder(self.of(model) or dict).decode

    def check(self, struct: Struct) -> None:
        """Raise msgspec.ValidationError where a number of a struct is out of bounds."""
        msgspec.convert(struct, self.of(type(struct)) or Any, from_attributes=True)

    def of(self, model: type[Struct]) -> type[Struct] | None:
        """Return the numbers of the struct, or None if it has none."""
        if model not in self._made:
            written = self._stands_for.get(model, model)
            fields = [
                (field.name, kind, None)
                for field in msgspec.structs.fields(written)
                if (kind := self._bounded(field.type, field.name)) is not None
            ]
            self._made[model] = (
                msgspec.defstruct(f"_Numbers{model.__name__}", fields, gc=False) if fields else None
            )
        return self._made[model]

    def _bounded(self, kind: Any, name: str) -> Any:
        """Return the type with bounds on its numbers, or None if there is no number in it."""
        if kind in (int, float):
            least, largest = bounds(kind, name)
            return Annotated[kind, Meta(ge=kind(least), le=kind(largest))]
        if get_origin(kind) in (typing.Union, types.UnionType):
            return self._of_union(get_args(kind), name)
        if get_origin(kind) is tuple and get_args(kind)[1:] == (...,):
            inside = self._bounded(get_args(kind)[0], name)
            return None if inside is None else list[inside]  # type: ignore[valid-type]
        if isinstance(kind, type) and issubclass(kind, Struct):
            return self.of(kind)
        return None

    def _of_union(self, kinds: tuple[Any, ...], name: str) -> Any:
        found = [self._bounded(each, name) for each in kinds if each is not types.NoneType]
        return found[0] | None if len(found) == 1 and found[0] is not None else None
