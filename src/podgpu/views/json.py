"""The snapshot as a JSON document, and back. docs/snapshot.md describes it field by field."""

from collections.abc import Mapping
from math import isfinite
from typing import Any

import msgspec
from msgspec import Struct

from podgpu.catalog import device_rows
from podgpu.model import SCHEMA, ClusterNode, Pod, Reading, Snapshot
from podgpu.model.document import decode

__all__ = ["decode", "encode", "plain"]

_LABEL_NAMES = {row.name: row.label_names for row in device_rows()}
# A lone surrogate is no character; JSON can write all others.
_SURROGATES = dict.fromkeys(range(0xD800, 0xE000), "\ufffd")
# People keep whole manifests in annotations, secrets and all.
_KEPT_BACK: dict[type[Struct], frozenset[str]] = {
    Pod: frozenset({"annotations"}),
    ClusterNode: frozenset({"written"}),
}
_NUMBERS = frozenset({int, float, bool})

Object = dict[str, Any]


def encode(snapshot: Snapshot) -> bytes:
    """Leave out what is unknown, and readings without a catalog row: they have no meaning."""
    return msgspec.json.encode({"schema": SCHEMA, **_object(snapshot)})


def _object(struct: Struct) -> Object:
    kept_back = _KEPT_BACK.get(type(struct), frozenset())
    found: Object = {}
    for name in struct.__struct_fields__:
        value = getattr(struct, name)
        if value is None or name in kept_back:
            continue
        # Most values are plain as they are: a document has thousands.
        found[name] = value if type(value) in _NUMBERS else plain(value)
    return found


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
