"""The cluster as a JSON document, and back: a row for each node, with the node's own document in it.

A row is encoded when its node changes; the document is joined from ready rows.
"""

import zlib
from typing import Any

import msgspec
from msgspec.structs import replace

from podgpu.errors import UserError
from podgpu.model import (
    CLUSTER_SCHEMA,
    Cluster,
    ClusterNode,
    ErrorCount,
    Insight,
    PartStatus,
    PendingPod,
)
from podgpu.model.document import BoundsChecker
from podgpu.views import json

_PLACE = b'"nodes":[]'
_GZIP_CONTAINER = 16 + zlib.MAX_WBITS


class _NodeRow(msgspec.Struct):
    name: str
    state: str
    snapshot: msgspec.Raw = msgspec.Raw(b"")
    origin: str = ""
    reason: str = ""
    detail: str = ""
    allocatable: dict[str, str] = {}
    model: str = ""
    ready: bool | None = None
    address: str = ""
    insight: Insight | None = None


class _Schema(msgspec.Struct):
    schema: int


class _Document(msgspec.Struct):
    """The cluster itself, with rows that are read one by one: a whole document of a large one takes long."""

    taken_at: float
    version: str
    nodes: list[_NodeRow]
    interval_seconds: float = 0.0
    name: str = ""
    demo: bool = False
    replayed: bool = False
    has_store: bool = False
    pending: tuple[PendingPod, ...] = ()
    parts: tuple[PartStatus, ...] = ()
    insight: Insight | None = None
    errors: tuple[ErrorCount, ...] = ()


_check_numbers = BoundsChecker().checker(_Document)


def encode(cluster: Cluster) -> bytes:
    before, after = frame(cluster)
    return b"".join((before, b",".join(map(row, cluster.nodes)), after))


def row(node: ClusterNode) -> bytes:
    """Encode one node. Joined with others, it makes the document."""
    plain, written = json.plain(replace(node, snapshot=None)), node.written
    if written is not None and written.snapshot is node.snapshot:
        # The agent wrote this document: that is much faster than to write it again.
        plain["snapshot"] = msgspec.Raw(zlib.decompress(written.document, _GZIP_CONTAINER))
    elif node.snapshot is not None:
        plain["snapshot"] = msgspec.Raw(json.encode(node.snapshot))
    return msgspec.json.encode(plain)


def frame(cluster: Cluster) -> tuple[bytes, bytes]:
    """Return what stands before the rows of the nodes, and after them."""
    head: dict[str, Any] = json.plain(replace(cluster, nodes=()))
    whole = msgspec.json.encode({"schema": CLUSTER_SCHEMA, **head})
    # No text of the frame can contain the place: its quotes would be escaped.
    before, place, after = whole.partition(_PLACE)
    return before + place[:-1], b"]" + after


def decode(data: bytes) -> Cluster:
    try:
        schema = msgspec.json.decode(data, type=_Schema).schema
        if schema != CLUSTER_SCHEMA:
            raise UserError(
                f"The cluster's document has schema {schema}, not {CLUSTER_SCHEMA}: "
                "use matching versions of podgpu."
            )
        document = msgspec.json.decode(data, type=_Document)
        _check_numbers(data)
        frame = {name: getattr(document, name) for name in Cluster.__struct_fields__ if name != "nodes"}
        return Cluster(**frame, nodes=tuple([_node(row) for row in document.nodes]))
    except (ValueError, RecursionError) as error:  # also of text that is not UTF-8
        raise UserError(
            f"This is not a document of a podgpu cluster ({error}): check the address."
        ) from error


def _node(found: _NodeRow) -> ClusterNode:
    fields = {name: getattr(found, name) for name in found.__struct_fields__ if name != "snapshot"}
    node = ClusterNode(**fields)
    try:
        return replace(node, snapshot=json.decode(found.snapshot)) if found.snapshot else node
    except UserError as error:  # the others can be shown
        return replace(node, state="failed", reason="garbage", detail=str(error))
