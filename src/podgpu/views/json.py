"""The snapshot as a JSON document, and back. docs/snapshot.md describes it field by field."""

from collections.abc import Iterator, Mapping
from math import isfinite
from typing import Any

import msgspec
from msgspec import Struct

from podgpu.catalog import device_rows
from podgpu.errors import UserError
from podgpu.model import SCHEMA, Pod, Reading, Snapshot

_LABEL_NAMES = {row.name: row.label_names for row in device_rows()}
# A lone surrogate is no character; JSON can write all others.
_SURROGATES = dict.fromkeys(range(0xD800, 0xE000), "\ufffd")
# People keep whole manifests in annotations, secrets and all.
_KEPT_BACK: dict[type[Struct], frozenset[str]] = {Pod: frozenset({"annotations"})}

Object = dict[str, Any]


def encode(snapshot: Snapshot) -> bytes:
    """Leave out what is unknown, and readings without a catalog row: they have no meaning."""
    return msgspec.json.encode({"schema": SCHEMA, **_object(snapshot)})


def decode(data: bytes | msgspec.Raw) -> Snapshot:
    try:
        document = msgspec.json.decode(data, type=Object)
        schema = document.pop("schema", None)
        if schema != SCHEMA:
            raise UserError(
                f"The snapshot has schema {schema}, not {SCHEMA}: use matching versions of podgpu."
            )
        for owner in _with_readings(document):
            owner["readings"] = [_positional(reading) for reading in owner.get("readings", ())]
        return msgspec.convert(document, Snapshot)
    except (msgspec.MsgspecError, AttributeError, LookupError, TypeError, ValueError) as error:
        raise UserError(f"This is no podgpu snapshot ({error}): take one with `podgpu snapshot`.") from error


def _with_readings(document: Object) -> Iterator[Object]:
    for card in document.get("cards", ()):
        yield card
        yield from card.get("instances", ())


def _positional(reading: Object) -> list[Any]:
    return [reading["metric"], reading["value"], list(reading.get("labels", {}).values())]


def _object(struct: Struct) -> Object:
    kept_back = _KEPT_BACK.get(type(struct), frozenset())
    values = ((name, getattr(struct, name)) for name in struct.__struct_fields__ if name not in kept_back)
    return {name: plain(value) for name, value in values if value is not None}


def plain(value: Any) -> Any:
    """Turn into what JSON can write: without None, and with text that is UTF-8."""
    if isinstance(value, str):
        return value if value.isascii() else value.translate(_SURROGATES)
    if isinstance(value, tuple):
        return _readings(value) if value and isinstance(value[0], Reading) else [plain(one) for one in value]
    if isinstance(value, Struct):
        return _object(value)
    if isinstance(value, Mapping):
        return {plain(key): plain(one) for key, one in value.items() if one is not None}
    return value


def _readings(readings: tuple[Reading, ...]) -> list[Object]:
    return [_reading(one) for one in readings if _is_known(one)]


def _is_known(reading: Reading) -> bool:
    names = _LABEL_NAMES.get(reading.metric)
    return names is not None and len(names) == len(reading.labels) and isfinite(reading.value)


def _reading(reading: Reading) -> Object:
    if not reading.labels:
        return {"metric": reading.metric, "value": float(reading.value)}
    labels = dict(zip(_LABEL_NAMES[reading.metric], map(plain, reading.labels), strict=True))
    return {"metric": reading.metric, "labels": labels, "value": float(reading.value)}
