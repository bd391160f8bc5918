"""The snapshot as a JSON document, and back, as docs/snapshot.md describes it; and the rows of tables as one."""

from collections.abc import Iterable, Mapping
from math import isfinite
from typing import Any

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from podgpu.catalog import device_rows
from podgpu.insight import rows
from podgpu.insight.idle import idle_pods
from podgpu.insight.pending import pending_pods
from podgpu.insight.problem_rows import keyed_problems
from podgpu.insight.row_needs import needed_for_rows
from podgpu.insight.selection import EVERYTHING
from podgpu.model import SCHEMA, Cluster, ClusterNode, Pod, Reading, Snapshot
from podgpu.model.document import decode

__all__ = ["ROW_KINDS", "Object", "decode", "encode", "for_rows", "plain", "rows_document"]

_LABEL_NAMES = {row.name: row.label_names for row in device_rows()}
# A lone surrogate is no character; JSON can write all others.
_SURROGATES = dict.fromkeys(range(0xD800, 0xE000), "\ufffd")
# Annotations can hold whole manifests, with secrets.
_KEPT_BACK: dict[type[Struct], frozenset[str]] = {
    Pod: frozenset({"annotations", "scheduler"}),
    ClusterNode: frozenset({"written"}),
}
ROWS_SCHEMA = 1
IDLE, PENDING, PROBLEMS = "idle", "pending", "problems"
ROW_KINDS = (*rows.VIEWS, IDLE, PENDING, PROBLEMS)

_NUMBERS = frozenset({int, float, bool})

Object = dict[str, Any]


def encode(snapshot: Snapshot) -> bytes:
    """Leave out what is unknown, and readings without a catalog row: they have no meaning.

    Cards and pods are encoded one by one: the objects of thousands at once would take fresh memory.
    """
    many = {
        name: [msgspec.Raw(msgspec.json.encode(_object(item))) for item in getattr(snapshot, name)]
        for name in ("cards", "pods")
    }
    head = _object(replace(snapshot, cards=(), pods=()))
    return msgspec.json.encode({"schema": SCHEMA, **head, **many})


def _object(struct: Struct) -> Object:
    kept_back = _KEPT_BACK.get(type(struct), frozenset())
    found: Object = {}
    for name in struct.__struct_fields__:
        value = getattr(struct, name)
        if value is None or name in kept_back:
            continue
        # Most values are plain as they are: a document has thousands.
        is_plain = type(value) in _NUMBERS or (type(value) is str and value.isascii())
        found[name] = value if is_plain else plain(value)
    return found


def plain(value: Any) -> Any:
    """Turn into what JSON can write: without None, and with text that is UTF-8."""
    if isinstance(value, str):
        return value if value.isascii() else value.translate(_SURROGATES)
    if isinstance(value, tuple):
        return _readings(value) if value and isinstance(value[0], Reading) else [plain(item) for item in value]
    if isinstance(value, Struct):
        return _object(value)
    if isinstance(value, Mapping):
        return {plain(key): plain(item) for key, item in value.items() if item is not None}
    return value


def _readings(readings: tuple[Reading, ...]) -> list[Object]:
    return [_reading(reading) for reading in readings if _is_known(reading)]


def _is_known(reading: Reading) -> bool:
    names = _LABEL_NAMES.get(reading.metric)
    return names is not None and len(names) == len(reading.labels) and isfinite(reading.value)


def _reading(reading: Reading) -> Object:
    if not reading.labels:
        return {"metric": reading.metric, "value": float(reading.value)}
    labels = dict(zip(_LABEL_NAMES[reading.metric], map(plain, reading.labels), strict=True))
    return {"metric": reading.metric, "labels": labels, "value": float(reading.value)}


def for_rows(cluster: Cluster, nodes: Iterable[ClusterNode]) -> Cluster:
    """Return the cluster with what rows need of these nodes: all of them would take much memory."""
    return replace(cluster, nodes=tuple([needed_for_rows(node) for node in nodes]))


def rows_document(cluster: Cluster, by: str, nodes: Iterable[ClusterNode] | None = None) -> bytes:
    """Write the rows of `podgpu top`, those of `podgpu idle`, the pods that wait, or all problems.

    `by` is one of ROW_KINDS. Problems are read node by node from `nodes`, by default those of the cluster.
    """
    head = {"schema": ROWS_SCHEMA, "taken_at": cluster.taken_at, "by": by}
    if by == IDLE:
        currency = cluster.insight.currency if cluster.insight else ""
        priced = {"currency": currency} if currency else {}
        found = idle_pods(cluster)
        return msgspec.json.encode(head | plain(found) | priced | {"text": found.in_all(currency)})
    if by == PENDING:
        return msgspec.json.encode(head | plain(pending_pods(cluster)))
    if by == PROBLEMS:
        keyed = keyed_problems(cluster, cluster.nodes if nodes is None else nodes)
        return msgspec.json.encode(head | {"rows": [{"key": plain(key), **plain(problem)} for key, problem in keyed]})
    # The key distinguishes rows of the same name. The use is as it is shown.
    entries = rows.VIEWS[by](cluster, EVERYTHING)
    return msgspec.json.encode(
        head
        | {"rows": [{"key": plain(entry.key), **plain(entry.row), "use": plain(entry.row.use)} for entry in entries]}
    )
