"""A snapshot, from its JSON document. docs/snapshot.md describes the document field by field.

In the document a reading has names for its parts and labels; in the model it is a plain row. All other structs are
written as they are, so they are decoded as they are.
"""

from typing import Any, TypeVar, cast

import msgspec
from msgspec import Struct

from podgpu.errors import UserError
from podgpu.model.bounds import Numbers
from podgpu.model.card import Card
from podgpu.model.device import Instance, Reading
from podgpu.model.snapshot import SCHEMA, Snapshot

T = TypeVar("T", str, tuple[str, ...])
MOST_NAMES = 4096
_NAMES: dict[str | tuple[str, ...], str | tuple[str, ...]] = {}


class SchemaError(UserError):
    """The document is of another schema, older or newer than ours."""

    def __init__(self, schema: object) -> None:
        super().__init__(f"The snapshot has schema {schema}, not {SCHEMA}: use matching versions of podgpu.")
        self.is_newer = isinstance(schema, int) and schema > SCHEMA


class _Reading(Struct, gc=False):
    metric: str
    value: float
    labels: dict[str, str] = {}


def _written(model: type[Struct], **others: Any) -> type[Struct]:
    """Return the struct as the document has it: some fields are of other types."""
    defaults = msgspec.structs.fields(model)
    described = [
        (one.name, others.get(one.name, one.type))
        if one.required
        else (one.name, others.get(one.name, one.type), one.default)
        for one in defaults
    ]
    return msgspec.defstruct(f"_{model.__name__}", described, kw_only=True, gc=False)


_Instance = _written(Instance, readings=tuple[_Reading, ...])
_Card = _written(Card, readings=tuple[_Reading, ...], instances=tuple[_Instance, ...])  # type: ignore[valid-type]
_Snapshot = _written(Snapshot, cards=tuple[_Card, ...])  # type: ignore[valid-type]
_DOCUMENT: msgspec.json.Decoder[Any] = msgspec.json.Decoder(
    msgspec.defstruct("_Document", [("schema", int)], bases=(_Snapshot,), kw_only=True)
)
_SCHEMA: msgspec.json.Decoder[Any] = msgspec.json.Decoder(
    msgspec.defstruct("_Schema", [("schema", object, None)])
)
# How a document writes what the model has as plain rows.
NUMBERS = Numbers({Reading: _Reading})
_check_numbers = NUMBERS.checker(Snapshot)


def decode(data: bytes | msgspec.Raw) -> Snapshot:
    """Raises SchemaError for another schema, and UserError for what is not a snapshot at all."""
    try:
        document = _DOCUMENT.decode(data)
        _check_numbers(data)
    except (ValueError, RecursionError) as error:  # also of text that is not UTF-8
        _check(_schema(data))
        raise UserError(
            f"This is not a podgpu snapshot ({error}): take one with `podgpu snapshot`."
        ) from error
    _check(document.schema)
    return Snapshot(**{**_fields(document, Snapshot), "cards": tuple(map(_card, document.cards))})


def _check(schema: object) -> None:
    if schema is not None and schema != SCHEMA:
        raise SchemaError(schema)


def _schema(data: bytes | msgspec.Raw) -> object:
    """Return the schema of a document that is not ours, or None if it names none."""
    try:
        return _SCHEMA.decode(data).schema
    except (ValueError, RecursionError):
        return None


def _card(written: Any) -> Card:
    fields = _fields(written, Card)
    fields["readings"] = _readings(written.readings)
    fields["instances"] = tuple(
        Instance(mig=one.mig, readings=_readings(one.readings)) for one in written.instances
    )
    return Card(**fields)


def _readings(written: tuple[_Reading, ...]) -> tuple[Reading, ...]:
    return tuple(
        [
            Reading(_once(one.metric), one.value, _once(tuple(one.labels.values())))
            if one.labels
            else Reading(_once(one.metric), one.value)
            for one in written
        ]
    )


def _once(name: T) -> T:
    """Return the same object for equal names: thousands of cards have the same few."""
    kept = _NAMES.get(name)
    if kept is None:
        if len(_NAMES) < MOST_NAMES:  # a document may have any number of them
            _NAMES[name] = name
        return name
    return cast("T", kept)


def _fields(written: Any, model: type[Struct]) -> dict[str, Any]:
    return {name: getattr(written, name) for name in model.__struct_fields__}
