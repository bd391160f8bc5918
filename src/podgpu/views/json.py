"""The snapshot as a JSON document, and back."""

from collections.abc import Iterator
from math import isfinite
from typing import Any

import msgspec

from podgpu.catalog import device_rows
from podgpu.errors import UserError
from podgpu.model import SCHEMA, Snapshot

_LABEL_NAMES = {row.name: row.label_names for row in device_rows()}
# A lone surrogate is no character; JSON can write all others.
_SURROGATES = dict.fromkeys(range(0xD800, 0xE000), "\ufffd")

Object = dict[str, Any]


def encode(snapshot: Snapshot) -> bytes:
    """Leave out what is unknown, and readings without a catalog row: they have no meaning.

    Annotations stay at home: people keep whole manifests in them, secrets and all.
    """
    document = msgspec.to_builtins(snapshot)
    for pod in document["pods"]:
        del pod["annotations"]
    for holder in _holders(document):
        holder["readings"] = [_named(*reading) for reading in holder["readings"] if _known(*reading)]
    return msgspec.json.encode({"schema": SCHEMA, **_plain(document)})


def decode(data: bytes) -> Snapshot:
    try:
        document = msgspec.json.decode(data, type=Object)
        schema = document.pop("schema", None)
        if schema != SCHEMA:
            raise UserError(
                f"The snapshot has schema {schema}, not {SCHEMA}: use matching versions of podgpu."
            )
        for holder in _holders(document):
            holder["readings"] = [_positional(reading) for reading in holder.get("readings", ())]
        return msgspec.convert(document, Snapshot)
    except (msgspec.MsgspecError, AttributeError, LookupError, TypeError, ValueError) as error:
        raise UserError(f"This is no podgpu snapshot ({error}): take one with `podgpu snapshot`.") from error


def _holders(document: Object) -> Iterator[Object]:
    """Every object that has readings."""
    for device in document.get("devices", ()):
        yield device
        yield from device.get("instances", ())


def _known(metric: str, value: float, labels: tuple[str, ...]) -> bool:
    names = _LABEL_NAMES.get(metric)
    return names is not None and len(names) == len(labels) and isfinite(value)


def _named(metric: str, value: float, labels: tuple[str, ...]) -> Object:
    named = dict(zip(_LABEL_NAMES[metric], labels, strict=True))
    return {"metric": metric, "labels": named or None, "value": float(value)}


def _positional(reading: Object) -> list[Any]:
    return [reading["metric"], reading["value"], list(reading.get("labels", {}).values())]


def _plain(node: Any) -> Any:
    """Without None, and with text that can be written as UTF-8."""
    if isinstance(node, dict):
        return {_plain(key): _plain(value) for key, value in node.items() if value is not None}
    if isinstance(node, (list, tuple)):
        return [_plain(value) for value in node]
    if isinstance(node, str) and not node.isascii():
        return node.translate(_SURROGATES)
    return node
