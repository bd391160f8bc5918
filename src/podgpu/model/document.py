"""A snapshot or a cluster, from its JSON document. docs/snapshot.md describes the document field by field.

In the document a reading has names for its parts and labels; in the model it is a plain row. All other structs are
written as they are, so they are decoded as they are. A cluster's document has a row for each node, with the node's
own document in it.
"""

import types
import typing
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from typing import Annotated, Any, TypeVar, get_args, get_origin

import msgspec
from msgspec import Meta, Raw, Struct, defstruct
from msgspec.json import Decoder
from msgspec.structs import asdict, replace

from podgpu.errors import UserError
from podgpu.model.card import Card
from podgpu.model.device import Instance, Reading
from podgpu.model.insight import Sums
from podgpu.model.snapshot import CLUSTER_SCHEMA, SCHEMA, Cluster, ClusterNode, Snapshot

N = TypeVar("N", str, tuple[str, ...])
MOST_NAMES = 4096
_NAMES: dict[Any, Any] = {}

# Bounds of the numbers in a document. No real card, clock or counter comes near them; what is beyond them would
# break the sums, dates and tables of its readers, or be believed for years.
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
_SUM = ""  # in place of a field's name: a sum may be larger than each of its parts may


def bounds(kind: type, name: str) -> tuple[float, float]:
    """Return the least and the largest value of a field of that type and name."""
    largest = LARGEST_INT if kind is int else LARGEST_FLOAT
    by_ending = (limits for ending, limits in _BY_ENDING.items() if name.endswith(ending))
    return _BY_NAME.get(name) or next(by_ending, (-largest, largest))


def is_sound(value: float) -> bool:
    """Whether it is a number that a reading may be."""
    return abs(value) <= LARGEST_FLOAT  # false also for what is no number


def is_moment(at: float) -> bool:
    """Whether it is a time that a clock may show, in seconds since 1970."""
    return 0.0 <= at <= LAST_MOMENT


def check_bounds(struct: Struct) -> None:
    """Raise msgspec.ValidationError where a number of a struct is out of bounds."""
    msgspec.convert(struct, _numbers(type(struct)) or Any, from_attributes=True)


def _bounds_check(model: type[Struct]) -> Callable[[bytes | Raw], object]:
    """Return a function that raises msgspec.ValidationError where a number of a document is out of bounds."""
    return Decoder(_numbers(model) or dict).decode


@cache
def _numbers(model: type[Struct]) -> type[Struct] | None:
    """Make a type of nothing but the numbers of a struct, each with its bounds: to decode is to check.

    Return None if the struct has no numbers.
    """
    fields = [
        (field.name, kind, None)
        for field in msgspec.structs.fields(_WrittenReading if model is Reading else model)
        if (kind := _bounded(field.type, field.name if model is not Sums else _SUM)) is not None
    ]
    return defstruct(f"_Numbers{model.__name__}", fields, gc=False) if fields else None


def _bounded(kind: Any, name: str) -> Any:
    """Return the type with bounds on its numbers, or None if there is no number in it."""
    if kind in (int, float):
        least, largest = bounds(kind, name)
        return Annotated[kind, Meta(ge=kind(least), le=kind(largest))]
    if get_origin(kind) in (typing.Union, types.UnionType):
        found = [_bounded(each, name) for each in get_args(kind) if each is not types.NoneType]
        return found[0] | None if len(found) == 1 and found[0] is not None else None
    if get_origin(kind) is tuple and get_args(kind)[1:] == (...,):
        inside = _bounded(get_args(kind)[0], name)
        return None if inside is None else list[inside]  # type: ignore[valid-type]
    if isinstance(kind, type) and issubclass(kind, Struct):
        return _numbers(kind)
    return None


class SchemaError(UserError):
    """The document is of another schema, older or newer than ours."""

    def __init__(self, schema: int) -> None:
        super().__init__(f"The snapshot has schema {schema}, not {SCHEMA}: use matching versions of podgpu.")
        self.is_newer = schema > SCHEMA


class _Schema(Struct):
    schema: int


class _WrittenReading(Struct, gc=False):
    metric: str
    value: float
    labels: dict[str, str] = {}


def _as_written(model: type[Struct], **fields: Any) -> Any:
    """Return the struct as a document has it: these fields are of other types."""
    described = [(name, kind, ()) for name, kind in fields.items()]
    return defstruct(f"_{model.__name__}", described, bases=(model,), kw_only=True)


_Instance = _as_written(Instance, readings=tuple[_WrittenReading, ...])
_Card = _as_written(Card, readings=tuple[_WrittenReading, ...], instances=tuple[_Instance, ...])  # type: ignore[valid-type]
_Snapshot = _as_written(Snapshot, cards=tuple[_Card, ...])  # type: ignore[valid-type]
_DOCUMENT: Decoder[Any] = Decoder(defstruct("_Document", [("schema", int)], bases=(_Snapshot,), kw_only=True))
_check_numbers = _bounds_check(Snapshot)


def decode(data: bytes | Raw) -> Snapshot:
    """Raises SchemaError for another schema, and UserError for what is not a snapshot at all."""
    try:
        document = _DOCUMENT.decode(data)
        _check_numbers(data)
    except (ValueError, RecursionError) as error:  # also of text that is not UTF-8
        _check(_schema(data))
        raise UserError(f"This is not a podgpu snapshot ({error}): take one with `podgpu snapshot`.") from error
    fields = asdict(document)
    _check(fields.pop("schema"))
    return Snapshot(**fields | {"cards": tuple(map(_card, document.cards))})


def _check(schema: int) -> None:
    if schema != SCHEMA:
        raise SchemaError(schema)


def _schema(data: bytes | Raw) -> int:
    """Return the schema that a document names; ours if it names none."""
    try:
        return msgspec.json.decode(data, type=_Schema).schema
    except (ValueError, RecursionError):
        return SCHEMA


def _card(written: Any) -> Card:
    instances = [Instance(mig=instance.mig, readings=_readings(instance.readings)) for instance in written.instances]
    readings = _readings(written.readings)
    return Card(**asdict(written) | {"readings": readings, "instances": tuple(instances)})


def _readings(written: tuple[_WrittenReading, ...]) -> tuple[Reading, ...]:
    return tuple(
        [
            Reading(_once(reading.metric), reading.value, _once(tuple(reading.labels.values())))
            if reading.labels
            else Reading(_once(reading.metric), reading.value)
            for reading in written
        ]
    )


def _once(name: N) -> N:
    """Return the same object for equal names: thousands of cards have the same few."""
    kept: N | None = _NAMES.get(name)
    if kept is not None:
        return kept
    if len(_NAMES) < MOST_NAMES:  # a document may have any number of them
        _NAMES[name] = name
    return name


class _Rows(Struct):
    nodes: list[Raw] = []


class _Named(Struct):
    name: str


# The rows are read one by one: a whole document of a large cluster takes long.
_NodeRow = _as_written(ClusterNode, snapshot=Raw, written=object)
_ClusterFrame: Any = defstruct("_ClusterFrame", [("nodes", list[Raw])], bases=(Cluster,), kw_only=True)
_check_frame = _bounds_check(_ClusterFrame)
_check_row = _bounds_check(_NodeRow)


def decode_cluster(data: bytes) -> Cluster:
    """Raises UserError."""
    cluster, rows = split(data)
    return replace(cluster, nodes=tuple([decode_row(row) for row in rows]))


def row_sizes(data: bytes) -> list[int]:
    """Return how many bytes the row of each node has, without decoding one. Raises UserError."""
    with _cluster_document():
        return [len(memoryview(row)) for row in msgspec.json.decode(data, type=_Rows).nodes]


def split(data: bytes) -> tuple[Cluster, list[Raw]]:
    """Return the cluster without its nodes, and the row of each. Raises UserError."""
    with _cluster_document():
        schema = msgspec.json.decode(data, type=_Schema).schema
        if schema != CLUSTER_SCHEMA:
            raise UserError(
                f"The cluster's document has schema {schema}, not {CLUSTER_SCHEMA}: use matching versions of podgpu."
            )
        found = msgspec.json.decode(data, type=_ClusterFrame)
        _check_frame(data)
    return Cluster(**asdict(found) | {"nodes": ()}), found.nodes


def decode_row(row: Raw) -> ClusterNode:
    """Return a node. What its agent sent may be wrong; a row that is not of a node at all raises UserError."""
    with _cluster_document():
        found = msgspec.json.decode(row, type=_NodeRow)
        _check_row(row)
    node = ClusterNode(**asdict(found) | {"snapshot": None, "written": None})
    try:
        return replace(node, snapshot=decode(found.snapshot)) if found.snapshot else node
    except UserError as error:  # the others can be shown
        return replace(node, state="failed", reason="garbage", detail=str(error))


def name_of(row: Raw) -> str:
    """Return the name in a row that cannot be decoded as a whole. Raises UserError."""
    with _cluster_document():
        return msgspec.json.decode(row, type=_Named).name


@contextmanager
def _cluster_document() -> Iterator[None]:
    try:
        yield
    except (ValueError, RecursionError) as error:  # also of text that is not UTF-8
        raise UserError(f"This is not a document of a podgpu cluster ({error}): check the address.") from error
